"""How a node stands, and what is written on it. Nothing but our own keys is ever changed.

Writing a cordon of ours on a node and taking it off again, however many others write on it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.model.errors import AssayError
from assay.schedulers.kubernetes_client import (
    STRATEGIC_MERGE_PATCH,
    ApiRefusal,
    ApiRequest,
    KubernetesApi,
    KubernetesObject,
)
from assay.schedulers.kubernetes_labels import (
    CONDITION_TYPE,
    CORDON_KEY,
    FIELD_MANAGER,
    SINCE_ANNOTATION,
    STATE_LABEL,
    UNSCHEDULABLE_ANNOTATION,
    format_kubernetes_now,
)
from assay.schedulers.scheduler_adapter import prefix_reason

MAX_TAINT_VALUE = 63
"""Of a taint's value, which holds letters, digits, `-`, `_` and `.`."""


def describe_node_cordon(node: KubernetesObject) -> str:
    """Return why no pod may be placed on the node, "" where one may: our reason, and who else has closed it."""
    theirs = _describe_writer(node) if is_foreign_cordon(node) else ""
    if _has_our_taint(node) or (node["spec"].get("unschedulable") and not theirs):
        mine = prefix_reason(read_annotations(node).get(CORDON_KEY) or "the reason was taken off the node")
        return f"{mine}; also {theirs}" if theirs else mine
    return theirs


def is_foreign_cordon(node: KubernetesObject) -> bool:
    """Say whether somebody else made the node unschedulable."""
    mine = (
        read_annotations(node).get(UNSCHEDULABLE_ANNOTATION) == "true"
        and _find_writer(node).get("manager", FIELD_MANAGER) == FIELD_MANAGER
    )
    return bool(node["spec"].get("unschedulable")) and not mine


def has_our_marks(node: KubernetesObject) -> bool:
    """Say whether anything of ours is on the node's metadata or spec."""
    labels = node["metadata"].get("labels") or {}
    return (
        _has_our_taint(node)
        or STATE_LABEL in labels
        or not {CORDON_KEY, SINCE_ANNOTATION, UNSCHEDULABLE_ANNOTATION}.isdisjoint(read_annotations(node))
    )


def build_cordon_patch(node: KubernetesObject, reason: str, state: str, moment: str) -> KubernetesObject | None:
    """Return the patch that cordons the node, None where it says all of this already.

    Taints are one list, which a patch replaces whole: `resourceVersion` makes sure that it is still the one we read.
    """
    told = read_annotations(node)
    mine = not is_foreign_cordon(node)
    standing = _has_our_taint(node) and bool(node["spec"].get("unschedulable"))
    if standing and told.get(CORDON_KEY) == prefix_reason(reason) and _has_label(node, state):
        return None
    since = told.get(SINCE_ANNOTATION, moment) if _has_our_taint(node) else moment
    words = {
        CORDON_KEY: prefix_reason(reason),
        SINCE_ANNOTATION: since,
        UNSCHEDULABLE_ANNOTATION: "true" if mine else None,
    }
    taint = {"key": CORDON_KEY, "value": format_taint_value(reason), "effect": "NoSchedule"}
    spec: KubernetesObject = {"taints": [*_list_other_taints(node), taint], **({"unschedulable": True} if mine else {})}
    return {"metadata": {**_resource_version(node), "annotations": words, "labels": {STATE_LABEL: state}}, "spec": spec}


def build_uncordon_patch(node: KubernetesObject) -> KubernetesObject | None:
    """Return the patch that undoes our cordon, None where there is none. Another's stays."""
    if not has_our_marks(node):
        return None
    words = {CORDON_KEY: None, SINCE_ANNOTATION: None, UNSCHEDULABLE_ANNOTATION: None}
    spec: KubernetesObject = {"taints": _list_other_taints(node) or None}
    if not is_foreign_cordon(node):
        spec["unschedulable"] = None
    return {"metadata": {**_resource_version(node), "annotations": words, "labels": {STATE_LABEL: None}}, "spec": spec}


def build_condition_patch(
    node: KubernetesObject, status: str, reason: str, message: str, moment: str
) -> KubernetesObject:
    """Return the patch of the node's status that tells customers how it stands with us."""
    known: KubernetesObject = next(
        (one for one in node["status"].get("conditions") or [] if one["type"] == CONDITION_TYPE), {}
    )
    since = known["lastTransitionTime"] if known.get("status") == status else moment
    told = {"type": CONDITION_TYPE, "status": status, "reason": reason, "message": message}
    return {"status": {"conditions": [{**told, "lastHeartbeatTime": moment, "lastTransitionTime": since}]}}


