"""The disruption controller and the eviction subresource: the arithmetic of PodDisruptionBudgets."""

from __future__ import annotations

import math
from typing import Any

from tests.support.kubernetes.kube_select import selected
from tests.support.kubernetes.kube_store import Store, Thing, written

ALLOWED = "DisruptionAllowed"
FORBIDDEN = "Cannot evict pod as it would violate the pod's disruption budget."


class NotNow(Exception):
    """An eviction that is refused: the HTTP code, the message and the message of the cause."""

    def __init__(self, code: int, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.cause = code, message, cause


def count(store: Store, replicas: dict[str, int]) -> None:
    """Bring every budget's status up to date. `replicas` says how many pods each controller (by uid) should have."""
    for budget in list(store.all("poddisruptionbudgets")):
        pods = _covered(store, budget)
        expected = _expected(pods, replicas)
        status = {
            "currentHealthy": sum(1 for pod in pods if _healthy(pod)),
            "desiredHealthy": _desired(budget["spec"], expected),
            "expectedPods": expected,
            "observedGeneration": budget["metadata"].get("generation", 1),
        }
        allowed = max(0, status["currentHealthy"] - status["desiredHealthy"]) if expected else 0
        status |= {"disruptionsAllowed": allowed, "conditions": [_condition(budget, allowed)]}
        store.change("poddisruptionbudgets", budget, lambda one, new=status: one.update(status=new))


def admit(store: Store, pod: Thing) -> None:
    """Let a pod be evicted, or raise NotNow, in the order of the API server's eviction.go (1.31)."""
    if pod["status"].get("phase") in ("Pending", "Succeeded", "Failed") or pod["metadata"].get("deletionTimestamp"):
        return
    budgets = [one for one in store.all("poddisruptionbudgets") if pod in _covered(store, one)]
    if len(budgets) > 1:
        raise NotNow(
            500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    if budgets and not _spare_unhealthy(budgets[0], pod):
        _take_one(store, budgets[0])


def ready(pod: Thing) -> bool:
    """Say whether a pod's condition Ready is true."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions") or [])


def _take_one(store: Store, budget: Thing) -> None:
    status, name = budget["status"], budget["metadata"]["name"]
    if status.get("observedGeneration") != budget["metadata"].get("generation"):
        raise NotNow(429, FORBIDDEN, f"The disruption budget {name} is still being processed by the server.")
    if status["disruptionsAllowed"] == 0:
        cause = (
            f"The disruption budget {name} needs {status['desiredHealthy']} healthy pods"
            f" and has {status['currentHealthy']} currently"
        )
        raise NotNow(429, FORBIDDEN, cause)


def _spare_unhealthy(budget: Thing, pod: Thing) -> bool:
    if ready(pod):
        return False
    status = budget["status"]
    met = status["currentHealthy"] >= status["desiredHealthy"] > 0
    return met or budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"


def _covered(store: Store, budget: Thing) -> list[Thing]:
    selector, namespace = budget["spec"]["selector"], budget["metadata"]["namespace"]
    pods = store.all("pods", namespace)
    alive = (pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed"))
    return [pod for pod in alive if selected(selector, pod["metadata"].get("labels") or {})]


def _healthy(pod: Thing) -> bool:
    return ready(pod) and not pod["metadata"].get("deletionTimestamp")


def _expected(pods: list[Thing], replicas: dict[str, int]) -> int:
    owners = {owner["uid"] for pod in pods for owner in pod["metadata"].get("ownerReferences") or []}
    return sum(replicas.get(uid, 0) for uid in owners) or len(pods)


def _desired(spec: dict[str, Any], expected: int) -> int:
    if "minAvailable" in spec:
        return _number(spec["minAvailable"], expected)
    return max(0, expected - _number(spec["maxUnavailable"], expected))


def _number(told: int | str, of: int) -> int:
    return math.ceil(int(told.rstrip("%")) * of / 100) if isinstance(told, str) else told


def _condition(budget: Thing, allowed: int) -> dict[str, Any]:
    status = "True" if allowed else "False"
    known = next(iter((budget.get("status") or {}).get("conditions") or []), {})
    return {
        "type": ALLOWED,
        "status": status,
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": budget["metadata"].get("generation", 1),
        "lastTransitionTime": known["lastTransitionTime"] if known.get("status") == status else written(),
    }
