"""Ending customers' pods by eviction, which PodDisruptionBudgets may refuse. Nothing is ever deleted in its place.

Label selectors, as Kubernetes means them.

PodDisruptionBudgets: which of them forbids to evict a pod now, and since when.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from assay.schedulers.kubernetes_client import ApiRefusal, ApiRequest, KubernetesApi, KubernetesObject
from assay.schedulers.kubernetes_pods import describe_termination, is_ready


def matches_selector(selector: KubernetesObject | None, labels: Mapping[str, str]) -> bool:
    """Say whether a selector selects these labels: an empty one selects all, none at all selects nothing."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    exact = all(labels.get(key) == value for key, value in wanted.items())
    return exact and all(_matches_expression(one, labels) for one in selector.get("matchExpressions") or [])


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


class DisruptionBudgets:
    """The budgets of a cluster, by namespace."""

    def __init__(self, budgets: Iterable[KubernetesObject]) -> None:
        self._by_namespace: dict[str, list[KubernetesObject]] = defaultdict(list)
        for budget in budgets:
            self._by_namespace[budget["metadata"]["namespace"]].append(budget)

    def find_blocker(self, pod: KubernetesObject) -> str:
        """Return what keeps a pod from being evicted, "" for nothing. One that is ending already needs no eviction."""
        if (ending := describe_termination(pod)) or pod["status"].get("phase") == "Pending":
            return ending
        labels = pod["metadata"].get("labels") or {}
        mine = [
            one
            for one in self._by_namespace[pod["metadata"]["namespace"]]
            if matches_selector(one["spec"].get("selector"), labels)
        ]
        if len(mine) > 1:
            names = ", ".join(sorted(one["metadata"]["name"] for one in mine))
            return f"the PodDisruptionBudgets {names} all name it, and Kubernetes evicts no such pod"
        return "".join(_describe_budget(budget) for budget in mine if _blocks_eviction(budget, pod))


def _blocks_eviction(budget: KubernetesObject, pod: KubernetesObject) -> bool:
    """Say whether the API server would refuse: a pod that is not ready may go where the budget is met without it."""
    status = budget.get("status") or {}
    if status.get("disruptionsAllowed", 0) > 0:
        return False
    if is_ready(pod):
        return True
    met = 0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0)
    return not (met or budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow")


def _describe_budget(budget: KubernetesObject) -> str:
    name = f"{budget['metadata']['namespace']}/{budget['metadata']['name']}"
    conditions = (budget.get("status") or {}).get("conditions") or []
    since = next((one["lastTransitionTime"] for one in conditions if _is_exhausted(one)), "")
    return f"PodDisruptionBudget {name} allows no disruption{f' since {since}' if since else ''}"


def _is_exhausted(condition: KubernetesObject) -> bool:
    return bool(condition["type"] == "DisruptionAllowed" and condition["status"] == "False")


EVICTION_RETRY_S = 1.0
HTTP_TOO_MANY_REQUESTS = 429
"""A budget allows no disruption now; `kept_by` of the pod's job names it."""

HTTP_POD_GONE = (404, 409)
"""The pod is not there, or another of its name is."""


def evict_pods(
    cluster: KubernetesApi, pods: Sequence[KubernetesObject], patience_s: float
) -> Sequence[KubernetesObject]:
    """Evict pods, each with its own grace period; ask again for those that a budget keeps, for `patience_s`.

    Returns the pods that are still kept then. Raises the first other refusal, after all pods were asked for.
    """
    ends_at = time.monotonic() + patience_s
    left = _evict_each(cluster, pods)
    while left and time.monotonic() + EVICTION_RETRY_S < ends_at:
        time.sleep(EVICTION_RETRY_S)
        left = _evict_each(cluster, left)
    return left


def _evict_each(cluster: KubernetesApi, pods: Sequence[KubernetesObject]) -> list[KubernetesObject]:
    """Evict pods; return those that may not go now."""
    left, refusals = [], []
    for pod in pods:
        try:
            if not _evict_pod(cluster, pod):
                left.append(pod)
        except ApiRefusal as refused:
            refusals.append(refused)
    if refusals:
        raise refusals[0]
    return left


def _evict_pod(cluster: KubernetesApi, pod: KubernetesObject) -> bool:
    """Say whether a pod was told to end, now or before. Its uid goes along: a name may pass to a new pod elsewhere."""
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        return True
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }
    question = ApiRequest("create", "pods/eviction", meta["name"], meta["namespace"])
    try:
        cluster.request(question, cluster.core.create_namespaced_pod_eviction, meta["name"], meta["namespace"], body)
    except ApiRefusal as refused:
        if refused.status not in (HTTP_TOO_MANY_REQUESTS, *HTTP_POD_GONE):
            raise
        return refused.status != HTTP_TOO_MANY_REQUESTS
    return True
