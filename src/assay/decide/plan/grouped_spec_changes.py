"""Lists what specs change on nodes, grouped for people: firmware, settings to apply, limits, hardware to judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

from assay.decide.plan.inputs import FleetRevision, find_spec_line
from assay.decide.plan.setting_routes import reads_field
from assay.decide.plan.spec_pair_comparison import LimitDifference, NodeGroup, SettingChange, VersionChange
from assay.model.facts import fact, inline

T = TypeVar("T", bound=Hashable)


@fact
class FirmwareChange:
    """A component that changes its version."""

    move: VersionChange = inline()
    nodes: tuple[str, ...]
    """The nodes on which it changes."""


@fact
class ConfigurationChange:
    """A setting of a spec that changes."""

    setting: SettingChange = inline()
    nodes: tuple[str, ...]
    """The nodes on which it changes."""
    pools: tuple[str, ...]
    """Their pools."""
    seen_by: tuple[str, ...]
    """The checks that read it; without any, nobody sees the change."""


@fact
class LimitChange:
    """A limit of a spec that changes."""

    spec: str
    """The spec."""
    threshold: LimitDifference = inline()
    line: str
    """The file and line of the limit."""
    nodes: tuple[str, ...]
    """The nodes that it holds for."""
    checks: tuple[str, ...]
    """The checks that read it."""


def list_firmware_changes(groups: Iterable[NodeGroup]) -> tuple[FirmwareChange, ...]:
    """Return the version changes in the order in which zap applies them."""
    touched = _group_nodes_by((move, group) for group in groups for move in group.pair.moves)
    moves = [FirmwareChange(move, nodes) for move, nodes in touched]
    return tuple(sorted(moves, key=lambda change: (change.move.order, change.move.component)))


def list_configuration_changes(groups: Iterable[NodeGroup], after: FleetRevision) -> tuple[ConfigurationChange, ...]:
    """Return the changed fields, except firmware and limits."""
    touched = _group_nodes_by((setting, group) for group in groups for setting in group.pair.settings)
    changes = []
    for setting, nodes in touched:
        pools = sorted({after.fleet.nodes[name].pool for name in nodes})
        # The checks that read the field, or that run once for each part that the spec declares.
        readers = [
            name for name, check in after.checks.items() if reads_field(check, after.reads.get(name), setting.field)
        ]
        changes.append(ConfigurationChange(setting, nodes, tuple(pools), tuple(readers)))
    return tuple(changes)


def list_limit_changes(groups: Iterable[NodeGroup], after: FleetRevision) -> tuple[LimitChange, ...]:
    """Return the limits that change, by spec."""
    touched = _group_nodes_by(
        ((group.pair.new.name, limit), group) for group in groups for limit in group.pair.thresholds
    )
    return tuple(
        LimitChange(
            spec,
            threshold,
            find_spec_line(after.fleet, f"NodeSpec/{spec}", f"limits.{threshold.limit}"),
            nodes,
            tuple(
                ident for ident in after.checks if ident in after.reads and threshold.limit in after.reads[ident].limits
            ),
        )
        for (spec, threshold), nodes in touched
    )


def _group_nodes_by(touched: Iterable[tuple[T, NodeGroup]]) -> Iterator[tuple[T, tuple[str, ...]]]:
    nodes: dict[T, list[str]] = defaultdict(list)
    for change, group in touched:
        nodes[change] += group.names
    return ((change, tuple(names)) for change, names in nodes.items())
