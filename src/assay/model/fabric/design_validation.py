"""What no design may say: rules that need a port twice, a port or switch that is not there, or one thing twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.model.errors import FieldConflict
from assay.model.fabric.design_cables_and_partitions import MAX_DESIGN_NODES, expand_node_names
from assay.model.fabric.switch_tiers import PLACEHOLDER, parse_switch_position

if TYPE_CHECKING:
    from assay.model.fabric.fabric_design import FabricDesign
    from assay.model.fabric.fat_tree import FatTreeWiring
    from assay.model.fabric.switch_tiers import SwitchModel

EntryPath = tuple[str | int, ...]
KEEP_ONE_FIX = "keep one of the two"


def find_design_conflicts(design: FabricDesign) -> list[FieldConflict]:
    """Return what is wrong. Where the nodes' names cannot be read, nothing that counts them is said."""
    if unfit := list(_unreadable_ranges(design)) or list(_missing_parts(design)):
        return unfit
    wiring, model = design.fat_tree, design.switch
    rules = (
        [*_leaf_conflicts(wiring, model), *_spine_conflicts(wiring, model), *_core_conflicts(wiring, model)]
        if wiring and model
        else []
    )
    return [*rules, *_misplaced_names(design), *_unknown_partition_nodes(design), *_duplicates(design)]


def _unreadable_ranges(design: FabricDesign) -> Iterator[FieldConflict]:
    for at, partition in enumerate(design.partitions):
        for number, entry in enumerate(partition.nodes):
            try:
                expand_node_names(entry)
            except ValueError as wrong:
                place = ("partitions", at, "nodes", number)
                yield FieldConflict("ASY0084", place, str(wrong), "write a name, or a range as n0001..n0020")
    count = 0
    for number, entry in enumerate(design.nodes):
        try:
            count += len(expand_node_names(entry))
        except ValueError as wrong:
            yield FieldConflict("ASY0084", ("nodes", number), str(wrong), "write a name, or a range as n0001..n0020")
        if count > MAX_DESIGN_NODES:
            said = f"more than {MAX_DESIGN_NODES} nodes"
            yield FieldConflict("ASY0084", ("nodes", number), said, "split the fabric, or correct the range")
            return


def _missing_parts(design: FabricDesign) -> Iterator[FieldConflict]:
    """Find rules of which a part is missing, and designs of no cable."""
    parts = {name: bool(getattr(design, name)) for name in ("leaves", "spines", "nodes", "rails", "switch")}
    begun = [name for name in ("leaves", "spines", "nodes", "cores") if getattr(design, name)]
    if begun:
        for name in (name for name, there in parts.items() if not there):
            yield FieldConflict(
                "ASY0084", (name,), f"{begun[0]} need {name}", f"add {name}, or list every cable in `cables`"
            )
    elif not design.cables and not design.devices:
        yield FieldConflict(
            "ASY0084", (), "a design without leaves and without cables", "add rules, or list the `cables`"
        )
    elif design.overrides:
        yield FieldConflict(
            "ASY0084", ("overrides",), "there are no rules to override", "correct the `cables` themselves"
        )


def _leaf_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    down, up = wiring.leaf_down_ports, wiring.leaf_up_ports
    if max(down[0], up[0]) <= min(down[-1], up[-1]):
        said = "leaves: the ports of `down` and `up` overlap: some would take a node's cable and a spine's"
        yield FieldConflict("ASY0080", ("leaves", "up"), said, f"begin `up` after port {down[-1]}")
    for tier, ports in (("down", down), ("up", up)):
        if ports[-1] > model.port_count:
            said = f"leaves: a {model.product} has {model.port_count} ports, `{tier}` ends at {ports[-1]}"
            yield FieldConflict("ASY0081", ("leaves", tier), said, f"end it at port {model.port_count} or before")
    yield from _leaf_count_conflicts(wiring)


def _leaf_count_conflicts(wiring: FatTreeWiring) -> Iterator[FieldConflict]:
    given, needed = len(wiring.leaves.at), wiring.unit_count * wiring.rails
    if given != needed:
        nodes = f"{wiring.nodes} nodes at {len(wiring.leaf_down_ports)} a leaf"
        said = f"{wiring.unit_count} units × {wiring.rails} rails need {needed} leaves, not {given} ({nodes})"
        code, fix = ("ASY0081", "add the leaves of another unit") if given < needed else ("ASY0084", "leave them out")
        yield FieldConflict(code, ("leaves", "at"), said, f"{fix}, or correct `nodes`, `rails` or `down`")


def _spine_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    groups, per, up, spines = (
        wiring.spine_group_count,
        wiring.spines.per_pair,
        len(wiring.leaf_up_ports),
        len(wiring.spines.at),
    )
    if spines % groups:
        said = f"{spines} spines do not make {groups} equal groups"
        yield FieldConflict("ASY0084", ("spines", "at"), said, "let every group have as many spines, or correct `pod`")
        return
    if wiring.spines_per_group * per != up:
        said = f"{wiring.spines_per_group} spines × {per} cables do not use the leaves' {up} up ports"
        code = "ASY0081" if wiring.spines_per_group * per > up else "ASY0084"
        yield FieldConflict(code, ("spines", "per_pair"), said, "let spines × per_pair be the number of `up` ports")
    needed, down = wiring.leaves_per_group * per, wiring.spine_down_ports
    if needed > model.port_count:
        said = f"spines: {wiring.leaves_per_group} leaves × {per} cables exceed {model.port_count} ports of a {model.product}"
        yield FieldConflict("ASY0081", ("spines", "per_pair"), said, "take more spines with fewer cables a pair")
    elif needed > len(down):
        said = f"spines: {wiring.leaves_per_group} leaves × {per} cables exceed the {len(down)} ports of `down`"
        yield FieldConflict(
            "ASY0081", ("spines", "down"), said, "widen `down`, or take more spines with fewer cables a pair"
        )
    for name, ports in (("down", down if wiring.spines.down else range(0)), ("up", wiring.spine_up_ports)):
        if ports and ports[-1] > model.port_count:
            said = f"spines: a {model.product} has {model.port_count} ports, `{name}` ends at {ports[-1]}"
            yield FieldConflict("ASY0081", ("spines", name), said, f"end it at port {model.port_count} or before")


