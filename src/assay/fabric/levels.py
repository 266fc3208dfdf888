"""How far each device is from the nodes, and what the fabric lacks while one of its switches is out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from assay.fabric.planned import Plan


def levels(plan: Plan) -> dict[str, int]:
    """Return 0 for adapters, 1 for switches that adapters are cabled to, 2 for those above them, and so on."""
    found = {guid: 0 for guid, device in plan.devices.items() if device.kind == "hca"}
    front, level = list(found), 0
    while front:
        level += 1
        far = {f"0x{row[1]}" for guid in front for row in plan.rows[guid[2:]]} - found.keys()
        found |= dict.fromkeys(far, level)
        front = list(far)
    return found


def costs(plan: Plan, switch: str, level: Mapping[str, int]) -> str:
    """Say in one line what the devices below a switch lose with it."""
    here = level.get(switch, 0)
    below = Counter(f"0x{row[1]}" for row in plan.rows[switch[2:]] if level.get(f"0x{row[1]}", 0) < here)
    if here == 1:
        return _of_nodes(plan, below)
    said: Counter[tuple[int, int]] = Counter()
    for guid, lost in below.items():
        up = sum(level.get(f"0x{row[1]}", 0) > level[guid] for row in plan.rows[guid[2:]])
        said[lost, up] += 1
    return "; ".join(
        f"{_count(many, 'switch', 'switches')} below it {'is' if many == 1 else 'are'} left with {up - lost} of {up}"
        f" cables up ({(up - lost) / up:.0%} of the bandwidth)"
        for (lost, up), many in sorted(said.items(), reverse=True)
    )


def _of_nodes(plan: Plan, below: Mapping[str, int]) -> str:
    """Say it of nodes: an adapter alone is none of its own."""
    lost: Counter[str] = Counter()
    for guid, cables in below.items():
        lost[plan.devices[guid].node or guid] += cables
    said: Counter[tuple[int, int]] = Counter()
    for unit, cables in lost.items():
        own = plan.of_node(unit) if unit not in plan.devices else plan.of_device(unit)
        said[cables, len(own)] += 1
    return "; ".join(
        f"{_count(many, 'node', 'nodes')} {'is' if many == 1 else 'are'} left with {links - gone} of {links} links"
        for (gone, links), many in sorted(said.items(), reverse=True)
    )


def _count(many: int, one: str, more: str) -> str:
    return f"{many} {one if many == 1 else more}"
