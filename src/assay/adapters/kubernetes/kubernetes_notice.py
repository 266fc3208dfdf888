"""Shows notices in Kubernetes: the condition `assay.dev/InService` of a node, and an Event for each move.

The condition is for programs and for `kubectl describe node`, as those of node-problem-detector are; the Event is for
people who look at what happened. Its name follows from the move, so that a repeated order makes no second one.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from assay.adapters.kubernetes.kubernetes_client import (
    HTTP_CONFLICT,
    ApiRefusal,
    ApiRequest,
    KubernetesApi,
    KubernetesObject,
)
from assay.adapters.kubernetes.kubernetes_cordon import StatusCondition, read_node, write_condition
from assay.adapters.kubernetes.kubernetes_labels import IN_SERVICE_CONDITION, REPORTER
from assay.adapters.node_notice import NodeNotice
from assay.model.errors import AssayError
from assay.model.text.printable_text import escape_line

EVENT_NAMESPACE = "kube-system"
"""Where every version takes events about what is in no namespace, such as nodes; 1.20 takes them nowhere else."""
MAX_NOTE_BYTES, MAX_INSTANCE = 1000, 128
"""The API server's limits for the note of an event (1 kB) and for the name of who reports it."""
PARALLEL_NOTICES = 8
UNKNOWN_NODE = "the cluster does not know this node"


def show_notices(cluster: KubernetesApi, notices: Mapping[str, NodeNotice]) -> None:
    """Write each notice to its node. Raises AssayError that names the failures, after all others."""
    failures = _find_failures(notices, lambda node, notice: _show(cluster, node, notice))
    if failures:
        what = f"{len(failures)} of {len(notices)} notices could not be shown: {'; '.join(failures.values())}"
        raise AssayError(what)


def find_missing_notices(
    cluster: KubernetesApi, nodes: Mapping[str, KubernetesObject], notices: Mapping[str, NodeNotice]
) -> dict[str, str]:
    """Return why a notice is not shown, by node. `nodes` are the nodes as they were just read."""
    return _find_failures(notices, lambda node, notice: _verify(cluster, nodes.get(node), node, notice))


def _find_failures(notices: Mapping[str, NodeNotice], work: Callable[[str, NodeNotice], str]) -> dict[str, str]:
    """Do some work for each node, several at a time; return what it answers or raises, where that is not ""."""

    def attempt(node: str) -> str:
        try:
            return work(node, notices[node])
        except AssayError as error:
            return error.what

    with ThreadPoolExecutor(PARALLEL_NOTICES) as threads:
        return {node: why for node, why in zip(notices, threads.map(attempt, notices), strict=True) if why}


def _show(cluster: KubernetesApi, name: str, notice: NodeNotice) -> str:
    node, wanted = read_node(cluster, name), _make_condition(notice)
    if find_condition(node, IN_SERVICE_CONDITION) != wanted:
        write_condition(cluster, node, wanted)
    if notice.move:
        _create_event(cluster, _make_event(name, notice))
    return ""


def _verify(cluster: KubernetesApi, node: KubernetesObject | None, name: str, notice: NodeNotice) -> str:
    if node is None:
        return UNKNOWN_NODE
    if find_condition(node, IN_SERVICE_CONDITION) != _make_condition(notice):
        return f"the node's condition {IN_SERVICE_CONDITION} does not say so"
    if notice.move:
        event = _name_event(notice)
        request = ApiRequest("get", "events.events.k8s.io", event, EVENT_NAMESPACE)
        found = cluster.request(request, cluster.events.read_namespaced_event, event, EVENT_NAMESPACE)
        about = (found.get("regarding") or {}).get("name")
        return "" if about == name else f"the event {event} is about {about}"
    return ""


def find_condition(node: KubernetesObject, kind: str) -> StatusCondition | None:
    """Return a condition of a node, None if the node has none of this type."""
    for one in node["status"].get("conditions") or []:
        if one["type"] == kind:
            return StatusCondition(kind, one["status"], one.get("reason", ""), one.get("message", ""))
    return None


def _make_condition(notice: NodeNotice) -> StatusCondition:
    return StatusCondition(IN_SERVICE_CONDITION, str(notice.in_service), _name_reason(notice), escape_line(notice.text))


def _name_reason(notice: NodeNotice) -> str:
    return "InService" if notice.in_service else "OutOfService"


def _name_event(notice: NodeNotice) -> str:
    return f"assay-{notice.move}"


def _create_event(cluster: KubernetesApi, event: KubernetesObject) -> None:
    request = ApiRequest("create", "events.events.k8s.io", namespace=EVENT_NAMESPACE)
    try:
        cluster.request(request, cluster.events.create_namespaced_event, EVENT_NAMESPACE, event)
    except ApiRefusal as refusal:
        if refusal.status != HTTP_CONFLICT:  # an earlier attempt made it
            raise


def _make_event(node: str, notice: NodeNotice) -> KubernetesObject:
    """Return the Event. `uid` is the node's name, as kubelets have it: `kubectl describe node` looks for that."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": _name_event(notice), "namespace": EVENT_NAMESPACE},
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": "Normal" if notice.in_service else "Warning",
        "reason": _name_reason(notice),
        "action": "ReturnToService" if notice.in_service else "LeaveService",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "reportingController": REPORTER,
        "reportingInstance": socket.gethostname()[:MAX_INSTANCE],
        "note": escape_line(notice.text).encode()[:MAX_NOTE_BYTES].decode(errors="ignore"),
    }