def _core_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    cores, up, down = wiring.cores, wiring.spine_up_ports, wiring.spine_down_ports
    if cores is None:
        if up:
            said = "spines have `up` ports and there are no cores"
            yield FieldConflict("ASY0084", ("spines", "up"), said, "leave `up` out, or add `cores`")
        return
    if not up:
        yield FieldConflict("ASY0084", ("spines", "up"), "cores need the spines' `up` ports", "write `up` as 33..64")
        return
    if down and max(down[0], up[0]) <= min(down[-1], up[-1]):
        said = "spines: the ports of `down` and `up` overlap: some would take a leaf's cable and a core's"
        yield FieldConflict("ASY0080", ("spines", "up"), said, f"begin `up` after port {down[-1]}")
    if len(wiring.spines.at) % wiring.spine_group_count:
        return
    yield from _plane_conflicts(wiring, len(cores.at), cores.per_pair, model)


def _plane_conflicts(wiring: FatTreeWiring, cores: int, per: int, model: SwitchModel) -> Iterator[FieldConflict]:
    up = len(wiring.spine_up_ports)
    if not wiring.plane_count or cores % wiring.plane_count:
        said = f"{cores} cores do not make {wiring.plane_count} equal planes, one for each spine of a group"
        yield FieldConflict("ASY0084", ("cores", "at"), said, "let every plane have as many cores")
        return
    if cores // wiring.plane_count * per != up:
        said = f"{cores // wiring.plane_count} cores a plane × {per} cables do not use the spines' {up} up ports"
        code = "ASY0081" if cores // wiring.plane_count * per > up else "ASY0084"
        yield FieldConflict(
            code, ("cores", "per_pair"), said, "let a plane's cores × per_pair be the number of `up` ports"
        )
    if wiring.spines_per_plane * per > model.port_count:
        said = f"cores: {wiring.spines_per_plane} spines × {per} cables exceed {model.port_count} ports of a {model.product}"
        yield FieldConflict("ASY0081", ("cores", "per_pair"), said, "take more cores with fewer cables a pair")


def _misplaced_names(design: FabricDesign) -> Iterator[FieldConflict]:
    """Find the first switch of each tier that has, by the tier's pattern, the name of another place than its own."""
    told: set[str] = set()
    for name, tier, number, switch in design.switches():
        pattern = dict(design.tiers)[tier].name
        if tier in told or not switch.name or parse_switch_position(pattern, name) is None or not design.fat_tree:
            continue
        meant = pattern.format(**design.fat_tree.switch_name_fields(tier, number))
        if meant != name and PLACEHOLDER.search(pattern):
            told.add(tier)
            said = f"{name} stands where {meant} belongs"
            yield FieldConflict("ASY0084", (tier, "at", number), said, f"add {meant}, or correct a name")


def _unknown_partition_nodes(design: FabricDesign) -> Iterator[FieldConflict]:
    """Find members of partitions that are no nodes of the design. One of listed cables alone names no nodes."""
    known = set(design.node_names())
    for at, partition in enumerate(design.partitions if known else ()):
        for number, entry in enumerate(partition.nodes):
            if strange := [name for name in expand_node_names(entry) if name not in known]:
                said = f"{strange[0]} is a member of {partition.pkey}, and no node of this design"
                fix = "add it to `nodes`, or correct the name"
                yield FieldConflict("ASY0084", ("partitions", at, "nodes", number), said, fix)


def _duplicates(design: FabricDesign) -> Iterator[FieldConflict]:
    seen: set[tuple[str, str]] = set()
    for path, what, name in _unique_entries(design):
        if (what, name) in seen:
            yield FieldConflict("ASY0085", path, f"{what} {name} is given twice", KEEP_ONE_FIX)
        seen.add((what, name))


def _unique_entries(design: FabricDesign) -> Iterator[tuple[EntryPath, str, str]]:
    """Yield everything that may be there once only, with its path."""
    for number, entry in enumerate(design.nodes):
        yield from ((("nodes", number), "node", name) for name in expand_node_names(entry))
    for name, tier, number, switch in design.switches():
        entry_path = (tier, "at", number)
        yield (*entry_path, "guid"), "guid", switch.guid
        yield (*entry_path, "u"), "place", f"{switch.rack} U{switch.u}"
        yield ((*entry_path, "name") if switch.name else (tier, "name")), "name", name
    for number, device in enumerate(design.devices):
        yield ("devices", number, "guid"), "guid", device.guid
    for number, partition in enumerate(design.partitions):
        called = f"{partition.membership} membership in {partition.pkey}, of"
        if not partition.nodes:
            yield ("partitions", number), called, "every node"
        for place, entry in enumerate(partition.nodes):
            yield from ((("partitions", number, "nodes", place), called, name) for name in expand_node_names(entry))
    for number, override in enumerate(design.overrides):
        yield ("overrides", number), "override of", f"port {override.port} of {override.device}"
