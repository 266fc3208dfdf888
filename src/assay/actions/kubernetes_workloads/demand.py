"""Customers' pods that wait for what our pod holds: not every scheduler preempts (Volcano, Kueue)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal

from assay.actions.kubernetes_workloads.cluster import Object
from assay.actions.kubernetes_workloads.pod import is_customers
from assay.actions.kubernetes_workloads.spare_pod import asked_for


def waiting_for(node: Object, ours: Object, pods: Iterable[Object], namespace: str) -> Iterator[Object]:
    """Yield the pods without a node that ask for a resource that our pod holds, and that could run on this node."""
    held = set(asked_for(ours))
    for pod in pods:
        waits = not pod["spec"].get("nodeName") and is_customers(pod, namespace)
        if waits and held & set(asked_for(pod)) and _fits(pod, node):
            yield pod


def _fits(pod: Object, node: Object) -> bool:
    """Say whether the empty node could hold the pod, as far as its node selector and its size tell."""
    from kubernetes.utils.quantity import parse_quantity

    labels = node["metadata"].get("labels") or {}
    has = node["status"].get("allocatable") or {}
    wanted = (pod["spec"].get("nodeSelector") or {}).items()
    size = asked_for(pod).items()
    right = all(labels.get(key) == value for key, value in wanted)
    parsed: Callable[[str], Decimal] = parse_quantity
    return right and all(parsed(much) <= parsed(has.get(name, "0")) for name, much in size)
