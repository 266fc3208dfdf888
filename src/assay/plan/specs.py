"""What specs change on nodes, grouped for people: firmware that moves, settings to apply, limits, hardware to judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from assay.plan.declared import Declared, line_of
from assay.plan.groups import Group
from assay.plan.pairs import Move, Setting, Threshold
from assay.plan.stale import PARTS

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class FirmwareMove:
    """One component that goes from a version to another, and the nodes on which it does."""

    move: Move
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Configuration:
    """A field of a spec that changes, the nodes, and the checks that read it; without any, nobody would notice."""

    setting: Setting
    nodes: tuple[str, ...]
    seen_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LimitChange:
    """A limit of a spec that changes, where it stands, the nodes that it judges, and the checks that read it."""

    spec: str
    threshold: Threshold
    line: str
    nodes: tuple[str, ...]
    checks: tuple[str, ...]


def firmware_moves(groups: Iterable[Group]) -> tuple[FirmwareMove, ...]:
    """Return the moves in the order in which they are applied."""
    found = _by((move, group) for group in groups for move in group.pair.moves)
    moves = [FirmwareMove(move, nodes) for move, nodes in found]
    return tuple(sorted(moves, key=lambda one: (one.move.order, one.move.component)))


def configuration(groups: Iterable[Group], after: Declared) -> tuple[Configuration, ...]:
    """Return the fields that change but firmware and limits."""
    found = _by((setting, group) for group in groups for setting in group.pair.settings)
    return tuple(Configuration(setting, nodes, tuple(_readers(after, setting.field))) for setting, nodes in found)


def limit_changes(groups: Iterable[Group], after: Declared) -> tuple[LimitChange, ...]:
    """Return the limits that change, by spec."""
    found = _by(((group.pair.new.name, limit), group) for group in groups for limit in group.pair.thresholds)
    return tuple(
        LimitChange(
            spec,
            threshold,
            line_of(after.fleet, f"NodeSpec/{spec}", f"limits.{threshold.limit}"),
            nodes,
            tuple(
                ident for ident in after.checks if ident in after.reads and threshold.limit in after.reads[ident].limits
            ),
        )
        for (spec, threshold), nodes in found
    )


def _by(touched: Iterable[tuple[T, Group]]) -> Iterator[tuple[T, tuple[str, ...]]]:
    nodes: dict[T, list[str]] = defaultdict(list)
    for what, group in touched:
        nodes[what] += group.names
    return ((what, tuple(names)) for what, names in nodes.items())


def _readers(after: Declared, field: str) -> Iterator[str]:
    """Yield the checks that read a field of the spec, or are repeated over the parts that it declares."""
    for ident, check in after.checks.items():
        reads = after.reads.get(ident)
        roots = {path.partition(".")[0] for path in reads.spec} if reads else set()
        if field in roots or PARTS.get(check.subject) == field:
            yield ident
