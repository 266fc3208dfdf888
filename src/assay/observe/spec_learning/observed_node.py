"""A node as evidence has it, and what a draft of its spec says entry by entry. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from assay.model.reading import EvidenceReading, parse_reading
from assay.model.specs.firmware_bundle import FirmwareBundle
from assay.model.specs.node_spec import NodeSpec


@dataclass(frozen=True, slots=True)
class DraftEntry:
    """One entry of the draft. `value` is None where nothing is known; `reviews` say what a person has to look at."""

    key: str
    value: Any = None
    reviews: tuple[str, ...] = ()


@dataclass(frozen=True)
class ObservedNode:
    """A node as the evidence has it, what the inventory says of it, and its present spec, where it has one."""

    evidence: EvidenceDocument
    node: Node
    present_spec: NodeSpec | None = None
    bundles: Mapping[str, FirmwareBundle] = field(default_factory=dict)

    def read(self, *path: str) -> EvidenceReading:
        """Return the reading at a path, channel first."""
        return self.evidence.read(*path)

    def parts(self, *path: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the parts below a branch that answered, and why the others, or all of them, did not."""
        branch = self.read(*path)
        if branch.kind != "value" or not isinstance(branch.value, Mapping):
            return {}, (f"{'.'.join(path)} was not read: {branch.kind}: {branch.reason}",)
        silent = {name: parse_reading(tree) for name, tree in branch.value.items()}
        reasons = tuple(f"{name}: {one.kind}: {one.reason}" for name, one in silent.items() if one is not None)
        return {name: tree for name, tree in branch.value.items() if silent[name] is None}, reasons

    def make_unread_entry(self, key: str, *why: str) -> DraftEntry:
        """Return the entry of what evidence does not tell: the present spec's, if there is one."""
        standing = self.present_spec.model_dump(mode="json").get(key) if self.present_spec else None
        if self.present_spec is None or standing in (None, "", [], {}):
            return DraftEntry(key, None, why)
        return DraftEntry(key, standing, (*why[:-1], f"{why[-1]}; taken from {self.present_spec.name}"))

    def make_read_entry(self, key: str, reading: EvidenceReading, kind: type) -> DraftEntry:
        """Return the entry of one reading, which must be of a kind."""
        if reading.kind != "value":
            return self.make_unread_entry(key, f"{key} was not read: {reading.kind}: {reading.reason}")
        if not has_type(kind, reading.value):
            return self.make_unread_entry(key, f"{key} reads {reading.value!r}, which is no {kind.__name__}")
        return DraftEntry(key, reading.value)


def read_typed_value(tree: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return what a reading below a part says, if it is of a kind; else None."""
    reading = parse_reading(tree.get(name)) if isinstance(tree, Mapping) else None
    return typed_value(reading, kind) if reading is not None else None


def typed_value(reading: EvidenceReading, kind: type | tuple[type, ...]) -> Any:
    """Return what a reading says, if it is of a kind; else None."""
    return reading.value if reading.kind == "value" and has_type(kind, reading.value) else None


def has_type(kind: type | tuple[type, ...], value: Any) -> bool:
    """Say whether a value is of a kind; true and false are no numbers, nor is what no device counts to."""
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    return not isinstance(value, int | float) or abs(value) < 2**63
