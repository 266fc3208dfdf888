"""The scheduler: places pods where they fit, and preempts for those of higher priority, if it is one that does."""

from __future__ import annotations

from typing import Any

from tests.support.kubernetes.kube_store import Store, Thing, written

PREEMPTS = "default-scheduler"


def place(store: Store) -> None:
    """Place every pod that waits without a gate, highest priority first."""
    waiting = [pod for pod in store.all("pods") if _waits(pod)]
    for pod in sorted(waiting, key=lambda one: -one["spec"].get("priority", 0)):
        nodes = [node for node in store.all("nodes") if suits(pod, node)]
        free = next((node for node in nodes if _room(store, node, pod, [])), None)
        if free is not None:
            store.change("pods", pod, lambda one, name=free["metadata"]["name"]: _bind(one, name))
        elif pod["spec"]["schedulerName"] == PREEMPTS and pod["spec"].get("preemptionPolicy") != "Never":
            _preempt(store, pod, nodes)


def _waits(pod: Thing) -> bool:
    gone = pod["metadata"].get("deletionTimestamp") or pod["spec"].get("schedulingGates")
    return not gone and not pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending"


def suits(pod: Thing, node: Thing) -> bool:
    """Say whether a node's name, labels and taints suit a pod."""
    spec = node["spec"]
    taints = [*(spec.get("taints") or []), *([_UNSCHEDULABLE] if spec.get("unschedulable") else [])]
    tolerated = all(_tolerates(pod, taint) for taint in taints if taint["effect"] != "PreferNoSchedule")
    labels = node["metadata"].get("labels") or {}
    chosen = all(labels.get(key) == value for key, value in (pod["spec"].get("nodeSelector") or {}).items())
    return tolerated and chosen and _named(pod, node)


_UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def _tolerates(pod: Thing, taint: dict[str, Any]) -> bool:
    for one in pod["spec"].get("tolerations") or []:
        key = one.get("key") in (None, taint["key"])
        value = one.get("operator") == "Exists" or one.get("value") == taint.get("value")
        if key and value and one.get("effect") in (None, taint["effect"]):
            return True
    return False


def _named(pod: Thing, node: Thing) -> bool:
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    fields = [one for term in affinity["nodeSelectorTerms"] for one in term["matchFields"]]
    return all(one["key"] == "metadata.name" and node["metadata"]["name"] in one["values"] for one in fields)


def _room(store: Store, node: Thing, pod: Thing, without: list[Thing]) -> bool:
    has = {name: int(much) for name, much in node["status"]["allocatable"].items()}
    there = [one for one in store.all("pods") if one["spec"].get("nodeName") == node["metadata"]["name"]]
    for one in [*(one for one in there if one not in without), pod]:
        if one["status"]["phase"] not in ("Succeeded", "Failed"):
            for name, much in asked(one).items():
                has[name] = has.get(name, 0) - much
    return all(much >= 0 for much in has.values())


def asked(pod: Thing) -> dict[str, int]:
    """Return the first container's requests (whole numbers only)."""
    resources = pod["spec"]["containers"][0].get("resources") or {}
    return {name: int(much) for name, much in (resources.get("requests") or {}).items()}


def _preempt(store: Store, pod: Thing, nodes: list[Thing]) -> None:
    for node in nodes:
        name, mine = node["metadata"]["name"], pod["spec"].get("priority", 0)
        there = [one for one in store.all("pods") if one["spec"].get("nodeName") == name]
        victims = [one for one in there if one["spec"].get("priority", 0) < mine]
        if victims and _room(store, node, pod, victims):
            store.change("pods", pod, lambda one, name=name: one["status"].update(nominatedNodeName=name))
            for victim in victims:
                store.change("pods", victim, _disrupt)
            return


def _disrupt(pod: Thing) -> None:
    message = "default-scheduler: preempting to accommodate a higher priority pod"
    why = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": message}
    conditions = [one for one in pod["status"].get("conditions") or [] if one["type"] != "DisruptionTarget"]
    pod["status"]["conditions"] = [*conditions, {**why, "lastTransitionTime": written()}]
    end(pod, pod["spec"]["terminationGracePeriodSeconds"])


def end(pod: Thing, grace_s: int) -> None:
    """Tell a pod to end within its grace period."""
    if not pod["metadata"].get("deletionTimestamp"):
        pod["metadata"].update(deletionTimestamp=written(grace_s), deletionGracePeriodSeconds=grace_s)


def _bind(pod: Thing, node: str) -> None:
    pod["spec"]["nodeName"] = node
    pod["status"].pop("nominatedNodeName", None)
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": written()}
    pod["status"].update(startTime=written(), conditions=[placed])