def read_annotations(thing: KubernetesObject) -> dict[str, str]:
    """Return an object's annotations."""
    return thing["metadata"].get("annotations") or {}


def format_taint_value(reason: str) -> str:
    """Return a reason as a taint's value may hold it."""
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._") else "-" for sign in reason)
    words = "-".join(word for word in plain.split("-") if word)
    return words[:MAX_TAINT_VALUE].strip("-._")


def _resource_version(node: KubernetesObject) -> KubernetesObject:
    return {"resourceVersion": node["metadata"]["resourceVersion"]}


def _has_our_taint(node: KubernetesObject) -> bool:
    return any(taint["key"] == CORDON_KEY for taint in node["spec"].get("taints") or [])


def _list_other_taints(node: KubernetesObject) -> list[Any]:
    return [taint for taint in node["spec"].get("taints") or [] if taint["key"] != CORDON_KEY]


def _has_label(node: KubernetesObject, state: str) -> bool:
    return bool((node["metadata"].get("labels") or {}).get(STATE_LABEL) == state)


def _find_writer(node: KubernetesObject) -> dict[str, str]:
    """Return the entry of whoever wrote `unschedulable` last, as the API server keeps it."""
    for entry in node["metadata"].get("managedFields") or []:
        if "f:unschedulable" in (entry.get("fieldsV1") or {}).get("f:spec", {}):
            return dict(entry)
    return {}


def _describe_writer(node: KubernetesObject) -> str:
    writer = _find_writer(node)
    told = f" by {writer['manager']}" if writer.get("manager") else ""
    since = f" since {writer['time']}" if writer.get("time") else ""
    return f"made unschedulable{told}{since}, not by assay"


MAX_PATCH_TRIES = 5
HTTP_CONFLICT = 409


def read_node(cluster: KubernetesApi, name: str) -> KubernetesObject:
    """Return a node as it is now. Raises Trouble for one that the cluster does not know."""
    return dict(cluster.request(ApiRequest("get", "nodes", name), cluster.core.read_node, name))


def cordon_node(cluster: KubernetesApi, node: KubernetesObject, reason: str, state: str, waits_for: str = "") -> None:
    """Cordon a node, which was read as `node`; `state` is `cordoned` or `draining`."""
    written = _patch_with_retries(
        cluster, node, lambda seen: build_cordon_patch(seen, reason, state, format_kubernetes_now())
    )
    message = f"{prefix_reason(reason)}{f'; waits for {waits_for}' if waits_for else ''}"
    _write_condition(cluster, written, "True", state.capitalize(), message)


def uncordon_node(cluster: KubernetesApi, node: KubernetesObject) -> None:
    """Undo our own cordon of a node, which was read as `node`. A node that has nothing of ours is not written to."""
    if has_our_marks(node):
        written = _patch_with_retries(cluster, node, build_uncordon_patch)
        _write_condition(cluster, written, "False", "InService", "assay keeps no pod from this node")


def _patch_with_retries(
    cluster: KubernetesApi, node: KubernetesObject, patch_of: Callable[[KubernetesObject], KubernetesObject | None]
) -> KubernetesObject:
    """Return the node after our patch, made anew from what is there for as long as others write in between."""
    name = node["metadata"]["name"]
    for _ in range(MAX_PATCH_TRIES):
        patch = patch_of(node)
        if patch is None:
            return node
        try:
            return _patch(cluster, ApiRequest("patch", "nodes", name), cluster.core.patch_node, name, patch)
        except ApiRefusal as refused:
            if refused.status != HTTP_CONFLICT:
                raise
        node = read_node(cluster, name)
    raise AssayError(
        f"the node was changed by others {MAX_PATCH_TRIES} times while we wrote to it", where=name, fix="try again"
    )


def _write_condition(cluster: KubernetesApi, node: KubernetesObject, status: str, reason: str, message: str) -> None:
    """Write our condition of the node."""
    name = node["metadata"]["name"]
    patch = build_condition_patch(node, status, reason, message, format_kubernetes_now())
    _patch(cluster, ApiRequest("patch", "nodes/status", name), cluster.core.patch_node_status, name, patch)


def _patch(
    cluster: KubernetesApi, question: ApiRequest, call: Callable[..., object], name: str, patch: KubernetesObject
) -> KubernetesObject:
    return dict(
        cluster.request(question, call, name, patch, field_manager=FIELD_MANAGER, _content_type=STRATEGIC_MERGE_PATCH)
    )
