"""Which pods are customers', how each one reads as a customer's job, and which of them wait for what our pod holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

from assay.adapters.kubernetes.kubernetes_client import KubernetesObject
from assay.adapters.kubernetes.kubernetes_labels import SPARE_LABEL, measure_age_s
from assay.adapters.scheduler_adapter import CustomerJob

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
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


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
