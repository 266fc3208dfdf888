"""Reads the channel `bmc` of a node's evidence: logs in, reads the BMC, and joins the events to the known ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.node import Node
from assay.model.reading import EvidenceReading, ReadingTree, absent, failed, parse_reading, value
from assay.redfish.bmc_client import open_bmc
from assay.redfish.bmc_readings import UtcClock, read_utc_now
from assay.redfish.connection.request_time import LONGEST_READ
from assay.redfish.quirks import BmcQuirkSet
from assay.redfish.session import NO_QUIRKS
from assay.redfish.session_pool import BmcSessionPool

MAX_KEPT_EVENTS = 500
"""Events in one document: those of the previous document, and new ones."""


def read_bmc_channel(
    node: Node,
    root: Path,
    deadline_s: float,
    *,
    quirks: BmcQuirkSet = NO_QUIRKS,
    before: EvidenceDocument | None = None,
    now: UtcClock = read_utc_now,
    sessions: BmcSessionPool | None = None,
) -> ReadingTree:
    """Return the tree of a node's BMC; one leaf where the node has none, or where it answers nothing.

    One request may take `deadline_s`, a large BMC as a whole up to LONGEST_READ times that.
    `before` is the node's last document. Only newer entries of the event log are read; older ones come from there,
    since entries of a log do not change. `root` is the fleet repository. `sessions`: see `open_bmc`.
    """
    if not node.bmc_address:
        return absent(f"no bmc_address is declared for {node.name}")
    since, known_events = _read_before(before)
    try:
        whole_s = LONGEST_READ * deadline_s
        with open_bmc(node, root=root, deadline_s=deadline_s, whole_s=whole_s, quirks=quirks, sessions=sessions) as bmc:
            tree = bmc.read_channel(deadline_s, since=since, now=now)
    except AssayError as error:
        return failed(error.what)
    if reason := _common_failure(tree):
        return failed(reason)
    if "value" in tree["events"]:
        tree["events"] = value([*known_events, *tree["events"]["value"]][-MAX_KEPT_EVENTS:])
    return {name: _replace_unencodable_leaves(branch) for name, branch in tree.items()}


def _replace_unencodable_leaves(tree: Any) -> Any:
    """Return a branch in which every leaf that JSON cannot hold is failed."""
    try:
        encode_canonical_json(tree)
    except ValueError:
        if not isinstance(tree, dict) or parse_reading(tree) is not None:
            return failed("the BMC answered with an infinite number or with invalid Unicode")
        return {
            name.encode(errors="backslashreplace").decode(): _replace_unencodable_leaves(branch)
            for name, branch in tree.items()
        }
    return tree


def _common_failure(tree: ReadingTree) -> str:
    """Return the reason where every leaf failed for the same one, else "". Unsupported leaves do not count."""
    readings = [reading for reading in _leaves(tree) if reading.kind != "unsupported"]
    reasons = {reading.reason for reading in readings if reading.kind == "failed"}
    return reasons.pop() if len(reasons) == 1 and all(reading.kind == "failed" for reading in readings) else ""


def _leaves(tree: ReadingTree) -> Iterator[EvidenceReading]:
    for branch in tree.values():
        reading = parse_reading(branch)
        if reading is not None:
            yield reading
        elif isinstance(branch, dict):
            yield from _leaves(branch)


def _read_before(before: EvidenceDocument | None) -> tuple[str, list[dict[str, str]]]:
    """Return the cursor and the events of the last document; "" and none where it does not have both."""
    if before is None:
        return "", []
    cursor, events = before.read("bmc", "event_log", "cursor"), before.read("bmc", "events")
    has_both = isinstance(cursor.value, str) and isinstance(events.value, list)
    return (cursor.value, events.value) if has_both else ("", [])
