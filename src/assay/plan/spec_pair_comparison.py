"""Computes what a changed spec means for a node, once for all nodes with the same pair of specs and profiles.

Everything is computed once per group of nodes that change in the same way, not once per node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.firmware_bundle import FirmwareComponent, FirmwareReset
from assay.model.specs.node.node_spec import NodeSpec
from assay.plan.assumptions import APPLIED_SETTINGS
from assay.plan.fleet_revision import FleetRevision
from assay.plan.inventory_changes import COMPARED_FIELDS, PLACE_FIELDS, InventoryChanges

UNJUDGED_FIELDS = {"kind", "name", "extends", "description", "owner", "firmware", "limits"}
RESET_ORDER: tuple[FirmwareReset, ...] = ("none", "bmc", "host", "ac")
NO_RESET = "none"

SpecPairKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class VersionChange:
    """One component that changes its version; "" if the bundle did not have it."""

    component: str
    old: str
    new: str
    reset: FirmwareReset
    order: int


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A changed field of the spec: `applied` to the node, or only `judged`."""

    field: str
    old: str
    new: str
    how: Literal["applied", "judged"]
    reset: FirmwareReset


@dataclass(frozen=True, slots=True)
class LimitDifference:
    """A changed limit; "" if it did not exist before, or does not exist after."""

    limit: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class SpecPair:
    """A node's spec before and after, and the differences. `bundle`: whether the firmware bundle differs."""

    old: NodeSpec
    new: NodeSpec
    moves: tuple[VersionChange, ...]
    settings: tuple[SettingChange, ...]
    thresholds: tuple[LimitDifference, ...]
    bundle: bool
    is_other_spec: bool

    @property
    def reset(self) -> FirmwareReset:
        """The strongest restart that the change needs."""
        needed = [*(move.reset for move in self.moves), *(setting.reset for setting in self.settings)]
        return max(needed, key=RESET_ORDER.index, default="none")

    @property
    def has_drift(self) -> bool:
        """Whether a node of this pair differs from its new spec until somebody works on it."""
        return bool(self.moves or self.settings)

    @property
    def needs_service_exit(self) -> bool:
        """Whether a node must leave service for the change: for firmware, for a restart, or as another kind of node."""
        return bool(self.moves) or self.reset != NO_RESET or (self.is_other_spec and self.has_drift)


def spec_pair_key(old: Node, new: Node) -> SpecPairKey:
    """Return the key that nodes share if the specs change them in the same way."""
    return old.spec, new.spec, old.profile, new.profile


def compare_spec_pairs(
    before: FleetRevision, after: FleetRevision, kept: Iterable[tuple[Node, Node]]
) -> dict[SpecPairKey, SpecPair]:
    """Return every pair of specs that nodes have, each computed once."""
    found: dict[SpecPairKey, SpecPair] = {}
    for old, new in kept:
        key = spec_pair_key(old, new)
        if key not in found:
            found[key] = _pair(before.fleet, after.fleet, old, new)
    return found


def _pair(before: Fleet, after: Fleet, old: Node, new: Node) -> SpecPair:
    was, will = before.spec_of(old.name), after.spec_of(new.name)
    return SpecPair(
        old=was,
        new=will,
        moves=_moves(_managed_components(before, old), _managed_components(after, new)),
        settings=tuple(_settings(was, will)),
        thresholds=tuple(_thresholds(was, will)),
        bundle=before.bundle_of(old.name).components != after.bundle_of(new.name).components,
        is_other_spec=was.name != will.name,
    )


def _managed_components(fleet: Fleet, node: Node) -> dict[str, FirmwareComponent]:
    """Return the components that automation manages on a node; adapters only if the profile says so."""
    hca = fleet.profile_of(node.name).hca_firmware
    return {part.name: part for part in fleet.bundle_of(node.name).components if hca or not part.hca}


