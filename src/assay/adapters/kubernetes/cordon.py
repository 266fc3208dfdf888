"""What assay writes on a Kubernetes node: our cordon, and what customers are told. Also why no pod may be placed there.

Only our own keys are changed; anything without them is somebody else's. A write is repeated if somebody else writes to
the node at the same time.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from assay.adapters.kubernetes.client import (
    HTTP_CONFLICT,
    STRATEGIC_MERGE_PATCH,
    ApiRefusal,
    ApiRequest,
    KubernetesApi,
    KubernetesObject,
)
from assay.adapters.scheduler import VERIFY_UNDRAIN, NodeNotice
from assay.model.cordon_ownership import prefix_reason
from assay.model.errors import AssayError
from assay.model.text.safe_text import escape_line

DOMAIN = "assay.dev"
FIELD_MANAGER = "assay"
"""Our field manager: the API server records it as the writer of a field."""
CORDON_KEY = f"{DOMAIN}/cordon"
"""Of a node: the key of our taint, and of the annotation that holds the reason."""
SINCE_ANNOTATION = f"{DOMAIN}/since"
"""Annotation of a node: when our cordon was set."""
UNSCHEDULABLE_ANNOTATION = f"{DOMAIN}/unschedulable"
"""Annotation of a node: "true" if it was us who made it unschedulable."""
VERIFY_UNDRAIN_ANNOTATION = f"{DOMAIN}/verify-undrain"
"""Annotation that people set on a node that they cordoned: why, and that its next passed verification opens it."""
STATE_LABEL = f"{DOMAIN}/state"
"""Label of a node: `cordoned` or `draining` while it has our cordon."""
LAST_KEY = f"{DOMAIN}/last"
"""Key of our taint of a node to which pods come last."""
CONDITION_TYPE = "AssayCordoned"
"""Type of our condition of a node."""
IN_SERVICE_CONDITION = f"{DOMAIN}/InService"
"""Type of the condition that tells a node's customers whether it serves, and when it is expected back."""
REPORTER = f"{DOMAIN}/assay"
"""Who reports our Events."""
SPARE_LABEL = f"{DOMAIN}/spare"
"""Label of our pod in a node's spare time, and of what belongs to that pod."""
NODE_ANNOTATION = f"{DOMAIN}/node"
"""Annotation of that pod: its node."""
WATCHED_ANNOTATION = f"{DOMAIN}/watched"
"""Annotation of that pod: when a controller last watched it."""
MAX_TAINT_VALUE = 63
"""The API server's limit for a taint's value, of letters, digits, `-`, `_` and `.`."""
MAX_PATCH_TRIES = 5
AUTOMATIC_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node-role.kubernetes.io/")
"""How the keys of taints begin that Kubernetes sets by itself, or that every node of a role has."""
OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"
"""The one of them that only a person sets."""
TIME_PRECISION = timedelta(seconds=1)
"""The API server writes down the second in which a field was set."""
EVENT_NAMESPACE = "kube-system"
"""Where every version takes events about what is in no namespace, such as nodes; 1.20 takes them nowhere else."""
MAX_NOTE_BYTES = 1000
MAX_INSTANCE = 128
"""The API server's limits for the note of an event (1 kB) and for the name of who reports it."""
PARALLEL_NOTICES = 8
UNKNOWN_NODE = "the cluster does not know this node"
_MARK_PATHS = (("f:spec", "f:unschedulable"), ("f:metadata", "f:annotations", f"f:{VERIFY_UNDRAIN_ANNOTATION}"))


