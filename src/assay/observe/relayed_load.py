"""Reads what a probe relayed of its load: the whole document, or what there was before a kill."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.model.evidence import encode_canonical_json
from assay.model.reading import ReadingTree, failed, parse_reading
from assay.node.load_tools.registry import LOAD_TOOLS, add_start


@dataclass(slots=True)
class RelayedLoad:
    """What a probe relayed. `document` is its answer, empty if it was killed before it gave one.

    `ended` are the branches of the parts that ended, by name. `cut` is the part in which the kill came: its name, when
    it began, and the lines of its tool until then.
    """

    document: bytes = b""
    before: ReadingTree = field(default_factory=dict)
    ended: dict[str, ReadingTree] = field(default_factory=dict)
    cut: str = ""
    cut_at: str = ""
    cut_lines: list[str] = field(default_factory=list)

    def build_active(self, reason: str) -> ReadingTree:
        """Return the `active` tree of a load that ended early for a `reason`: no part in it ran longer than it did."""
        tree: ReadingTree = dict(self.ended)
        if self.cut:
            tree[self.cut] = self._read_cut(reason) or failed(f"killed: {reason}")
        return tree

    def restore_lost(self, active: Mapping[str, Any]) -> ReadingTree:
        """Return the `active` tree of an answer, with what was relayed of the parts that it calls failed as a whole."""
        return {part: self.ended.get(part, branch) if _is_failed(branch) else branch for part, branch in active.items()}

    def end_part(self, part: str, branch: ReadingTree) -> None:
        """Note the branch of a part that ended. Where its reader was killed first, what it relayed counts.

        A scheduler that ends a job kills its processes one by one.
        """
        lost = part == self.cut and self.cut_lines and _is_failed(branch)
        self.ended[part] = (self._read_cut(branch["failed"]) if lost else None) or branch
        self.cut = ""
        self.cut_lines = []

    def _read_cut(self, reason: str) -> ReadingTree | None:
        """Return the branch of the part that was cut short, None where it does not count in units."""
        read = next((tool.read_cut for name, tool in LOAD_TOOLS.items() if name == self.cut), None)
        return add_start(read("\n".join(self.cut_lines), reason), self.cut_at) if read else None


def read_relayed_load(output: bytes) -> RelayedLoad:
    """Sort the lines of a probe's standard output. Half a line, and lines of nobody, are left out."""
    load = RelayedLoad()
    for line in output.decode(errors="replace").splitlines():
        parsed = _parse_line(line)
        if parsed is None:
            continue
        if isinstance(event := parsed.get("load"), dict):
            _note(load, event)
        elif "active" in parsed:
            load.document = line.encode()
        elif load.cut:
            load.cut_lines.append(line)
    return load


def _note(load: RelayedLoad, event: dict[str, Any]) -> None:
    if isinstance(before := event.get("before"), dict):
        load.before = before
    elif isinstance(begins := event.get("begins"), str):
        load.cut = begins
        load.cut_at = str(event.get("at", ""))
        load.cut_lines = []
    elif isinstance(ends := event.get("ends"), str) and isinstance(branch := event.get("branch"), dict):
        load.end_part(ends, branch)


def _is_failed(branch: object) -> bool:
    leaf = parse_reading(branch)
    return leaf is not None and leaf.kind == "failed"


def _parse_line(line: str) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
        if "\\ud" in line.lower():
            encode_canonical_json(document)  # half a surrogate pair cannot be stored
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
