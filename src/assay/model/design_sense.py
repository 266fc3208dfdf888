"""What no design may say: rules that need a port twice, a port or switch that is not there, or one thing twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.model.errors import Misfit
from assay.model.span import MOST_NODES, spelled_out
from assay.model.tiers import PLACEHOLDER, place_in

if TYPE_CHECKING:
    from assay.model.design import FabricDesign
    from assay.model.switches import SwitchModel
    from assay.model.wiring import Wiring

Path = tuple[str | int, ...]
TWICE = "keep one of the two"


def misfits(design: FabricDesign) -> list[Misfit]:
    """Return what is wrong. Where the nodes' names cannot be read, nothing that counts them is said."""
    if unfit := list(_unread(design)) or list(_incomplete(design)):
        return unfit
    wiring, model = design.wiring, design.switch
    rules = [*_leaves(wiring, model), *_spines(wiring, model), *_cores(wiring, model)] if wiring and model else []
    return [*rules, *_misnamed(design), *_strangers(design), *_repeated(design)]


def _unread(design: FabricDesign) -> Iterator[Misfit]:
    for at, partition in enumerate(design.partitions):
        for number, entry in enumerate(partition.nodes):
            try:
                spelled_out(entry)
            except ValueError as wrong:
                place = ("partitions", at, "nodes", number)
                yield Misfit("ASY0084", place, str(wrong), "write a name, or a range as n0001..n0020")
    count = 0
    for number, entry in enumerate(design.nodes):
        try:
            count += len(spelled_out(entry))
        except ValueError as wrong:
            yield Misfit("ASY0084", ("nodes", number), str(wrong), "write a name, or a range as n0001..n0020")
        if count > MOST_NODES:
            said = f"more than {MOST_NODES} nodes"
            yield Misfit("ASY0084", ("nodes", number), said, "split the fabric, or correct the range")
            return


def _incomplete(design: FabricDesign) -> Iterator[Misfit]:
    """Find rules of which a part is missing, and designs of no cable."""
    parts = {name: bool(getattr(design, name)) for name in ("leaves", "spines", "nodes", "rails", "switch")}
    begun = [name for name in ("leaves", "spines", "nodes", "cores") if getattr(design, name)]
    if begun:
        for name in (name for name, there in parts.items() if not there):
            yield Misfit("ASY0084", (name,), f"{begun[0]} need {name}", f"add {name}, or list every cable in `cables`")
    elif not design.cables and not design.devices:
        yield Misfit("ASY0084", (), "a design without leaves and without cables", "add rules, or list the `cables`")
    elif design.overrides:
        yield Misfit("ASY0084", ("overrides",), "there are no rules to override", "correct the `cables` themselves")


def _leaves(wiring: Wiring, model: SwitchModel) -> Iterator[Misfit]:
    down, up = wiring.down, wiring.up
    if max(down[0], up[0]) <= min(down[-1], up[-1]):
        said = "leaves: the ports of `down` and `up` overlap: some would take a node's cable and a spine's"
        yield Misfit("ASY0080", ("leaves", "up"), said, f"begin `up` after port {down[-1]}")
    for tier, ports in (("down", down), ("up", up)):
        if ports[-1] > model.most:
            said = f"leaves: a {model.product} has {model.most} ports, `{tier}` ends at {ports[-1]}"
            yield Misfit("ASY0081", ("leaves", tier), said, f"end it at port {model.most} or before")
    yield from _count(wiring)


def _count(wiring: Wiring) -> Iterator[Misfit]:
    given, needed = len(wiring.leaves.at), wiring.units * wiring.rails
    if given != needed:
        nodes = f"{wiring.nodes} nodes at {len(wiring.down)} a leaf"
        said = f"{wiring.units} units × {wiring.rails} rails need {needed} leaves, not {given} ({nodes})"
        code, fix = ("ASY0081", "add the leaves of another unit") if given < needed else ("ASY0084", "leave them out")
        yield Misfit(code, ("leaves", "at"), said, f"{fix}, or correct `nodes`, `rails` or `down`")