def _moves(old: Mapping[str, FirmwareComponent], new: Mapping[str, FirmwareComponent]) -> tuple[VersionChange, ...]:
    moves = [
        VersionChange(name, old[name].version if name in old else "", part.version, part.reset, part.order)
        for name, part in new.items()
        if name not in old or old[name].version != part.version
    ]
    return tuple(sorted(moves, key=lambda move: (move.order, move.component)))


def _settings(old: NodeSpec, new: NodeSpec) -> Iterable[SettingChange]:
    for field in type(new).model_fields:
        was, will = getattr(old, field), getattr(new, field)
        if field in UNJUDGED_FIELDS or was == will:
            continue
        if field in APPLIED_SETTINGS:
            yield SettingChange(field, *_format_contrast(was, will), "applied", APPLIED_SETTINGS[field].reset)
        else:
            yield SettingChange(field, *_format_contrast(was, will), "judged", "none")


def _thresholds(old: NodeSpec, new: NodeSpec) -> Iterable[LimitDifference]:
    for name in dict.fromkeys([*old.limits, *new.limits]):
        was, will = _bound(old, name), _bound(new, name)
        if was != will:
            yield LimitDifference(name, was, will)


def _bound(spec: NodeSpec, name: str) -> str:
    limit = spec.limits.get(name)
    return f"{limit.value:g} {limit.unit}".strip() if limit else ""


def _format_contrast(old: Any, new: Any) -> tuple[str, str]:
    """Return the difference of two values, each side in one line."""
    if isinstance(old, list) and isinstance(new, list):
        only = [one for one in old if one not in new], [one for one in new if one not in old]
        return (_line(only[0]), _line(only[1])) if only[0] or only[1] else (_line(old), _line(new))
    was, will = _as_map(old), _as_map(new)
    if was is None or will is None:
        return str(old), str(new)
    names = [name for name in dict.fromkeys([*was, *will]) if was.get(name) != will.get(name)]
    return (_entries(was, names), _entries(will, names))


def _as_map(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    return dict(value) if hasattr(value, "model_fields_set") else None


def _entries(values: Mapping[str, Any], names: Iterable[str]) -> str:
    return ", ".join(f"{name}={values[name]}" for name in names if values.get(name) is not None) or NO_RESET


def _line(values: Iterable[Any]) -> str:
    return " ".join(str(value) for value in values) or NO_RESET


NODE_FIELDS = {what: field for field, what in COMPARED_FIELDS.items()}


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes with one pair of specs and profiles. `said`: their other changes, by field of Node."""

    key: SpecPairKey
    pair: SpecPair
    changed_fields: frozenset[str]
    nodes: tuple[tuple[Node, Node], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes' names."""
        return tuple(new.name for _, new in self.nodes)


def group_nodes(
    changes: InventoryChanges, pairs: Mapping[SpecPairKey, SpecPair], recabled: set[str]
) -> tuple[NodeGroup, ...]:
    """Return every node of both revisions in its group; `recabled` nodes get other cables."""
    said = _map_changed_fields(changes, recabled)
    nothing: frozenset[str] = frozenset()
    found: dict[tuple[SpecPairKey, frozenset[str]], list[tuple[Node, Node]]] = defaultdict(list)
    for old, new in changes.kept:
        found[spec_pair_key(old, new), said.get(new.name, nothing)].append((old, new))
    return tuple(NodeGroup(key, pairs[key], fields, tuple(nodes)) for (key, fields), nodes in found.items())


def _map_changed_fields(changes: InventoryChanges, recabled: set[str]) -> dict[str, frozenset[str]]:
    fields: dict[str, set[str]] = defaultdict(set)
    for change in changes.changed:
        for name in change.nodes:
            fields[name].update(
                PLACE_FIELDS if change.what == "place" else (NODE_FIELDS.get(change.what, change.what),)
            )
    for name in recabled:
        fields[name].add("cables")
    return {name: frozenset(some) for name, some in fields.items()}
