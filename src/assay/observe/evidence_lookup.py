"""A node in evidence, and the entries of a spec that is drafted from it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from assay.model.reading import EvidenceReading, parse_reading
from assay.model.specs.firmware_bundle import FirmwareBundle
from assay.model.specs.node.node_spec import NodeSpec


@dataclass(frozen=True, slots=True)
class DraftEntry:
    """One entry of the draft. `value` is None where it is unknown; `reviews` are the comments for the reviewer.

    `part_reviews` are those for one part of the value, by its key or index.
    """

    key: str
    value: Any = None
    reviews: tuple[str, ...] = ()
    part_reviews: Mapping[str | int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ObservedNode:
    """A node with its evidence, its inventory entry and, where it has one, its present spec."""

    evidence: EvidenceDocument
    node: Node
    present_spec: NodeSpec | None = None
    bundles: Mapping[str, FirmwareBundle] = field(default_factory=dict)

    @property
    def copy_review(self) -> str:
        """The comment for a value of the present spec that was not read on this node."""
        return f"taken from {self.present_spec.name if self.present_spec else 'nowhere'}, not read on this node"

    def read(self, *path: str) -> EvidenceReading:
        """Return the reading at a path, channel first."""
        return self.evidence.read(*path)

    def parts(self, *path: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the parts below a branch that have readings, and the reasons why others, or all, have none."""
        branch = self.read(*path)
        if branch.kind != "value" or not isinstance(branch.value, Mapping):
            return {}, (f"{'.'.join(path)} was not read: {branch.kind}: {branch.reason}",)
        leaves = {name: parse_reading(tree) for name, tree in branch.value.items()}
        reasons = tuple(f"{name}: {leaf.kind}: {leaf.reason}" for name, leaf in leaves.items() if leaf is not None)
        return {name: tree for name, tree in branch.value.items() if leaves[name] is None}, reasons

    def make_unread_entry(self, key: str, *reviews: str) -> DraftEntry:
        """Return an entry that evidence does not show: the present spec's value if there is one. Needs a review."""
        present = self.present_spec.model_dump(mode="json").get(key) if self.present_spec else None
        if self.present_spec is None or present in (None, "", [], {}):
            return DraftEntry(key, None, reviews)
        return DraftEntry(key, present, (*reviews[:-1], f"{reviews[-1]}; taken from {self.present_spec.name}"))

    def make_read_entry(self, key: str, reading: EvidenceReading, kind: type) -> DraftEntry:
        """Return the entry for one reading, whose value must have the type `kind`."""
        if reading.kind != "value":
            return self.make_unread_entry(key, f"{key} was not read: {reading.kind}: {reading.reason}")
        if not has_type(kind, reading.value):
            return self.make_unread_entry(key, f"{key} reads {reading.value!r}, which is no {kind.__name__}")
        return DraftEntry(key, reading.value)


def read_typed_value(tree: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return the value of the reading `name` below a part if it has the type `kind`, else None."""
    reading = parse_reading(tree.get(name)) if isinstance(tree, Mapping) else None
    return typed_value(reading, kind) if reading is not None else None


def typed_value(reading: EvidenceReading, kind: type | tuple[type, ...]) -> Any:
    """Return the value of a reading if it has the type `kind`, else None."""
    return reading.value if reading.kind == "value" and has_type(kind, reading.value) else None


def has_type(kind: type | tuple[type, ...], value: Any) -> bool:
    """Return whether a value has the type `kind`. Booleans are no numbers, and numbers have fewer than 64 bits."""
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    return not isinstance(value, int | float) or abs(value) < 2**63
