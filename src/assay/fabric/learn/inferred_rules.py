"""Writes an inferred fat tree as the rules of a design, in plain data."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from assay.fabric.learn.box_recognition import find_box_chips
from assay.fabric.learn.fat_tree_inference import FatTreeInference
from assay.fabric.learn.majority_votes import find_most_frequent
from assay.fabric.learn.name_series import find_name_series, guess_name
from assay.model.specs.fabric.ports_and_cables import rate_to_gbps
from assay.model.specs.fabric.switch_settings import UNKNOWN_RACK

TIERS = {(0, 1): "node_leaf", (1, 2): "leaf_spine", (2, 3): "spine_core"}
"""The cables between two tiers, of which nodes are the first."""


def make_rules(tree: FatTreeInference, name: str, product: str, ports: int) -> dict[str, Any]:
    """Return the design in the form of a FabricDesign, with the adapters of its nodes."""
    rate, rates = _find_rates(tree)
    low, middle, high = (rate_to_gbps(rates.get(cables, rate)) for cables in TIERS.values())
    names, gaps = _list_nodes(tree)
    rules: dict[str, Any] = {
        "kind": "FabricDesign", "name": name, "rate": rate, "nodes": names, "rails": len(tree.slots),
        "adapters": {host: tree.list_adapters(host) for host in names if host not in set(gaps)},
        "adapter_names": list(tree.slots),
        "switch": {"product": product, "ports": ports},
        "leaves": _make_leaves(tree),
        "spines": _make_spines(tree, middle / high),
    }  # fmt: skip
    if rates:
        rules["rates"] = rates
    if gaps:
        rules["gaps"] = gaps
    if (ratio := len(tree.leaves.down) * low / (len(tree.leaves.up) * middle)) > 1:
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


def _find_rates(tree: FatTreeInference) -> tuple[str, dict[str, str]]:
    """Return the rate of most cables, and the rates of the tiers of which most cables have another."""
    tiers = (tree.adapters, tree.leaves.guids, tree.spines.guids, tree.cores.guids)
    tier_of = {guid: number for number, guids in enumerate(tiers) for guid in guids}
    count: dict[str, Counter[str]] = defaultdict(Counter)
    for a, b, rate in tree.discovery.cables:
        pair = sorted((tier_of.get(a.guid, -1), tier_of.get(b.guid, -1)))
        if rate and tuple(pair) in TIERS:
            count[TIERS[pair[0], pair[1]]][rate] += 1
    usual = find_most_frequent(cable.rate for cable in tree.discovery.cables if cable.rate)
    own = {cables: rates.most_common(1)[0] for cables, rates in count.items()}
    return usual, {cables: rate for cables, (rate, times) in own.items()
                   if rate != usual and 2 * times > count[cables].total()}  # fmt: skip


def _make_spines(tree: FatTreeInference, rate_ratio: float) -> dict[str, Any]:
    spines: dict[str, Any] = {
        "name": "unnamed spine {index}", "per_pair": tree.spines.per_pair, "down": _format(_find_down_ports(tree)),
        "at": _list_switches(tree, "spines", tree.spines.guids),
    }  # fmt: skip
    spines |= {"trunk": "spread"} if tree.spines.spread else {}
    spines |= {"group": "rail"} if tree.by_rail else {}
    spines |= {"pod": tree.pod} if tree.pod else {}
    if not tree.cores.guids:
        return spines
    ratio = len(tree.spines.down) / len(tree.spines.up) * rate_ratio
    return spines | {"up": _format(tree.spines.up)} | ({"oversubscription": round(ratio, 3)} if ratio > 1 else {})


def _find_down_ports(tree: FatTreeInference) -> range:
    """Return the spines' ports to leaves: those that are used, and those of leaves at the end that nobody saw."""
    units, down = len(tree.units) + len(tree.absent_units), tree.spines.down
    leaves = min(tree.pod or units, units) * (1 if tree.by_rail else len(tree.slots))
    return range(down[0], max(down[-1] + 1, down[0] + leaves * tree.spines.per_pair))


def _list_nodes(tree: FatTreeInference) -> tuple[list[str], list[str]]:
    """Return the names at all places in order, and those of them that are gaps."""
    host_at = {place: host for host, place in tree.places.items()}
    last = max(host_at)
    names: list[str] = []
    gaps: list[str] = []
    used = set(tree.hosts)
    every = find_name_series(tree.places)
    for unit in range(len(tree.units)):
        for port in tree.leaves.down:
            host = host_at.get((unit, port))
            if host is None and (unit, port) < last:
                near = [series for series in every if series.unit == unit]
                guess = guess_name(near, [at for its, at in host_at if its == unit], port)
                gaps.append(host := f"free-{unit + 1}-{port}" if not guess or guess in used else guess)
                used.add(host)
            names += [host] if host else []
    return names, gaps


def _list_switches(tree: FatTreeInference, tier: str, guids: list[str]) -> list[dict[str, Any]]:
    devices = tree.discovery.devices
    named = Counter(devices[guid].name for guid in guids if guid in devices)
    chips = find_box_chips(devices, tree.discovery.cables)
    return [
        {"guid": guid, "rack": f"{UNKNOWN_RACK} {tier}", "u": number}
        | ({"name": devices[guid].name} if guid in devices and named[devices[guid].name] == 1 else {})
        | ({"box": chips[guid].box, "module": chips[guid].module} if guid in chips else {})
        for number, guid in enumerate(guids, start=1)
    ]


def _format(ports: range) -> str:
    return f"{ports[0]}..{ports[-1]}"
