"""Which pods are customers', and what is told of them."""

from __future__ import annotations

from assay.schedulers.kubernetes_client import KubernetesObject
from assay.schedulers.kubernetes_labels import SPARE_LABEL, measure_age_s
from assay.schedulers.scheduler_adapter import CustomerJob

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
ENDED_PHASES = ("Succeeded", "Failed")
NODE_OWNER_KINDS = ("DaemonSet", "Node")


def is_customer_pod(pod: KubernetesObject, namespace: str) -> bool:
    """Say whether a pod runs for a customer: not the node's own, not ended, and not ours (of our `namespace`)."""
    if has_ended(pod) or MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}):
        return False
    return _find_controller(pod).get("kind") not in NODE_OWNER_KINDS and not is_spare_pod(pod, namespace)


def is_spare_pod(pod: KubernetesObject, namespace: str) -> bool:
    """Say whether a pod is one of ours that runs in spare time. The label alone proves nothing: anybody can set it."""
    return pod["metadata"]["namespace"] == namespace and SPARE_LABEL in (pod["metadata"].get("labels") or {})


def has_ended(pod: KubernetesObject) -> bool:
    """Say whether all containers of a pod have ended for good."""
    return pod["status"].get("phase") in ENDED_PHASES


def make_customer_job(pod: KubernetesObject, kept_by: str = "", node: KubernetesObject | None = None) -> CustomerJob:
    """Return a customer's pod as a job: `namespace/pod`, whose name is its controller's, owned by its namespace.

    Without its `node` nobody can say whether it is lost with that.
    """
    meta = pod["metadata"]
    owner = _find_controller(pod)
    name = f"{owner['kind']}/{owner['name']}" if owner else "no controller"
    since = pod["status"].get("startTime") or meta["creationTimestamp"]
    until = meta.get("deletionTimestamp")
    lost = bool(until) and measure_age_s(until) > 0 and node is not None and not is_ready(node)
    return CustomerJob(
        f"{meta['namespace']}/{meta['name']}", name, f"namespace {meta['namespace']}", since, kept_by, lost
    )


def describe_termination(pod: KubernetesObject) -> str:
    """Return what is to be said of a pod that was told to end, "" for one that was not."""
    meta = pod["metadata"]
    if not meta.get("deletionTimestamp"):
        return ""
    held = f", held by the finalizer {', '.join(meta['finalizers'])}" if meta.get("finalizers") else ""
    return f"is ending, was to be gone by {meta['deletionTimestamp']}{held}"


def is_ready(thing: KubernetesObject) -> bool:
    """Say whether a pod counts as healthy, or a node's kubelet as there."""
    conditions = thing["status"].get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _find_controller(pod: KubernetesObject) -> KubernetesObject:
    owners = pod["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), {})
