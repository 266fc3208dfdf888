"""What no design may say: rules that need a port twice, a port or switch that is not there, or one thing twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.model.errors import Contradiction, Misfit

if TYPE_CHECKING:
    from assay.model.design import FabricDesign

Path = tuple[str | int, ...]
TWICE = "keep one of the two"
MOST_NODES = 200_000  # of one design: more is a slip of the pen


def misfits(design: FabricDesign) -> list[Misfit]:
    """Return what is wrong. Where the nodes' names cannot be read, nothing that counts them is said."""
    unread = list(_unread(design))
    return unread or [*_leaves(design), *_spines(design), *_repeated(design)]


def _unread(design: FabricDesign) -> Iterator[Misfit]:
    count = 0
    for number, entry in enumerate(design.nodes):
        try:
            count += len(design.spelled_out(entry))
        except ValueError as wrong:
            yield Misfit("ASY0084", ("nodes", number), str(wrong), "write a name, or a range as n0001..n0020")
        if count > MOST_NODES:
            said = f"more than {MOST_NODES} nodes"
            yield Misfit("ASY0084", ("nodes", number), said, "split the fabric, or correct the range")
            return


def _leaves(design: FabricDesign) -> Iterator[Misfit]:
    down, up, model = design.down, design.up, design.switch
    if max(down[0], up[0]) <= min(down[-1], up[-1]):
        said = "leaves: the ports of `down` and `up` overlap: some would take a node's cable and a spine's"
        yield Misfit("ASY0080", ("leaves", "up"), said, f"begin `up` after port {down[-1]}")
    for tier, ports in (("down", down), ("up", up)):
        if ports[-1] > model.ports:
            said = f"leaves: a {model.product} has {model.ports} ports, `{tier}` ends at {ports[-1]}"
            yield Misfit("ASY0081", ("leaves", tier), said, f"end it at port {model.ports} or before")
    yield from _count(design)


def _count(design: FabricDesign) -> Iterator[Misfit]:
    given, needed = len(design.leaves.at), design.units * design.rails
    if given != needed:
        nodes = f"{len(design.node_names())} nodes at {len(design.down)} a leaf"
        said = f"{design.units} units × {design.rails} rails need {needed} leaves, not {given} ({nodes})"
        code, fix = ("ASY0081", "add the leaves of another unit") if given < needed else ("ASY0084", "leave them out")
        yield Misfit(code, ("leaves", "at"), said, f"{fix}, or correct `nodes`, `rails` or `down`")


def _spines(design: FabricDesign) -> Iterator[Misfit]:
    spines, each, up = len(design.spines.at), design.spines.per_pair, len(design.up)
    leaves, model = len(design.leaves.at), design.switch
    if spines * each != up:
        said = f"{spines} spines × {each} cables do not use the leaves' {up} up ports"
        code = "ASY0081" if spines * each > up else "ASY0084"
        yield Misfit(code, ("spines", "per_pair"), said, "let spines × per_pair be the number of `up` ports")
    if leaves * each > model.ports:
        said = f"spines: {leaves} leaves × {each} cables exceed {model.ports} ports of a {model.product}"
        yield Misfit("ASY0081", ("spines", "per_pair"), said, "take more spines with fewer cables a pair")


def _repeated(design: FabricDesign) -> Iterator[Misfit]:
    seen: set[tuple[str, str]] = set()
    for path, what, name in _named(design):
        if (what, name) in seen:
            yield Misfit("ASY0085", path, f"{what} {name} is given twice", TWICE)
        seen.add((what, name))


def _named(design: FabricDesign) -> Iterator[tuple[Path, str, str]]:
    """Yield everything that may be there once only, with its path."""
    for number, entry in enumerate(design.nodes):
        yield from ((("nodes", number), "node", name) for name in design.spelled_out(entry))
    for name, tier, number, switch in design.switches():
        entry_path = (tier, "at", number)
        yield (*entry_path, "guid"), "guid", switch.guid
        yield (*entry_path, "u"), "place", f"{switch.rack} U{switch.u}"
        yield ((*entry_path, "name") if switch.name else (tier, "name")), "name", name


def no_ports(ports: str) -> Contradiction:
    """Return what to raise for a span that holds no port."""
    return Contradiction(Misfit("ASY0084", (), f"{ports!r} holds no ports", "write it as 1..32"))
