"""Evicts customers' pods, as far as their PodDisruptionBudgets allow, and says which budget forbids it.

No pod is ever deleted instead. Label selectors mean what they mean in Kubernetes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from assay.adapters.kubernetes.kubernetes_client import (
    HTTP_CONFLICT,
    HTTP_NOT_FOUND,
    ApiRefusal,
    ApiRequest,
    KubernetesApi,
    KubernetesObject,
)
from assay.adapters.kubernetes.kubernetes_credentials import HTTP_TOO_MANY_REQUESTS
from assay.adapters.kubernetes.kubernetes_pods import describe_termination, is_ready
from assay.model.errors import AssayError

EVICTION_RETRY_S = 1.0


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
    kept, refusals, pause_s = [], [], EVICTION_RETRY_S
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
        one["lastTransitionTime"]
        for one in conditions
        if one["type"] == "DisruptionAllowed" and one["status"] == "False"
    )
    since = next(times, "")
    return f"PodDisruptionBudget {name} allows no disruption{f' since {since}' if since else ''}"


def matches_selector(selector: KubernetesObject | None, labels: Mapping[str, str]) -> bool:
    """Say whether a selector selects these labels. An empty selector selects all, a missing one nothing."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    is_equal = all(labels.get(key) == value for key, value in wanted.items())
    return is_equal and all(_matches_expression(one, labels) for one in selector.get("matchExpressions") or [])


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
