"""PodDisruptionBudgets: which of them forbids to evict a pod now, and since when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from assay.actions.kubernetes_workloads.cluster import Object
from assay.actions.kubernetes_workloads.pod import lingering, ready
from assay.actions.kubernetes_workloads.selector import selects


class Budgets:
    """The budgets of a cluster, by namespace."""

    def __init__(self, budgets: Iterable[Object]) -> None:
        self._of: dict[str, list[Object]] = defaultdict(list)
        for budget in budgets:
            self._of[budget["metadata"]["namespace"]].append(budget)

    def keeps(self, pod: Object) -> str:
        """Return what keeps a pod from being evicted, "" for nothing. One that is ending already needs no eviction."""
        if (ending := lingering(pod)) or pod["status"].get("phase") == "Pending":
            return ending
        labels = pod["metadata"].get("labels") or {}
        mine = [one for one in self._of[pod["metadata"]["namespace"]] if selects(one["spec"].get("selector"), labels)]
        if len(mine) > 1:
            names = ", ".join(sorted(one["metadata"]["name"] for one in mine))
            return f"the PodDisruptionBudgets {names} all name it, and Kubernetes evicts no such pod"
        return "".join(_said(budget) for budget in mine if _forbids(budget, pod))


def _forbids(budget: Object, pod: Object) -> bool:
    """Say whether the API server would refuse: a pod that is not ready may go where the budget is met without it."""
    status = budget.get("status") or {}
    if status.get("disruptionsAllowed", 0) > 0:
        return False
    if ready(pod):
        return True
    met = 0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0)
    return not (met or budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow")


def _said(budget: Object) -> str:
    name = f"{budget['metadata']['namespace']}/{budget['metadata']['name']}"
    conditions = (budget.get("status") or {}).get("conditions") or []
    since = next((one["lastTransitionTime"] for one in conditions if _stopped(one)), "")
    return f"PodDisruptionBudget {name} allows no disruption{f' since {since}' if since else ''}"


def _stopped(condition: Object) -> bool:
    return bool(condition["type"] == "DisruptionAllowed" and condition["status"] == "False")
