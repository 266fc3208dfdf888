"""Writes our cordon on a Kubernetes node and takes it off again, and says why no pod may be placed on a node.

Only our own keys are changed. A write is repeated if somebody else writes to the node at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from assay.adapters.kubernetes.kubernetes_client import (
    HTTP_CONFLICT,
    STRATEGIC_MERGE_PATCH,
    ApiRefusal,
    ApiRequest,
    KubernetesApi,
    KubernetesObject,
)
from assay.adapters.kubernetes.kubernetes_labels import (
    CONDITION_TYPE,
    CORDON_KEY,
    FIELD_MANAGER,
    SINCE_ANNOTATION,
    STATE_LABEL,
    UNSCHEDULABLE_ANNOTATION,
    VERIFY_UNDRAIN_ANNOTATION,
    format_kubernetes_now,
)
from assay.adapters.scheduler_adapter import VERIFY_UNDRAIN
from assay.model.cordon_ownership import prefix_reason
from assay.model.errors import AssayError
from assay.model.text.printable_text import escape_line

MAX_TAINT_VALUE = 63
"""The API server's limit for a taint's value, of letters, digits, `-`, `_` and `.`."""
MAX_PATCH_TRIES = 5
AUTOMATIC_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node-role.kubernetes.io/")
"""How the keys of taints begin that Kubernetes sets by itself, or that every node of a role has."""
OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"
"""The one of them that only a person sets."""


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
        told = StatusCondition(CONDITION_TYPE, "False", "InService", "assay keeps no pod from this node")
        write_condition(cluster, patched, told)


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
    return "; ".join(
        f"tainted {_format_taint(taint)}" for taint in _list_other_taints(node) if _is_set_by_others(node, taint)
    )


def _is_set_by_others(node: KubernetesObject, taint: Mapping[str, str]) -> bool:
    """Whether somebody closed the node by a taint.

    Kubernetes sets and removes some by itself. A taint named after a resource of the node, such as `nvidia.com/gpu`, or
    after a role of it only keeps away who does not need that.
    """
    key, resources = taint["key"], node["status"].get("capacity") or {}
    is_automatic = key.startswith(AUTOMATIC_TAINTS) and key != OUT_OF_SERVICE_TAINT
    return taint.get("effect") in ("NoSchedule", "NoExecute") and not is_automatic and key not in resources


def _format_taint(taint: Mapping[str, str]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


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
    known: KubernetesObject = next((one for one in conditions if one["type"] == condition.type), {})
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
    what = f"others changed the node {MAX_PATCH_TRIES} times while we wrote to it"
    raise AssayError(what, where=name, fix="try again")


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