def format_kubernetes_now() -> str:
    """Return the current time as RFC 3339, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def measure_age_s(text: str) -> float:
    """Return how many seconds ago a time was."""
    return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()


class StatusCondition(NamedTuple):
    """A condition of a node that is ours. `type` says whose it is; `reason` is one word, `message` a sentence."""

    type: str
    status: str
    reason: str
    message: str


def read_node(cluster: KubernetesApi, name: str) -> KubernetesObject:
    """Return a node as it is now. Raises ApiRefusal for an unknown node."""
    return dict(cluster.request(ApiRequest("get", "nodes", name), cluster.core.read_node, name))


def cordon_node(cluster: KubernetesApi, node: KubernetesObject, reason: str, state: str, waits_for: str = "") -> None:
    """Cordon a node, which was read as `node`. `state` is `cordoned` or `draining`."""
    patched = patch_with_retries(
        cluster, node, lambda seen: build_cordon_patch(seen, reason, state, format_kubernetes_now())
    )
    message = f"{format_cordon_reason(reason)}{f'; waits for {escape_line(waits_for)}' if waits_for else ''}"
    write_condition(cluster, patched, StatusCondition(CONDITION_TYPE, "True", state.capitalize(), message))


def uncordon_node(cluster: KubernetesApi, node: KubernetesObject) -> None:
    """Undo our cordon of a node, which was read as `node`. A node without anything of ours is not written to."""
    if has_our_marks(node):
        patched = patch_with_retries(cluster, node, build_uncordon_patch)
        condition = StatusCondition(CONDITION_TYPE, "False", "InService", "assay keeps no pod from this node")
        write_condition(cluster, patched, condition)


def describe_node_cordon(node: KubernetesObject) -> str:
    """Return why no pod may be placed on the node, "" if pods may: our reason, and who else has closed it."""
    theirs = describe_foreign_cordon(node)
    if _has_our_taint(node) or (node["spec"].get("unschedulable") and not theirs):
        ours = prefix_reason(read_annotations(node).get(CORDON_KEY) or "the reason was taken off the node")
        return f"{ours}; also {theirs}" if theirs else ours
    return theirs


def describe_foreign_cordon(node: KubernetesObject) -> str:
    """Return who else made the node unschedulable, and whether they ask for a verification; "" for nobody."""
    if not is_foreign_cordon(node):
        return ""
    asked = read_annotations(node).get(VERIFY_UNDRAIN_ANNOTATION)
    return _describe_writer(node) + (f"; {VERIFY_UNDRAIN}: {asked}".removesuffix(": ") if asked is not None else "")


def describe_foreign_taints(node: KubernetesObject) -> str:
    """Return the taints by which others keep pods from the node, as `tainted KEY=VALUE:EFFECT`; "" for none."""
    # One named after a resource of the node, such as `nvidia.com/gpu`, only keeps away who does not need that.
    resources = node["status"].get("capacity") or {}
    texts = []
    for taint in _list_other_taints(node):
        key, effect = taint["key"], taint.get("effect")
        is_automatic = key.startswith(AUTOMATIC_TAINTS) and key != OUT_OF_SERVICE_TAINT
        if effect in ("NoSchedule", "NoExecute") and not is_automatic and key not in resources:
            value = f"={taint['value']}" if taint.get("value") else ""
            texts.append(f"tainted {key}{value}:{effect}")
    return "; ".join(texts)


def is_foreign_cordon(node: KubernetesObject) -> bool:
    """Say whether somebody else made the node unschedulable."""
    is_ours = (
        read_annotations(node).get(UNSCHEDULABLE_ANNOTATION) == "true"
        and _find_writer(node).get("manager", FIELD_MANAGER) == FIELD_MANAGER
    )
    return bool(node["spec"].get("unschedulable")) and not is_ours


def has_our_marks(node: KubernetesObject) -> bool:
    """Say whether anything of ours is on the node's metadata or spec."""
    labels = node["metadata"].get("labels") or {}
    return (
        _has_our_taint(node)
        or STATE_LABEL in labels
        or not {CORDON_KEY, SINCE_ANNOTATION, UNSCHEDULABLE_ANNOTATION}.isdisjoint(read_annotations(node))
    )


def build_cordon_patch(node: KubernetesObject, reason: str, state: str, moment: str) -> KubernetesObject | None:
    """Return the patch that cordons the node, None if the node has all of it already.

    A patch replaces the whole list of taints. With `resourceVersion`, the API server refuses it if the list changed.
    """
    annotations = read_annotations(node)
    is_ours = not is_foreign_cordon(node)
    is_closed = _has_our_taint(node) and bool(node["spec"].get("unschedulable"))
    has_label = (node["metadata"].get("labels") or {}).get(STATE_LABEL) == state
    if is_closed and annotations.get(CORDON_KEY) == format_cordon_reason(reason) and has_label:
        return None
    since = annotations.get(SINCE_ANNOTATION, moment) if _has_our_taint(node) else moment
    wanted = {
        CORDON_KEY: format_cordon_reason(reason),
        SINCE_ANNOTATION: since,
        UNSCHEDULABLE_ANNOTATION: "true" if is_ours else None,
    }
    taint = {"key": CORDON_KEY, "value": format_taint_value(reason), "effect": "NoSchedule"}
    spec: KubernetesObject = {"taints": [*_list_other_taints(node), taint]}
    if is_ours:
        spec["unschedulable"] = True
    return _build_patch(node, wanted, state, spec)


def build_uncordon_patch(node: KubernetesObject) -> KubernetesObject | None:
    """Return the patch that undoes our cordon, None if there is none. Somebody else's cordon stays."""
    if not has_our_marks(node):
        return None
    spec: KubernetesObject = {"taints": _list_other_taints(node) or None}
    if not is_foreign_cordon(node):
        spec["unschedulable"] = None
    annotations = {CORDON_KEY: None, SINCE_ANNOTATION: None, UNSCHEDULABLE_ANNOTATION: None}
    return _build_patch(node, annotations, None, spec)


