"""How a node stands, and what is written on it. Nothing but our own keys is ever changed."""

from __future__ import annotations

from typing import Any

from assay.actions.kubernetes_workloads.cluster import Object
from assay.actions.kubernetes_workloads.keys import CONDITION, CORDON, MADE, MANAGER, SINCE, STATE
from assay.actions.workloads import our_reason

LONGEST_VALUE = 63
"""Of a taint's value, which holds letters, digits, `-`, `_` and `.`."""


def cordon_of(node: Object) -> str:
    """Return why no pod may be placed on the node, "" where one may: our reason, and who else has closed it."""
    theirs = _by_whom(node) if foreign(node) else ""
    if _tainted(node) or (node["spec"].get("unschedulable") and not theirs):
        mine = our_reason(notes_of(node).get(CORDON) or "the reason was taken off the node")
        return f"{mine}; also {theirs}" if theirs else mine
    return theirs


def foreign(node: Object) -> bool:
    """Say whether somebody else made the node unschedulable."""
    mine = notes_of(node).get(MADE) == "true" and _writer(node).get("manager", MANAGER) == MANAGER
    return bool(node["spec"].get("unschedulable")) and not mine


def marked(node: Object) -> bool:
    """Say whether anything of ours is on the node's metadata or spec."""
    labels = node["metadata"].get("labels") or {}
    return _tainted(node) or STATE in labels or not {CORDON, SINCE, MADE}.isdisjoint(notes_of(node))


def closing(node: Object, reason: str, state: str, moment: str) -> Object | None:
    """Return the patch that cordons the node, None where it says all of this already.

    Taints are one list, which a patch replaces whole: `resourceVersion` makes sure that it is still the one we read.
    """
    told = notes_of(node)
    mine = not foreign(node)
    standing = _tainted(node) and bool(node["spec"].get("unschedulable"))
    if standing and told.get(CORDON) == our_reason(reason) and _labelled(node, state):
        return None
    since = told.get(SINCE, moment) if _tainted(node) else moment
    words = {CORDON: our_reason(reason), SINCE: since, MADE: "true" if mine else None}
    taint = {"key": CORDON, "value": value_of(reason), "effect": "NoSchedule"}
    spec: Object = {"taints": [*_others(node), taint], **({"unschedulable": True} if mine else {})}
    return {"metadata": {**_as_read(node), "annotations": words, "labels": {STATE: state}}, "spec": spec}


def opening(node: Object) -> Object | None:
    """Return the patch that undoes our cordon, None where there is none. Another's stays."""
    if not marked(node):
        return None
    words = {CORDON: None, SINCE: None, MADE: None}
    spec: Object = {"taints": _others(node) or None}
    if not foreign(node):
        spec["unschedulable"] = None
    return {"metadata": {**_as_read(node), "annotations": words, "labels": {STATE: None}}, "spec": spec}


def condition(node: Object, status: str, reason: str, message: str, moment: str) -> Object:
    """Return the patch of the node's status that tells customers how it stands with us."""
    known: Object = next((one for one in node["status"].get("conditions") or [] if one["type"] == CONDITION), {})
    since = known["lastTransitionTime"] if known.get("status") == status else moment
    told = {"type": CONDITION, "status": status, "reason": reason, "message": message}
    return {"status": {"conditions": [{**told, "lastHeartbeatTime": moment, "lastTransitionTime": since}]}}


def notes_of(thing: Object) -> dict[str, str]:
    """Return an object's annotations."""
    return thing["metadata"].get("annotations") or {}


def value_of(reason: str) -> str:
    """Return a reason as a taint's value may hold it."""
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._") else "-" for sign in reason)
    words = "-".join(word for word in plain.split("-") if word)
    return words[:LONGEST_VALUE].strip("-._")


def _as_read(node: Object) -> Object:
    return {"resourceVersion": node["metadata"]["resourceVersion"]}


def _tainted(node: Object) -> bool:
    return any(taint["key"] == CORDON for taint in node["spec"].get("taints") or [])


def _others(node: Object) -> list[Any]:
    return [taint for taint in node["spec"].get("taints") or [] if taint["key"] != CORDON]


def _labelled(node: Object, state: str) -> bool:
    return bool((node["metadata"].get("labels") or {}).get(STATE) == state)


def _writer(node: Object) -> dict[str, str]:
    """Return the entry of whoever wrote `unschedulable` last, as the API server keeps it."""
    for entry in node["metadata"].get("managedFields") or []:
        if "f:unschedulable" in (entry.get("fieldsV1") or {}).get("f:spec", {}):
            return dict(entry)
    return {}


def _by_whom(node: Object) -> str:
    writer = _writer(node)
    told = f" by {writer['manager']}" if writer.get("manager") else ""
    since = f" since {writer['time']}" if writer.get("time") else ""
    return f"made unschedulable{told}{since}, not by assay"
