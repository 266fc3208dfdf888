"""The channel `bmc` of a node's evidence, read through its BMC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.node import Node
from assay.model.reading import EvidenceReading, ReadingTree, absent, failed, parse_reading, value
from assay.redfish.bmc import open_bmc
from assay.redfish.bmc_readings import UtcClock, read_utc_now
from assay.redfish.quirks import BmcQuirkSet
from assay.redfish.session import NO_QUIRKS

MAX_KEPT_EVENTS = 500
"""Events that a document keeps: those of the document before, and what is new."""


def read_bmc_channel(
    node: Node,
    root: Path,
    deadline_s: float,
    *,
    quirks: BmcQuirkSet = NO_QUIRKS,
    before: EvidenceDocument | None = None,
    now: UtcClock = read_utc_now,
) -> ReadingTree:
    """Return the tree of a node's BMC; one leaf where it has none, or where nothing at all was answered.

    Of its event log only what is newer than in `before`, the node's last document, is read; the rest is taken from
    there, as entries of a log do not change.
    """
    if not node.bmc_address:
        return absent(f"no bmc_address is declared for {node.name}")
    since, known = _read_before(before)
    try:
        with open_bmc(node, root=root, deadline_s=deadline_s, quirks=quirks) as bmc:
            tree = bmc.read_channel(since=since, now=now)
    except AssayError as trouble:
        return failed(trouble.what)
    if reason := _only_reason(tree):
        return failed(reason)
    if "value" in tree["events"]:
        tree["events"] = value([*known, *tree["events"]["value"]][-MAX_KEPT_EVENTS:])
    return {name: _to_keep(branch) for name, branch in tree.items()}


def _to_keep(tree: Any) -> Any:
    """Return a branch as it can be kept: what JSON cannot say becomes a failed leaf."""
    try:
        encode_canonical_json(tree)
    except ValueError:
        if not isinstance(tree, dict) or parse_reading(tree) is not None:
            return failed("the BMC answered a number without an end, or half a letter")
        return {name.encode(errors="backslashreplace").decode(): _to_keep(below) for name, below in tree.items()}
    return tree


def _only_reason(tree: ReadingTree) -> str:
    """Return the one reason for which nothing was answered, "" where something was or the reasons are several."""
    found = [reading for reading in _leaves(tree) if reading.kind != "unsupported"]
    reasons = {reading.reason for reading in found if reading.kind == "failed"}
    return reasons.pop() if len(reasons) == 1 and all(reading.kind == "failed" for reading in found) else ""


def _leaves(tree: ReadingTree) -> Iterator[EvidenceReading]:
    for branch in tree.values():
        reading = parse_reading(branch)
        if reading is not None:
            yield reading
        elif isinstance(branch, dict):
            yield from _leaves(branch)


def _read_before(before: EvidenceDocument | None) -> tuple[str, list[dict[str, str]]]:
    """Return the cursor of the last document, and the events that it holds; nothing where it has not both."""
    if before is None:
        return "", []
    cursor, events = before.read("bmc", "event_log", "cursor"), before.read("bmc", "events")
    fits = isinstance(cursor.value, str) and isinstance(events.value, list)
    return (cursor.value, events.value) if fits else ("", [])