def build_condition_patch(node: KubernetesObject, condition: StatusCondition, moment: str) -> KubernetesObject:
    """Return the patch of the node's status that sets one condition. Those of other types stay as they are."""
    conditions = node["status"].get("conditions") or []
    known: KubernetesObject = next(
        (known_condition for known_condition in conditions if known_condition["type"] == condition.type), {}
    )
    since = known["lastTransitionTime"] if known.get("status") == condition.status else moment
    times = {"lastHeartbeatTime": moment, "lastTransitionTime": since}
    return {"status": {"conditions": [{**condition._asdict(), **times}]}}


def read_annotations(thing: KubernetesObject) -> dict[str, str]:
    """Return an object's annotations."""
    return thing["metadata"].get("annotations") or {}


def format_cordon_reason(reason: str) -> str:
    """Return a reason as an annotation and a condition hold it: with our prefix, on one printable line."""
    return escape_line(prefix_reason(reason))


def format_taint_value(reason: str) -> str:
    """Return a reason as a taint's value can hold it."""
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._") else "-" for sign in reason)
    words = "-".join(word for word in plain.split("-") if word)
    return words[:MAX_TAINT_VALUE].strip("-._")


def patch_with_retries(
    cluster: KubernetesApi, node: KubernetesObject, build: Callable[[KubernetesObject], KubernetesObject | None]
) -> KubernetesObject:
    """Return the node after our patch. If somebody wrote to it in between, build the patch anew."""
    name = node["metadata"]["name"]
    for _ in range(MAX_PATCH_TRIES):
        patch = build(node)
        if patch is None:
            return node
        try:
            return _patch(cluster, ApiRequest("patch", "nodes", name), cluster.core.patch_node, name, patch)
        except ApiRefusal as refusal:
            if refusal.status != HTTP_CONFLICT:
                raise
        node = read_node(cluster, name)
    problem = f"others changed the node {MAX_PATCH_TRIES} times while we wrote to it"
    raise AssayError(problem, where=name, fix="try again")


def _build_patch(
    node: KubernetesObject, annotations: Mapping[str, str | None], state: str | None, spec: KubernetesObject
) -> KubernetesObject:
    version = node["metadata"]["resourceVersion"]
    metadata = {"resourceVersion": version, "annotations": annotations, "labels": {STATE_LABEL: state}}
    return {"metadata": metadata, "spec": spec}


def _has_our_taint(node: KubernetesObject) -> bool:
    return any(taint["key"] == CORDON_KEY for taint in node["spec"].get("taints") or [])


def _list_other_taints(node: KubernetesObject) -> list[Any]:
    return [taint for taint in node["spec"].get("taints") or [] if taint["key"] != CORDON_KEY]


def _find_writer(node: KubernetesObject) -> dict[str, str]:
    """Return the entry of the last writer of `unschedulable`, as the API server records it."""
    for entry in node["metadata"].get("managedFields") or []:
        if "f:unschedulable" in (entry.get("fieldsV1") or {}).get("f:spec", {}):
            return dict(entry)
    return {}


def _describe_writer(node: KubernetesObject) -> str:
    writer = _find_writer(node)
    manager = f" by {writer['manager']}" if writer.get("manager") else ""
    since = f" since {writer['time']}" if writer.get("time") else ""
    return f"made unschedulable{manager}{since}, not by assay"


def write_condition(cluster: KubernetesApi, node: KubernetesObject, condition: StatusCondition) -> None:
    """Set one condition of a node, which was read as `node`."""
    name = node["metadata"]["name"]
    patch = build_condition_patch(node, condition, format_kubernetes_now())
    _patch(cluster, ApiRequest("patch", "nodes/status", name), cluster.core.patch_node_status, name, patch)


def _patch(
    cluster: KubernetesApi, request: ApiRequest, call: Callable[..., object], name: str, patch: KubernetesObject
) -> KubernetesObject:
    return dict(
        cluster.request(request, call, name, patch, field_manager=FIELD_MANAGER, _content_type=STRATEGIC_MERGE_PATCH)
    )


def undrain_node(cluster: KubernetesApi, node: KubernetesObject, began: datetime) -> str:
    """Open a node, which was read as `node`, if both marks were set before `began`. Return their reason, or "".

    The marks are `kubectl cordon` and our annotation, which asks for the verification: a cordon holds no reason. If
    somebody writes to the node meanwhile, it is judged again as it is then.
    """
    reasons: list[str] = []

    def build(seen: KubernetesObject) -> KubernetesObject | None:
        due = _is_due(seen, began)
        reasons.append(describe_foreign_cordon(seen) if due else "")
        metadata = {
            "resourceVersion": seen["metadata"]["resourceVersion"],
            "annotations": {VERIFY_UNDRAIN_ANNOTATION: None},
        }
        return {"metadata": metadata, "spec": {"unschedulable": None}} if due else None

    patch_with_retries(cluster, node, build)
    return reasons[-1]


