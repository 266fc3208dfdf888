"""Writes an inferred fat tree as the rules of a design, in plain data."""

from __future__ import annotations

from collections import Counter
from typing import Any

from assay.fabric.drafts.fat_tree_inference import FatTreeInference
from assay.fabric.drafts.node_places import find_name_series


def make_rules(tree: FatTreeInference, name: str, rate: str, product: str, ports: int) -> dict[str, Any]:
    """Return the design in the form of a FabricDesign, with the adapters of its nodes."""
    names, gaps = _list_nodes(tree)
    rules: dict[str, Any] = {
        "kind": "FabricDesign", "name": name, "rate": rate, "nodes": names, "rails": len(tree.slots),
        "adapters": {host: tree.list_adapters(host) for host in names if host not in set(gaps)},
        "adapter_names": list(tree.slots),
        "switch": {"product": product, "ports": ports},
        "leaves": _make_leaves(tree),
        "spines": _make_spines(tree),
    }  # fmt: skip
    if gaps:
        rules["gaps"] = gaps
    if (ratio := len(tree.leaves.down) / len(tree.leaves.up)) > 1:
        rules["oversubscription"] = round(ratio, 3)
    if tree.cores.guids:
        rules["cores"] = {
            "name": "unnamed core {index}", "per_pair": tree.cores.per_pair,
            "plane": "number" if tree.planes else "all", "at": _list_switches(tree, "cores", tree.cores.guids),
        }  # fmt: skip
    return rules


def _make_leaves(tree: FatTreeInference) -> dict[str, Any]:
    leaves = {
        "name": "unnamed leaf of unit {unit}, rail {rail}",
        "down": _format(tree.leaves.down), "up": _format(tree.leaves.up),
        "at": _list_switches(tree, "leaves", tree.leaves.guids),
    }  # fmt: skip
    return leaves | ({"absent_units": tree.absent_units} if tree.absent_units else {})


def _make_spines(tree: FatTreeInference) -> dict[str, Any]:
    spines: dict[str, Any] = {
        "name": "unnamed spine {index}", "per_pair": tree.spines.per_pair, "down": _format(tree.spines.down),
        "at": _list_switches(tree, "spines", tree.spines.guids),
    }  # fmt: skip
    spines |= {"trunk": "spread"} if tree.spines.spread else {}
    spines |= {"group": "rail"} if tree.by_rail else {}
    spines |= {"pod": tree.pod} if tree.pod else {}
    if not tree.cores.guids:
        return spines
    ratio = len(tree.spines.down) / len(tree.spines.up)
    return spines | {"up": _format(tree.spines.up)} | ({"oversubscription": round(ratio, 3)} if ratio > 1 else {})


def _list_nodes(tree: FatTreeInference) -> tuple[list[str], list[str]]:
    """Return the names at all places in order, and those of them that are gaps."""
    host_at = {place: host for host, place in tree.places.items()}
    last = max(host_at)
    names: list[str] = []
    gaps: list[str] = []
    used = set(tree.hosts)
    for unit in range(len(tree.units)):
        series = find_name_series(tree.places, unit)
        for port in tree.leaves.down:
            host = host_at.get((unit, port))
            if host is None and (unit, port) < last:
                guess = series.name(port) if series else ""
                gaps.append(host := f"free-{unit + 1}-{port}" if not guess or guess in used else guess)
                used.add(host)
            names += [host] if host else []
    return names, gaps


def _list_switches(tree: FatTreeInference, tier: str, guids: list[str]) -> list[dict[str, Any]]:
    devices = tree.discovery.devices
    named = Counter(devices[guid].name for guid in guids if guid in devices)
    return [
        {"guid": guid, "rack": f"unknown {tier}", "u": number}
        | ({"name": devices[guid].name} if guid in devices and named[devices[guid].name] == 1 else {})
        for number, guid in enumerate(guids, start=1)
    ]


def _format(ports: range) -> str:
    return f"{ports[0]}..{ports[-1]}"
