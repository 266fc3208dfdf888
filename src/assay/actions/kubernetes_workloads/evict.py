"""Ending customers' pods by eviction, which PodDisruptionBudgets may refuse. Nothing is ever deleted in its place."""

from __future__ import annotations

import time
from collections.abc import Sequence

from assay.actions.kubernetes_workloads.cluster import Cluster, Object
from assay.actions.kubernetes_workloads.refused import Question, Refused

PAUSE_S = 1.0
NOT_NOW = 429
"""A budget allows no disruption now; `kept_by` of the pod's job names it."""

MEANWHILE_GONE = (404, 409)
"""The pod is not there, or another of its name is."""


def evict_all(cluster: Cluster, pods: Sequence[Object], patience_s: float) -> Sequence[Object]:
    """Evict pods, each with its own grace period; ask again for those that a budget keeps, for `patience_s`.

    Returns the pods that are still kept then. Raises the first other refusal, after all pods were asked for.
    """
    ends_at = time.monotonic() + patience_s
    left = _kept(cluster, pods)
    while left and time.monotonic() + PAUSE_S < ends_at:
        time.sleep(PAUSE_S)
        left = _kept(cluster, left)
    return left


def _kept(cluster: Cluster, pods: Sequence[Object]) -> list[Object]:
    """Evict pods; return those that may not go now."""
    left, refusals = [], []
    for pod in pods:
        try:
            if not _evicted(cluster, pod):
                left.append(pod)
        except Refused as refused:
            refusals.append(refused)
    if refusals:
        raise refusals[0]
    return left


def _evicted(cluster: Cluster, pod: Object) -> bool:
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
    question = Question("create", "pods/eviction", meta["name"], meta["namespace"])
    try:
        cluster.ask(question, cluster.core.create_namespaced_pod_eviction, meta["name"], meta["namespace"], body)
    except Refused as refused:
        if refused.status not in (NOT_NOW, *MEANWHILE_GONE):
            raise
        return refused.status != NOT_NOW
    return True
