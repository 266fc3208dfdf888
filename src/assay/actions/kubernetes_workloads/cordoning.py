"""Writing a cordon of ours on a node and taking it off again, however many others write on it too."""

from __future__ import annotations

from collections.abc import Callable

from assay.actions.kubernetes_workloads import node as nodes
from assay.actions.kubernetes_workloads.cluster import STRATEGIC, Cluster, Object
from assay.actions.kubernetes_workloads.keys import MANAGER
from assay.actions.kubernetes_workloads.refused import Question, Refused
from assay.actions.kubernetes_workloads.times import now
from assay.actions.workloads import our_reason
from assay.model.errors import Trouble

TRIES = 5
CONFLICT = 409


def read(cluster: Cluster, name: str) -> Object:
    """Return a node as it is now. Raises Trouble for one that the cluster does not know."""
    return dict(cluster.ask(Question("get", "nodes", name), cluster.core.read_node, name))


def close(cluster: Cluster, node: Object, reason: str, state: str, waits_for: str = "") -> None:
    """Cordon a node, which was read as `node`; `state` is `cordoned` or `draining`."""
    written = _written(cluster, node, lambda seen: nodes.closing(seen, reason, state, now()))
    message = f"{our_reason(reason)}{f'; waits for {waits_for}' if waits_for else ''}"
    _tell(cluster, written, "True", state.capitalize(), message)


def open_again(cluster: Cluster, node: Object) -> None:
    """Undo our own cordon of a node, which was read as `node`. A node that has nothing of ours is not written to."""
    if nodes.marked(node):
        written = _written(cluster, node, nodes.opening)
        _tell(cluster, written, "False", "InService", "assay keeps no pod from this node")


def _written(cluster: Cluster, node: Object, patch_of: Callable[[Object], Object | None]) -> Object:
    """Return the node after our patch, made anew from what is there for as long as others write in between."""
    name = node["metadata"]["name"]
    for _ in range(TRIES):
        patch = patch_of(node)
        if patch is None:
            return node
        try:
            return _patch(cluster, Question("patch", "nodes", name), cluster.core.patch_node, name, patch)
        except Refused as refused:
            if refused.status != CONFLICT:
                raise
        node = read(cluster, name)
    raise Trouble(f"the node was changed by others {TRIES} times while we wrote to it", where=name, fix="try again")


def _tell(cluster: Cluster, node: Object, status: str, reason: str, message: str) -> None:
    """Write our condition of the node."""
    name = node["metadata"]["name"]
    patch = nodes.condition(node, status, reason, message, now())
    _patch(cluster, Question("patch", "nodes/status", name), cluster.core.patch_node_status, name, patch)


def _patch(cluster: Cluster, question: Question, call: Callable[..., object], name: str, patch: Object) -> Object:
    return dict(cluster.ask(question, call, name, patch, field_manager=MANAGER, _content_type=STRATEGIC))
