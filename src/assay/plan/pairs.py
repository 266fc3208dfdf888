"""What a spec's change means for a node, worked out once for all nodes of one pair of specs and profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.model.firmware import Component, Reset
from assay.model.fleet import Fleet, Node
from assay.model.nodespec import NodeSpec
from assay.plan.assumptions import SETTINGS
from assay.plan.declared import Declared

PAPER = {"kind", "name", "extends", "description", "owner", "firmware", "limits"}
STRENGTH: tuple[Reset, ...] = ("none", "bmc", "host", "ac")
NONE = "none"

PairKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Move:
    """One component that goes from a version to another; "" where the bundle had none."""

    component: str
    old: str
    new: str
    reset: Reset
    order: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of the spec that changed: `applied` to the node, or only `judged` against it."""

    field: str
    old: str
    new: str
    how: Literal["applied", "judged"]
    reset: Reset


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit that changed; "" where there was or will be none."""

    limit: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two specs, as a node has them before and after, and what differs. `bundle`: whether anything of it does."""

    old: NodeSpec
    new: NodeSpec
    moves: tuple[Move, ...]
    settings: tuple[Setting, ...]
    thresholds: tuple[Threshold, ...]
    bundle: bool
    respecced: bool

    @property
    def reset(self) -> Reset:
        """The strongest restart that the change needs."""
        needed = [*(move.reset for move in self.moves), *(setting.reset for setting in self.settings)]
        return max(needed, key=STRENGTH.index, default="none")

    @property
    def drifts(self) -> bool:
        """Whether a node of this pair differs from its new spec until somebody has worked on it."""
        return bool(self.moves or self.settings)

    @property
    def leaves(self) -> bool:
        """Whether a node must leave service for it: for firmware, for a restart, or to be proved as another kind."""
        return bool(self.moves) or self.reset != NONE or (self.respecced and self.drifts)


def key_of(old: Node, new: Node) -> PairKey:
    """Return what nodes share that are changed alike by the specs."""
    return old.spec, new.spec, old.profile, new.profile


def pairs(before: Declared, after: Declared, kept: Iterable[tuple[Node, Node]]) -> dict[PairKey, Pair]:
    """Return every pair that nodes have, worked out once each."""
    found: dict[PairKey, Pair] = {}
    for old, new in kept:
        key = key_of(old, new)
        if key not in found:
            found[key] = _pair(before.fleet, after.fleet, old, new)
    return found


def _pair(before: Fleet, after: Fleet, old: Node, new: Node) -> Pair:
    was, will = before.spec_of(old.name), after.spec_of(new.name)
    return Pair(
        old=was,
        new=will,
        moves=_moves(_owed(before, old), _owed(after, new)),
        settings=tuple(_settings(was, will)),
        thresholds=tuple(_thresholds(was, will)),
        bundle=before.bundle_of(old.name).components != after.bundle_of(new.name).components,
        respecced=was.name != will.name,
    )


def _owed(fleet: Fleet, node: Node) -> dict[str, Component]:
    """Return the components that automation keeps on a node; adapters only where the profile says so."""
    hca = fleet.profile_of(node.name).hca_firmware
    return {part.name: part for part in fleet.bundle_of(node.name).components if hca or not part.hca}


def _moves(old: Mapping[str, Component], new: Mapping[str, Component]) -> tuple[Move, ...]:
    moves = [
        Move(name, old[name].version if name in old else "", part.version, part.reset, part.order)
        for name, part in new.items()
        if name not in old or old[name].version != part.version
    ]
    return tuple(sorted(moves, key=lambda move: (move.order, move.component)))


def _settings(old: NodeSpec, new: NodeSpec) -> Iterable[Setting]:
    for field in type(new).model_fields:
        was, will = getattr(old, field), getattr(new, field)
        if field in PAPER or was == will:
            continue
        if field in SETTINGS:
            yield Setting(field, *_contrast(was, will), "applied", SETTINGS[field].reset)
        else:
            yield Setting(field, *_contrast(was, will), "judged", "none")


def _thresholds(old: NodeSpec, new: NodeSpec) -> Iterable[Threshold]:
    for name in dict.fromkeys([*old.limits, *new.limits]):
        was, will = _bound(old, name), _bound(new, name)
        if was != will:
            yield Threshold(name, was, will)


def _bound(spec: NodeSpec, name: str) -> str:
    limit = spec.limits.get(name)
    return f"{limit.value:g} {limit.unit}".strip() if limit else ""


def _contrast(old: Any, new: Any) -> tuple[str, str]:
    """Return what differs of two values, each side in one line."""
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
    return ", ".join(f"{name}={values[name]}" for name in names if values.get(name) is not None) or NONE


def _line(values: Iterable[Any]) -> str:
    return " ".join(str(value) for value in values) or NONE
