"""How a pod of ours ended, and for whom it made room."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from assay.actions.kubernetes_workloads.cluster import Object
from assay.actions.kubernetes_workloads.pod import job_of
from assay.actions.workloads import Spare, named

OUT_OF_TIME = "DeadlineExceeded"


def exit_of(pod: Object) -> tuple[int, str] | None:
    """Return the exit status and last words of a pod's first container; None for one that did not end by itself."""
    if pod["status"].get("reason") or pod["metadata"].get("deletionTimestamp"):
        return None  # DeadlineExceeded, Evicted, Preempting, UnexpectedAdmissionError: somebody else ended it
    name = pod["spec"]["containers"][0]["name"]
    states = [one.get("state") or {} for one in pod["status"].get("containerStatuses") or [] if one["name"] == name]
    ended = next((state["terminated"] for state in states if state.get("terminated")), None)
    return None if ended is None else (int(ended["exitCode"]), str(ended.get("message") or ""))


def put_out(pod: Object, promised: Callable[[], Iterable[Object]]) -> str:
    """Return who or what ended a pod before its time, "" where nobody did; `promised` asks who shall have the node."""
    disrupted = [one for one in pod["status"].get("conditions") or [] if one["type"] == "DisruptionTarget"]
    if disrupted and disrupted[0]["status"] == "True":
        takers = named(job_of(taker) for taker in promised())
        return takers or str(disrupted[0].get("message") or disrupted[0].get("reason") or "the cluster")
    reason = pod["status"].get("reason")
    if reason and reason != OUT_OF_TIME:
        return f"the node's kubelet: {reason}: {pod['status'].get('message', '')}".rstrip(": ")
    return "whoever deleted our pod" if pod["metadata"].get("deletionTimestamp") else ""


def unplaced(pod: Object) -> Spare:
    """Return what came of a pod whose time is over: why it never began, where it did not."""
    waited = [one for one in pod["status"].get("conditions") or [] if one["status"] == "False" and one.get("message")]
    return Spare(None, errors="; ".join(f"{one['type']}: {one['message']}" for one in waited))
