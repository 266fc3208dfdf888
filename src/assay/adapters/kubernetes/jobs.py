"""Which pods are customers', how each one reads as a customer's job, and which of them wait for what our pod holds.

They are evicted as far as their PodDisruptionBudgets allow. No pod is ever deleted instead.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from assay.adapters.kubernetes.client import (
    HTTP_CONFLICT,
    HTTP_NOT_FOUND,
    HTTP_TOO_MANY_REQUESTS,
    ApiRefusal,
    ApiRequest,
    KubernetesApi,
    KubernetesObject,
)
from assay.adapters.kubernetes.cordon import SPARE_LABEL, measure_age_s
from assay.adapters.scheduler import CustomerJob
from assay.model.errors import AssayError

EVICTION_RETRY_S = 1.0
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
ENDED_PHASES = ("Succeeded", "Failed")
NODE_OWNER_KINDS = ("DaemonSet", "Node")


def is_customer_pod(pod: KubernetesObject, namespace: str) -> bool:
    """Say whether a pod runs for a customer: it has not ended, and is neither the node's own nor ours.

    Our pods are in `namespace`.
    """
    if has_ended(pod) or MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}):
        return False
    return _find_controller(pod).get("kind") not in NODE_OWNER_KINDS and not is_spare_pod(pod, namespace)


def is_spare_pod(pod: KubernetesObject, namespace: str) -> bool:
    """Say whether a pod is ours, for spare time. The label alone proves nothing: anybody can set it."""
    return pod["metadata"]["namespace"] == namespace and SPARE_LABEL in (pod["metadata"].get("labels") or {})


def has_ended(pod: KubernetesObject) -> bool:
    """Say whether all containers of a pod have ended for good."""
    return pod["status"].get("phase") in ENDED_PHASES


def make_customer_job(pod: KubernetesObject, blocked_by: str = "", node: KubernetesObject | None = None) -> CustomerJob:
    """Return a customer's pod as a job `namespace/pod`: its name is the controller's, its owner the namespace.

    A pod is lost if it should be gone and its `node` is not ready. Without `node`, no pod counts as lost.
    """
    meta = pod["metadata"]
    owner = _find_controller(pod)
    name = f"{owner['kind']}/{owner['name']}" if owner else "no controller"
    since = pod["status"].get("startTime") or meta["creationTimestamp"]
    until = meta.get("deletionTimestamp")
    is_lost = bool(until) and measure_age_s(until) > 0 and node is not None and not is_ready(node)
    ident, namespace = f"{meta['namespace']}/{meta['name']}", f"namespace {meta['namespace']}"
    return CustomerJob(ident, name, namespace, since, blocked_by, is_lost)


def describe_termination(pod: KubernetesObject) -> str:
    """Return how far a pod is in ending, "" for a pod that nobody ends."""
    meta = pod["metadata"]
    if not meta.get("deletionTimestamp"):
        return ""
    holder = f", held by the finalizer {', '.join(meta['finalizers'])}" if meta.get("finalizers") else ""
    return f"is ending, was to be gone by {meta['deletionTimestamp']}{holder}"


def is_ready(thing: KubernetesObject) -> bool:
    """Say whether a pod counts as healthy, or a node's kubelet as present."""
    conditions = thing["status"].get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _find_controller(pod: KubernetesObject) -> KubernetesObject:
    owners = pod["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), {})


def find_waiting_pods(
    node: KubernetesObject, ours: KubernetesObject, pods: Iterable[KubernetesObject], namespace: str
) -> Iterator[KubernetesObject]:
    """Yield the customers' pods without a node that need a resource of our pod and could run on this node.

    Not every scheduler preempts our pod for them (Volcano, Kueue).
    """
    held = set(read_resource_requests(ours))
    for pod in pods:
        is_waiting = not pod["spec"].get("nodeName") and is_customer_pod(pod, namespace)
        if is_waiting and held & set(read_resource_requests(pod)) and _fits(pod, node):
            yield pod


def _fits(pod: KubernetesObject, node: KubernetesObject) -> bool:
    """Say whether the pod's node selector and size fit the node, if that were empty."""
    from kubernetes.utils.quantity import parse_quantity

    labels = node["metadata"].get("labels") or {}
    allocatable = node["status"].get("allocatable") or {}
    selector = (pod["spec"].get("nodeSelector") or {}).items()
    requests = read_resource_requests(pod).items()
    parse: Callable[[str], Decimal] = parse_quantity
    return all(labels.get(key) == value for key, value in selector) and all(
        parse(quantity) <= parse(allocatable.get(name, "0")) for name, quantity in requests
    )


def read_resource_requests(pod: KubernetesObject) -> dict[str, Any]:
    """Return what the pod's containers request: of each resource the first quantity.

    A limit without a request counts as a request: admission makes it one.
    """
    requests: dict[str, Any] = {}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        for name, quantity in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            requests.setdefault(name, quantity)
    return requests


def evict_pods(
    cluster: KubernetesApi, pods: Sequence[KubernetesObject], patience_s: float
) -> Sequence[KubernetesObject]:
    """Evict pods, each with its own grace period. Try those that a budget keeps again, for `patience_s`.

    Waits between two tries for as long as the server asks to. Return the pods that are still kept then. Raises the
    first other refusal, after trying all pods.
    """
    ends_at = time.monotonic() + patience_s
    kept, pause_s = _evict_each(cluster, pods)
    while kept and time.monotonic() + pause_s < ends_at:
        time.sleep(pause_s)
        kept, pause_s = _evict_each(cluster, kept)
    return kept


def _evict_each(cluster: KubernetesApi, pods: Sequence[KubernetesObject]) -> tuple[list[KubernetesObject], float]:
    """Evict pods. Return those that may not go now, and after how many seconds the next try makes sense."""
    kept = []
    refusals = []
    pause_s = EVICTION_RETRY_S
    for pod in pods:
        try:
            _evict_pod(cluster, pod)
        except ApiRefusal as refusal:
            if refusal.status == HTTP_TOO_MANY_REQUESTS:
                kept.append(pod)
                pause_s = max(pause_s, refusal.retry_after_s)
            else:
                refusals.append(refusal)
    if refusals:
        raise refusals[0]
    return kept, pause_s


def _evict_pod(cluster: KubernetesApi, pod: KubernetesObject) -> None:
    """Evict a pod that does not end already; one that is gone is no error. The uid protects a new pod of its name.

    Raises ApiRefusal, with the status 429 if a budget keeps the pod.
    """
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        return
    body = {
        "apiVersion": f"policy/{cluster.read_version().policy_version}",
        "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }
    request = ApiRequest("create", "pods/eviction", meta["name"], meta["namespace"])
    try:
        cluster.request(request, cluster.core.create_namespaced_pod_eviction, meta["name"], meta["namespace"], body)
    except ApiRefusal as refusal:
        if refusal.status not in (HTTP_NOT_FOUND, HTTP_CONFLICT):  # the pod, or its uid, is gone
            raise


def read_budgets(cluster: KubernetesApi) -> DisruptionBudgets:
    """Return the budgets of a cluster. They only explain: if they cannot be read, every pod says so and counts."""
    try:
        return DisruptionBudgets(cluster.list_budgets())
    except AssayError as error:
        return DisruptionBudgets([], f"whether a PodDisruptionBudget keeps it is unknown: {error.what}")


class DisruptionBudgets:
    """The PodDisruptionBudgets of a cluster, by namespace; `unread` says why they are not known."""

    def __init__(self, budgets: Iterable[KubernetesObject], unread: str = "") -> None:
        self._unread = unread
        self._by_namespace: dict[str, list[KubernetesObject]] = defaultdict(list)
        for budget in budgets:
            self._by_namespace[budget["metadata"]["namespace"]].append(budget)

    def find_blocker(self, pod: KubernetesObject) -> str:
        """Return what prevents an eviction of the pod, or how far the pod is in ending; "" if it can be evicted."""
        if (ending := describe_termination(pod)) or pod["status"].get("phase") == "Pending":
            return ending
        if self._unread:
            return self._unread
        labels = pod["metadata"].get("labels") or {}
        budgets = [
            budget
            for budget in self._by_namespace[pod["metadata"]["namespace"]]
            if matches_selector(budget["spec"].get("selector"), labels)
        ]
        if len(budgets) > 1:
            names = ", ".join(sorted(budget["metadata"]["name"] for budget in budgets))
            return f"the PodDisruptionBudgets {names} all select it, and Kubernetes evicts no such pod"
        return "".join(_describe_budget(budget) for budget in budgets if _blocks_eviction(budget, pod))


def _blocks_eviction(budget: KubernetesObject, pod: KubernetesObject) -> bool:
    """Say whether the API server would refuse. A pod that is not ready may go if the budget is met without it."""
    status = budget.get("status") or {}
    if status.get("disruptionsAllowed", 0) > 0:
        return False
    if is_ready(pod):
        return True
    is_met = 0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0)
    return not (is_met or budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow")


def _describe_budget(budget: KubernetesObject) -> str:
    name = f"{budget['metadata']['namespace']}/{budget['metadata']['name']}"
    conditions = (budget.get("status") or {}).get("conditions") or []
    times = (
        condition["lastTransitionTime"]
        for condition in conditions
        if condition["type"] == "DisruptionAllowed" and condition["status"] == "False"
    )
    since = next(times, "")
    return f"PodDisruptionBudget {name} allows no disruption{f' since {since}' if since else ''}"


def matches_selector(selector: KubernetesObject | None, labels: Mapping[str, str]) -> bool:
    """Say whether a selector selects these labels. An empty selector selects all, a missing one nothing."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    is_equal = all(labels.get(key) == value for key, value in wanted.items())
    return is_equal and all(
        _matches_expression(expression, labels) for expression in selector.get("matchExpressions") or []
    )


def _matches_expression(expression: KubernetesObject, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
