"""Computes what a changed spec means for a node, once for all nodes with the same pair of specs and profiles.

Everything is computed once per group of nodes that change in the same way, not once per node. What people read is
grouped by what changes: firmware, settings to apply, limits, hardware to judge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

from assay.decide.plan.inputs import FleetRevision, find_spec_line
from assay.decide.plan.inventory_changes import COMPARED_FIELDS, PLACE_FIELDS, InventoryChanges
from assay.decide.plan.setting_routes import (
    IMAGE,
    IN_SERVICE,
    SettingRoute,
    SettingWay,
    find_setting_route,
    make_rollout_route,
    reads_field,
)
from assay.model.decision import WIPE
from assay.model.facts import fact, frozen, inline
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.firmware_bundle import FirmwareComponent, FirmwareReset
from assay.model.specs.load_parts import GOLDEN_FIXTURES, GoldenKind
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.declared_settings import NESTED, SETTING_ROLES, list_declared_settings
from assay.model.specs.node.node_spec import NodeSpec

UNJUDGED_FIELDS = {"kind", "name", "extends", "description", "owner", "firmware", "limits"}
RESET_ORDER: tuple[FirmwareReset, ...] = ("none", "bmc", "host", "ac")
NO_RESET = "none"

SpecPairKey = tuple[str, str, str, str, str, str, bool, bool, bool, frozenset[str]]


@fact
class VersionChange:
    """A component that changes its version."""

    component: str
    """The component."""
    old: str
    """Its version before; "" if the bundle did not have it."""
    new: str
    """Its version after."""
    reset: FirmwareReset
    """What must be restarted for it."""
    order: int
    """Its place in the order of installing."""


@fact
class SettingChange:
    """A setting of a spec that changes."""

    field: str
    """The setting, such as host.governor."""
    old: str
    """Its value before."""
    new: str
    """Its value after."""
    how: Literal["applied", "judged"]
    """Whether it is applied to the nodes, or only judged."""
    reset: FirmwareReset
    """What must be restarted for it."""
    way: SettingWay = ""
    """How an applied setting reaches a node in service; "" for one that is only judged."""
    rule: str = ""
    """The rule of the policy that says so, as file and line; "" for none."""


@fact
class LimitDifference:
    """A limit that changes."""

    limit: str
    """The limit."""
    old: str
    """Its value before; "" if it did not exist."""
    new: str
    """Its value after; "" if it does not exist any more."""


@frozen
class SpecPair:
    """A node's spec before and after, and the differences.

    `bundle`: whether the firmware bundle differs. `golden`: which golden digests for its GPUs differ.
    """

    old: NodeSpec
    new: NodeSpec
    moves: tuple[VersionChange, ...]
    settings: tuple[SettingChange, ...]
    thresholds: tuple[LimitDifference, ...]
    bundle: bool
    is_other_spec: bool
    golden: frozenset[GoldenKind] = frozenset()

    @property
    def reset(self) -> FirmwareReset:
        """The strongest restart that the change needs."""
        needed = [*(move.reset for move in self.moves), *(setting.reset for setting in self.settings)]
        return max(needed, key=RESET_ORDER.index, default="none")

    @property
    def has_drift(self) -> bool:
        """Whether a node of this pair differs from its new spec until somebody works on it."""
        return bool(self.moves) or any(setting.way != "next_wipe" for setting in self.settings)

    @property
    def needs_service_exit(self) -> bool:
        """Whether a node must leave service: for firmware, for a restart, or as another kind of node.

        Another spec alone is no reason if all that differs is brought to a node in service.
        """
        other_kind = self.is_other_spec and any(setting.way not in IN_SERVICE for setting in self.settings)
        return bool(self.moves) or self.reset != NO_RESET or other_kind


def spec_pair_key(old: Node, new: Node) -> SpecPairKey:
    """Return the key that nodes share if the specs change them in the same way, and they have the same parts."""
    has = (bool(old.bmc_address), bool(new.bmc_address), bool(new.settings.fabric), new.settings.site_tools)
    return old.spec, new.spec, old.profile, new.profile, old.image, new.image, *has


def compare_spec_pairs(
    before: FleetRevision, after: FleetRevision, kept: Iterable[tuple[Node, Node]]
) -> dict[SpecPairKey, SpecPair]:
    """Return every pair of specs that nodes have, each computed once."""
    pairs: dict[SpecPairKey, SpecPair] = {}
    for old, new in kept:
        key = spec_pair_key(old, new)
        if key not in pairs:
            pairs[key] = _pair(before.fleet, after, old, new)
    return pairs


def _pair(before: Fleet, after: FleetRevision, old: Node, new: Node) -> SpecPair:
    fleet = after.fleet
    was = before.spec_of(old.name)
    will = fleet.spec_of(new.name)
    profile = fleet.profile_of(new.name)
    pair = SpecPair(
        old=was,
        new=will,
        moves=_moves(_managed_components(before, old), _managed_components(fleet, new)),
        settings=(*_settings(after, profile, was, will), *_change_of_image(after, profile, old, new)),
        thresholds=tuple(_thresholds(was, will)),
        bundle=before.bundle_of(old.name).components != fleet.bundle_of(new.name).components,
        is_other_spec=was.name != will.name,
        golden=frozenset(
            kind
            for kind in GOLDEN_FIXTURES.values()
            if before.list_golden_values(was.name, kind) != fleet.list_golden_values(will.name, kind)
        ),
    )
    return _route_by_rollout(after, pair) if pair.needs_service_exit and profile.acts_on_faults else pair


def _route_by_rollout(after: FleetRevision, pair: SpecPair) -> SpecPair:
    """Return a pair whose nodes get every setting out of service, since they leave it anyway."""
    route = make_rollout_route(after)
    settings = (
        replace(setting, way=route.way, rule=route.rule) if setting.how == "applied" else setting
        for setting in pair.settings
    )
    return replace(pair, settings=tuple(settings))


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


def _settings(
    after: FleetRevision, profile: ManagementProfile, old: NodeSpec, new: NodeSpec
) -> Iterator[SettingChange]:
    declared = set(list_declared_settings(new))
    for path, was, will in _list_changes(old, new):
        contrast = _format_contrast(was, will)
        if path not in declared:
            yield SettingChange(path, *contrast, "judged", "none", "next_wipe" if path == WIPE else "")
            continue
        route = find_setting_route(after, profile, path, " ".join(contrast))
        reset: FirmwareReset = "host" if SETTING_ROLES[path].applied == "zap" else "none"
        yield SettingChange(path, *contrast, "applied", reset, route.way, route.rule)


def _change_of_image(after: FleetRevision, profile: ManagementProfile, old: Node, new: Node) -> Iterator[SettingChange]:
    """Yield the change of the image that a node boots: a restart brings another one."""
    if new.image and old.image != new.image and profile.host_settings:
        route = make_rollout_route(after) if profile.acts_on_faults else SettingRoute("tracked")
        yield SettingChange(IMAGE, old.image or NO_RESET, new.image, "applied", "host", route.way, route.rule)


def _list_changes(old: NodeSpec, new: NodeSpec) -> Iterator[tuple[str, Any, Any]]:
    """Yield the path of each field that differs, as deep as settings are named, and both values."""
    for field in type(new).model_fields:
        was, will = getattr(old, field), getattr(new, field)
        if field in UNJUDGED_FIELDS or was == will:
            continue
        if field == "nics":
            yield from _list_changes_of_nics(old, new)
        elif field in NESTED:
            for name in type(will).model_fields:
                if getattr(was, name) != getattr(will, name):
                    yield f"{field}.{name}", getattr(was, name), getattr(will, name)
        else:
            yield field, was, will


def _list_changes_of_nics(old: NodeSpec, new: NodeSpec) -> Iterator[tuple[str, Any, Any]]:
    parts = [[nic.model_copy(update={"mtu": None}) for nic in spec.nics] for spec in (old, new)]
    mtus = [{nic.name: nic.mtu for nic in spec.nics if nic.mtu} for spec in (old, new)]
    for path, (was, will) in (("nics", parts), ("nics.mtu", mtus)):
        if was != will:
            yield path, was, will


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
        only = [value for value in old if value not in new], [value for value in new if value not in old]
        return (_line(only[0]), _line(only[1])) if only[0] or only[1] else (_line(old), _line(new))
    was, will = _as_map(old, new), _as_map(new, old)
    if was is None or will is None:
        return _scalar(old), _scalar(new)
    names = [name for name in dict.fromkeys([*was, *will]) if was.get(name) != will.get(name)]
    return (_entries(was, names), _entries(will, names))


def _scalar(value: Any) -> str:
    return NO_RESET if value is None else str(value)


def _as_map(value: Any, other: Any) -> Mapping[str, Any] | None:
    """Return a value as a mapping, if it or the other is one and it is not something else."""
    if value is None:
        return {} if isinstance(other, Mapping) or hasattr(other, "model_fields_set") else None
    if isinstance(value, Mapping):
        return value
    return dict(value) if hasattr(value, "model_fields_set") else None


def _entries(values: Mapping[str, Any], names: Iterable[str]) -> str:
    return ", ".join(f"{name}={values[name]}" for name in names if values.get(name) is not None) or NO_RESET


def _line(values: Iterable[Any]) -> str:
    return " ".join(str(value) for value in values) or NO_RESET


NODE_FIELDS = {label: field for field, label in COMPARED_FIELDS.items()}


@frozen
class NodeGroup:
    """Nodes with one pair of specs and profiles. `changed_fields`: their other changes, by field of Node."""

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
    fields_by_node = _map_changed_fields(changes, recabled)
    nothing: frozenset[str] = frozenset()
    groups: dict[tuple[SpecPairKey, frozenset[str]], list[tuple[Node, Node]]] = defaultdict(list)
    for old, new in changes.kept:
        groups[spec_pair_key(old, new), fields_by_node.get(new.name, nothing)].append((old, new))
    return tuple(NodeGroup(key, pairs[key], fields, tuple(nodes)) for (key, fields), nodes in groups.items())


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
