"""Which pods are customers', and what is told of them."""

from __future__ import annotations

from assay.actions.kubernetes_workloads.cluster import Object
from assay.actions.kubernetes_workloads.keys import SPARE
from assay.actions.kubernetes_workloads.times import age_s
from assay.actions.workloads import Job

MIRROR = "kubernetes.io/config.mirror"
ENDED = ("Succeeded", "Failed")
BELONGS_TO_THE_NODE = ("DaemonSet", "Node")


def is_customers(pod: Object, namespace: str) -> bool:
    """Say whether a pod runs for a customer: not the node's own, not ended, and not ours (of our `namespace`)."""
    if ended(pod) or MIRROR in (pod["metadata"].get("annotations") or {}):
        return False
    return _controller(pod).get("kind") not in BELONGS_TO_THE_NODE and not is_spare(pod, namespace)


def is_spare(pod: Object, namespace: str) -> bool:
    """Say whether a pod is one of ours that runs in spare time. The label alone proves nothing: anybody can set it."""
    return pod["metadata"]["namespace"] == namespace and SPARE in (pod["metadata"].get("labels") or {})


def ended(pod: Object) -> bool:
    """Say whether all containers of a pod have ended for good."""
    return pod["status"].get("phase") in ENDED


def job_of(pod: Object, kept_by: str = "", node: Object | None = None) -> Job:
    """Return a customer's pod as a job: `namespace/pod`, whose name is its controller's, owned by its namespace.

    Without its `node` nobody can say whether it is lost with that.
    """
    meta = pod["metadata"]
    owner = _controller(pod)
    name = f"{owner['kind']}/{owner['name']}" if owner else "no controller"
    since = pod["status"].get("startTime") or meta["creationTimestamp"]
    until = meta.get("deletionTimestamp")
    lost = bool(until) and age_s(until) > 0 and node is not None and not ready(node)
    return Job(f"{meta['namespace']}/{meta['name']}", name, f"namespace {meta['namespace']}", since, kept_by, lost)


def lingering(pod: Object) -> str:
    """Return what is to be said of a pod that was told to end, "" for one that was not."""
    meta = pod["metadata"]
    if not meta.get("deletionTimestamp"):
        return ""
    held = f", held by the finalizer {', '.join(meta['finalizers'])}" if meta.get("finalizers") else ""
    return f"is ending, was to be gone by {meta['deletionTimestamp']}{held}"


def ready(thing: Object) -> bool:
    """Say whether a pod counts as healthy, or a node's kubelet as there."""
    conditions = thing["status"].get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _controller(pod: Object) -> Object:
    owners = pod["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), {})