def _spines(wiring: Wiring, model: SwitchModel) -> Iterator[Misfit]:
    groups, per, up, spines = wiring.groups, wiring.spines.per_pair, len(wiring.up), len(wiring.spines.at)
    if spines % groups:
        said = f"{spines} spines do not make {groups} equal groups"
        yield Misfit("ASY0084", ("spines", "at"), said, "let every group have as many spines, or correct `pod`")
        return
    if wiring.each * per != up:
        said = f"{wiring.each} spines × {per} cables do not use the leaves' {up} up ports"
        code = "ASY0081" if wiring.each * per > up else "ASY0084"
        yield Misfit(code, ("spines", "per_pair"), said, "let spines × per_pair be the number of `up` ports")
    needed, down = wiring.in_group * per, wiring.spine_down
    if needed > model.most:
        said = f"spines: {wiring.in_group} leaves × {per} cables exceed {model.most} ports of a {model.product}"
        yield Misfit("ASY0081", ("spines", "per_pair"), said, "take more spines with fewer cables a pair")
    elif needed > len(down):
        said = f"spines: {wiring.in_group} leaves × {per} cables exceed the {len(down)} ports of `down`"
        yield Misfit("ASY0081", ("spines", "down"), said, "widen `down`, or take more spines with fewer cables a pair")
    for name, ports in (("down", down if wiring.spines.down else range(0)), ("up", wiring.spine_up)):
        if ports and ports[-1] > model.most:
            said = f"spines: a {model.product} has {model.most} ports, `{name}` ends at {ports[-1]}"
            yield Misfit("ASY0081", ("spines", name), said, f"end it at port {model.most} or before")


def _cores(wiring: Wiring, model: SwitchModel) -> Iterator[Misfit]:
    cores, up, down = wiring.cores, wiring.spine_up, wiring.spine_down
    if cores is None:
        if up:
            said = "spines have `up` ports and there are no cores"
            yield Misfit("ASY0084", ("spines", "up"), said, "leave `up` out, or add `cores`")
        return
    if not up:
        yield Misfit("ASY0084", ("spines", "up"), "cores need the spines' `up` ports", "write `up` as 33..64")
        return
    if down and max(down[0], up[0]) <= min(down[-1], up[-1]):
        said = "spines: the ports of `down` and `up` overlap: some would take a leaf's cable and a core's"
        yield Misfit("ASY0080", ("spines", "up"), said, f"begin `up` after port {down[-1]}")
    if len(wiring.spines.at) % wiring.groups:
        return
    yield from _planes(wiring, len(cores.at), cores.per_pair, model)


def _planes(wiring: Wiring, cores: int, per: int, model: SwitchModel) -> Iterator[Misfit]:
    up = len(wiring.spine_up)
    if not wiring.planes or cores % wiring.planes:
        said = f"{cores} cores do not make {wiring.planes} equal planes, one for each spine of a group"
        yield Misfit("ASY0084", ("cores", "at"), said, "let every plane have as many cores")
        return
    if cores // wiring.planes * per != up:
        said = f"{cores // wiring.planes} cores a plane × {per} cables do not use the spines' {up} up ports"
        code = "ASY0081" if cores // wiring.planes * per > up else "ASY0084"
        yield Misfit(code, ("cores", "per_pair"), said, "let a plane's cores × per_pair be the number of `up` ports")
    if wiring.in_plane * per > model.most:
        said = f"cores: {wiring.in_plane} spines × {per} cables exceed {model.most} ports of a {model.product}"
        yield Misfit("ASY0081", ("cores", "per_pair"), said, "take more cores with fewer cables a pair")


def _misnamed(design: FabricDesign) -> Iterator[Misfit]:
    """Find the first switch of each tier that has, by the tier's pattern, the name of another place than its own."""
    told: set[str] = set()
    for name, tier, number, switch in design.switches():
        pattern = dict(design.tiers)[tier].name
        if tier in told or not switch.name or place_in(pattern, name) is None or not design.wiring:
            continue
        meant = pattern.format(**design.wiring.named(tier, number))
        if meant != name and PLACEHOLDER.search(pattern):
            told.add(tier)
            said = f"{name} stands where {meant} belongs"
            yield Misfit("ASY0084", (tier, "at", number), said, f"add {meant}, or correct a name")


def _strangers(design: FabricDesign) -> Iterator[Misfit]:
    """Find members of partitions that are no nodes of the design. One of listed cables alone names no nodes."""
    known = set(design.node_names())
    for at, partition in enumerate(design.partitions if known else ()):
        for number, entry in enumerate(partition.nodes):
            if strange := [name for name in spelled_out(entry) if name not in known]:
                said = f"{strange[0]} is a member of {partition.pkey}, and no node of this design"
                fix = "add it to `nodes`, or correct the name"
                yield Misfit("ASY0084", ("partitions", at, "nodes", number), said, fix)


def _repeated(design: FabricDesign) -> Iterator[Misfit]:
    seen: set[tuple[str, str]] = set()
    for path, what, name in _named(design):
        if (what, name) in seen:
            yield Misfit("ASY0085", path, f"{what} {name} is given twice", TWICE)
        seen.add((what, name))


def _named(design: FabricDesign) -> Iterator[tuple[Path, str, str]]:
    """Yield everything that may be there once only, with its path."""
    for number, entry in enumerate(design.nodes):
        yield from ((("nodes", number), "node", name) for name in spelled_out(entry))
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
            yield from ((("partitions", number, "nodes", place), called, name) for name in spelled_out(entry))
    for number, override in enumerate(design.overrides):
        yield ("overrides", number), "override of", f"port {override.port} of {override.device}"
