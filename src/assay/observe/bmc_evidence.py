"""Reads the channel `bmc` of a node's evidence: logs in, reads the BMC, and joins the events to the known ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.adapters.bmc.all_logs import NEVER_READ, LogsBefore
from assay.adapters.bmc.bmc_client import open_bmc
from assay.adapters.bmc.bmc_readings import UtcClock, read_utc_now
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.adapters.bmc.request_time import LONGEST_READ
from assay.adapters.bmc.session import NO_QUIRKS
from assay.adapters.bmc.session_pool import BmcSessionPool
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.node import Node
from assay.model.reading import EvidenceReading, ReadingTree, absent, failed, parse_reading, value

_IDENTITY = {"id", "at", "severity"}
MAX_KEPT_EVENTS = 500
"""Events of one log in one document: those of the previous document, and new ones."""


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
    known = _read_before(before)
    try:
        whole_s = LONGEST_READ * deadline_s
        with open_bmc(node, root=root, deadline_s=deadline_s, whole_s=whole_s, quirks=quirks, sessions=sessions) as bmc:
            tree = bmc.read_channel(deadline_s, before=known, now=now)
    except AssayError as error:
        return failed(error.what)
    if reason := _common_failure(tree):
        return failed(reason)
    if "value" in tree["events"]:
        tree["events"] = value(_keep_newest([*known.events, *tree["events"]["value"]]))
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


def _keep_newest(events: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the newest events of each log, in their order."""
    left = Counter(event.get("log", "") for event in events)
    kept = []
    for event in events:
        if left[event.get("log", "")] <= MAX_KEPT_EVENTS:
            kept.append(event)
        left[event.get("log", "")] -= 1
    return kept


def _read_before(before: EvidenceDocument | None) -> LogsBefore:
    """Return the cursors and the events of the last document; none where it does not have both."""
    if before is None:
        return NEVER_READ
    cursors, events = before.read("bmc", "event_log", "cursors").value, before.read("bmc", "events").value
    if not (isinstance(cursors, dict) and isinstance(events, list)):
        return NEVER_READ
    texts = {str(name): text for name, text in cursors.items() if isinstance(text, str)}
    return LogsBefore(texts, tuple(event for event in events if isinstance(event, dict) and set(event) >= _IDENTITY))
