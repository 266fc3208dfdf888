"""Where the rules of a fat tree do not fit: a port or a switch that is not there, or one port twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.model.errors import FieldConflict
from assay.model.specs.fabric.fat_tree_wiring_and_numbering import FatTreeWiring
from assay.model.specs.fabric.switch_settings import CoreTier, LeafTier, SpineTier, SwitchModel, TierName


def find_wiring_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> list[FieldConflict]:
    """Return where the rules need a port or switch that is not there, or one port twice."""
    return [*_leaf_conflicts(wiring, model), *_spine_conflicts(wiring, model), *_core_conflicts(wiring, model)]


def _leaf_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    down, up = wiring.leaf_down_ports, wiring.leaf_up_ports
    if max(down[0], up[0]) <= min(down[-1], up[-1]):
        message = "leaves: the ports of `down` and `up` overlap: some would take a node's cable and a spine's"
        yield FieldConflict("ASY0080", ("leaves", "up"), message, f"begin `up` after port {down[-1]}")
    for tier, ports in (("down", down), ("up", up)):
        if ports[-1] > model.port_count:
            message = f"leaves: a {model.product} has {model.port_count} ports, `{tier}` ends at {ports[-1]}"
            yield FieldConflict("ASY0081", ("leaves", tier), message, f"end it at port {model.port_count} or before")
    yield from _leaf_count_conflicts(wiring)


def _leaf_count_conflicts(wiring: FatTreeWiring) -> Iterator[FieldConflict]:
    given, needed = len(wiring.leaves.at), wiring.unit_count * wiring.rails
    if given != needed:
        nodes = f"{wiring.nodes} nodes at {len(wiring.leaf_down_ports)} a leaf"
        message = f"{wiring.unit_count} units × {wiring.rails} rails need {needed} leaves, not {given} ({nodes})"
        code, fix = ("ASY0081", "add the leaves of another unit") if given < needed else ("ASY0084", "leave them out")
        yield FieldConflict(code, ("leaves", "at"), message, f"{fix}, or correct `nodes`, `rails` or `down`")


def _spine_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    groups, per, up, spines = (
        wiring.spine_group_count,
        wiring.spines.per_pair,
        len(wiring.leaf_up_ports),
        len(wiring.spines.at),
    )
    if spines % groups:
        message = f"{spines} spines do not make {groups} equal groups"
        yield FieldConflict(
            "ASY0084", ("spines", "at"), message, "let every group have as many spines, or correct `pod`"
        )
        return
    if wiring.spines_per_group * per != up:
        message = f"{wiring.spines_per_group} spines × {per} cables do not use the leaves' {up} up ports"
        code = "ASY0081" if wiring.spines_per_group * per > up else "ASY0084"
        yield FieldConflict(code, ("spines", "per_pair"), message, "let spines × per_pair be the number of `up` ports")
    needed, down = wiring.leaves_per_group * per, wiring.spine_down_ports
    if needed > model.port_count:
        needs = f"{wiring.leaves_per_group} leaves × {per} cables"
        message = f"spines: {needs} exceed {model.port_count} ports of a {model.product}"
        yield FieldConflict("ASY0081", ("spines", "per_pair"), message, "take more spines with fewer cables a pair")
    elif needed > len(down):
        message = f"spines: {wiring.leaves_per_group} leaves × {per} cables exceed the {len(down)} ports of `down`"
        yield FieldConflict(
            "ASY0081", ("spines", "down"), message, "widen `down`, or take more spines with fewer cables a pair"
        )
    for name, ports in (("down", down if wiring.spines.down else range(0)), ("up", wiring.spine_up_ports)):
        if ports and ports[-1] > model.port_count:
            message = f"spines: a {model.product} has {model.port_count} ports, `{name}` ends at {ports[-1]}"
            yield FieldConflict("ASY0081", ("spines", name), message, f"end it at port {model.port_count} or before")


def _core_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    cores, up, down = wiring.cores, wiring.spine_up_ports, wiring.spine_down_ports
    if cores is None:
        if up:
            message = "spines have `up` ports and there are no cores"
            yield FieldConflict("ASY0084", ("spines", "up"), message, "leave `up` out, or add `cores`")
        return
    if not up:
        yield FieldConflict("ASY0084", ("spines", "up"), "cores need the spines' `up` ports", "write `up` as 33..64")
        return
    if down and max(down[0], up[0]) <= min(down[-1], up[-1]):
        message = "spines: the ports of `down` and `up` overlap: some would take a leaf's cable and a core's"
        yield FieldConflict("ASY0080", ("spines", "up"), message, f"begin `up` after port {down[-1]}")
    if len(wiring.spines.at) % wiring.spine_group_count:
        return
    yield from _plane_conflicts(wiring, len(cores.at), cores.per_pair, model)


def _plane_conflicts(wiring: FatTreeWiring, cores: int, per: int, model: SwitchModel) -> Iterator[FieldConflict]:
    up = len(wiring.spine_up_ports)
    if not wiring.plane_count or cores % wiring.plane_count:
        message = f"{cores} cores do not make {wiring.plane_count} equal planes, one for each spine of a group"
        yield FieldConflict("ASY0084", ("cores", "at"), message, "let every plane have as many cores")
        return
    if cores // wiring.plane_count * per != up:
        message = f"{cores // wiring.plane_count} cores a plane × {per} cables do not use the spines' {up} up ports"
        code = "ASY0081" if cores // wiring.plane_count * per > up else "ASY0084"
        yield FieldConflict(
            code, ("cores", "per_pair"), message, "let a plane's cores × per_pair be the number of `up` ports"
        )
    if wiring.spines_per_plane * per > model.port_count:
        needs = f"{wiring.spines_per_plane} spines × {per} cables"
        message = f"cores: {needs} exceed {model.port_count} ports of a {model.product}"
        yield FieldConflict("ASY0081", ("cores", "per_pair"), message, "take more cores with fewer cables a pair")


def find_plane_conflicts(
    tiers: Iterable[tuple[TierName, LeafTier | SpineTier | CoreTier]], planes: int
) -> Iterator[FieldConflict]:
    """Find switches with more or fewer chips than the design has planes, and those that are in another box."""
    for name, tier in tiers:
        for number, switch in enumerate(tier.at):
            chips, entry = 1 + len(switch.other_planes), (name, "at", number)
            if chips != planes:
                message = f"planes: {planes}, but {switch.guid} has GUIDs for {chips}"
                fix = "give `guid` for plane 1 and `other_planes` for the others, or correct `planes`"
                yield FieldConflict("ASY0084", (*entry, "other_planes") if chips > 1 else entry, message, fix)
            if planes > 1 and (switch.box or switch.module):
                message = f"{switch.guid} has planes, so it is a box itself"
                yield FieldConflict("ASY0084", (*entry, "box"), message, "remove `box` and `module`")
