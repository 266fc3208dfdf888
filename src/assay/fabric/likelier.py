"""Which plugs of exchanged cables were likelier put into each other's ports."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model.cable import End


def likelier(one: Sequence[End], other: Sequence[End]) -> tuple[int, str]:
    """Return 0 or 1 for the side whose plugs were likelier exchanged, and why.

    Hands mistake what is close together: neighbouring ports, ports of one device, devices in one rack. Of sides that
    are equally close, a switch's is the likelier, where plugs stand in dozens.
    """
    ranks = [_rank(one), _rank(other)]
    first = 0 if ranks[0] <= ranks[1] else 1
    if ranks[0][0] == ranks[1][0]:
        why = "either side may be it; the first is a switch, where plugs stand closer" if ranks[0] != ranks[1] else ""
        return first, why or "nothing tells which side it was; begin with the first"
    return first, _words([one, other][first], ranks[first][0])


def _rank(ends: Sequence[End]) -> tuple[int, bool]:
    """Return how far apart the plugs are, 0 to 3, and whether nodes have them."""
    at_nodes = any(end.node for end in ends)
    if len({end.node or end.guid for end in ends}) == 1:
        return (0 if _neighbours(ends) else 1), at_nodes
    racks = {(end.site, end.rack) for end in ends}
    return (2 if len(racks) == 1 and ends[0].rack else 3), at_nodes


def _neighbours(ends: Sequence[End]) -> bool:
    """Say whether all plugs of one device are in ports that follow each other."""
    numbers = sorted(end.port for end in ends)
    return len({end.guid for end in ends}) == 1 and numbers[-1] - numbers[0] == len(numbers) - 1


def _words(ends: Sequence[End], rank: int) -> str:
    unit = ends[0].node or ends[0].device
    ports = ", ".join(end.label or str(end.port) for end in ends)
    if rank == 0:
        return f"ports {ports} are neighbours on {unit}"
    if rank == 1:
        return f"all of these plugs are at {unit}"
    return f"all of these plugs are in rack {ends[0].rack}"