def _is_due(node: KubernetesObject, began: datetime) -> bool:
    """Say whether somebody else's cordon asks for a verification, and was there in this form before it `began`.

    A mark whose time the API server does not tell may be newer.
    """
    if VERIFY_UNDRAIN_ANNOTATION not in (node["metadata"].get("annotations") or {}):
        return False
    times = [list(_list_write_times(node, path)) for path in _MARK_PATHS]
    known = all(times) and bool(describe_foreign_cordon(node))
    return known and all(at + TIME_PRECISION <= began for own_times in times for at in own_times)


def _list_write_times(node: KubernetesObject, path: tuple[str, ...]) -> Iterator[datetime]:
    """Yield when each writer of a field wrote last, as the API server records it."""
    for entry in node["metadata"].get("managedFields") or []:
        fields = entry.get("fieldsV1") or {}
        for key in path:
            fields = fields.get(key) if isinstance(fields, dict) else None
        if fields is not None and entry.get("time"):
            yield datetime.fromisoformat(entry["time"])


def show_notices(cluster: KubernetesApi, notices: Mapping[str, NodeNotice]) -> None:
    """Write each notice to its node. Raises AssayError that names the failures, after all others.

    The condition is for programs and for `kubectl describe node`, as those of node-problem-detector are; the Event is
    for people who look at what happened. Its name follows from the move, so that a repeated order makes no second one.
    """
    failures = _find_failures(notices, lambda node, notice: _show(cluster, node, notice))
    if failures:
        problem = f"{len(failures)} of {len(notices)} notices could not be shown: {'; '.join(failures.values())}"
        raise AssayError(problem)


def find_missing_notices(
    cluster: KubernetesApi, nodes: Mapping[str, KubernetesObject], notices: Mapping[str, NodeNotice]
) -> dict[str, str]:
    """Return why a notice is not shown, by node. `nodes` are the nodes as they were just read."""
    return _find_failures(notices, lambda node, notice: _verify(cluster, nodes.get(node), node, notice))


def rank_nodes(cluster: KubernetesApi, is_last: Mapping[str, bool]) -> dict[str, str]:
    """Let pods come last to these nodes, or as before. Return why a node did not take that, by node."""

    def rank(name: str, wanted: bool) -> str:
        after = patch_with_retries(cluster, read_node(cluster, name), lambda node: _build_rank_patch(node, wanted))
        return "" if _build_rank_patch(after, wanted) is None else f"the API server did not take the taint {LAST_KEY}"

    return _find_failures(is_last, rank)


def _build_rank_patch(node: KubernetesObject, is_last: bool) -> KubernetesObject | None:
    present = node["spec"].get("taints") or []
    taints = [taint for taint in present if taint["key"] != LAST_KEY]
    if (taints != present) == is_last:
        return None
    taints += [{"key": LAST_KEY, "effect": "PreferNoSchedule"}] if is_last else []
    version = node["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version}, "spec": {"taints": taints or None}}


def _find_failures(wishes: Mapping[str, Any], work: Callable[[str, Any], str]) -> dict[str, str]:
    """Do some work for each node, several at a time; return what it answers or raises, where that is not ""."""

    def attempt(node: str) -> str:
        try:
            return work(node, wishes[node])
        except AssayError as error:
            return error.what

    with ThreadPoolExecutor(PARALLEL_NOTICES) as threads:
        return {node: failure for node, failure in zip(wishes, threads.map(attempt, wishes), strict=True) if failure}


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
        event_seen = cluster.request(request, cluster.events.read_namespaced_event, event, EVENT_NAMESPACE)
        about = (event_seen.get("regarding") or {}).get("name")
        return "" if about == name else f"the event {event} is about {about}"
    return ""


def find_condition(node: KubernetesObject, kind: str) -> StatusCondition | None:
    """Return a condition of a node, None if the node has none of this type."""
    for condition in node["status"].get("conditions") or []:
        if condition["type"] == kind:
            return StatusCondition(kind, condition["status"], condition.get("reason", ""), condition.get("message", ""))
    return None


def _make_condition(notice: NodeNotice) -> StatusCondition:
    return StatusCondition(IN_SERVICE_CONDITION, str(notice.in_service), _name_reason(notice), escape_line(notice.text))


def _name_reason(notice: NodeNotice) -> str:
    standing = "PlannedWork" if notice.is_worth_a_comment else "InService"
    return standing if notice.in_service else "OutOfService"


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
        "action": {"InService": "ReturnToService", "PlannedWork": "PlanWork"}.get(_name_reason(notice), "LeaveService"),
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "reportingController": REPORTER,
        "reportingInstance": socket.gethostname()[:MAX_INSTANCE],
        "note": escape_line(notice.text).encode()[:MAX_NOTE_BYTES].decode(errors="ignore"),
    }
