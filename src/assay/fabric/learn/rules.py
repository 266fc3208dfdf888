"""Writes an inferred fat tree as the rules of a design, in plain data, with a rule for the names of a tier's switches.

`leaf-su01-r1` … `leaf-su02-r8` follow `leaf-su{unit:02}-r{rail+1}`, and `leaf101` … `leaf208` follow
`leaf{unit}{rail+1:02}`. Numbers that follow no placeholder with a number added are spelled out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from assay.fabric.learn.boxes import find_box_chips
from assay.fabric.learn.hosts import find_most_frequent
from assay.fabric.learn.places import find_name_series, guess_name
from assay.fabric.learn.tree import FatTreeInference
from assay.model.specs.fabric.cable import rate_to_gbps
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.switches import UNKNOWN_RACK, fill_pattern

NameFields = Mapping[str, int]
"""The values of the placeholders in the name of a switch."""
Column = Sequence[str]
"""The same number in the names of several switches, as digits."""
DIGITS = re.compile(r"(\d+)")
MAX_ADDED = 9999
"""What a pattern may add to a number."""
MAX_WIDTH = 9
"""The most digits that the format of a number may ask for."""
TIERS = {(0, 1): "node_leaf", (1, 2): "leaf_spine", (2, 3): "spine_core"}
"""The cables between two tiers, of which nodes are the first."""


def make_rules(tree: FatTreeInference, name: str, product: str, ports: int, split: int = 1) -> dict[str, Any]:
    """Return the design in the form of a FabricDesign, with the adapters of its nodes."""
    rate, rates = _find_rates(tree)
    low, middle, high = (rate_to_gbps(rates.get(cables, rate)) for cables in TIERS.values())
    names, gaps = _list_nodes(tree)
    rules: dict[str, Any] = {
        "kind": "FabricDesign",
        "name": name,
        "rate": rate,
        "nodes": names,
        "rails": len(tree.slots),
        "adapters": {host: tree.list_adapters(host) for host in names if host in tree.places},
        "adapter_names": list(tree.slots),
        "switch": {"product": product, "ports": -(-ports // split), "split": split},
        "leaves": _make_leaves(tree),
        "spines": _make_spines(tree, middle / high),
    }
    if rates:
        rules["rates"] = rates
    if gaps:
        rules["gaps"] = gaps
    if (ratio := len(tree.leaves.down) * low / (len(tree.leaves.up) * middle)) > 1:
        rules["oversubscription"] = round(ratio, 3)
    if tree.cores.guids:
        rules["cores"] = {
            "name": "unnamed core {index}",
            "per_pair": tree.cores.per_pair,
            "plane": "number" if tree.planes else "all",
            "at": _list_switches(tree, "cores", tree.cores.guids),
        }
    return rules


def _make_leaves(tree: FatTreeInference) -> dict[str, Any]:
    leaves = {
        "name": "unnamed leaf of unit {unit}, rail {rail}",
        "down": _format(tree.leaves.down),
        "up": _format(tree.leaves.up),
        "at": _list_switches(tree, "leaves", tree.leaves.guids),
    }
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
    return usual, {
        cables: rate for cables, (rate, times) in own.items() if rate != usual and 2 * times > count[cables].total()
    }


def _make_spines(tree: FatTreeInference, rate_ratio: float) -> dict[str, Any]:
    units = len(tree.units) + len(tree.absent_units)
    down = tree.spines.down
    per_pair = tree.spines.per_pair
    leaves = min(tree.pod or units, units) * (1 if tree.by_rail else len(tree.slots))
    end = max(down[-1] + 1, down[0] + leaves * per_pair)  # nobody may have seen the last leaves
    spines: dict[str, Any] = {
        "name": "unnamed spine {index}",
        "per_pair": per_pair,
        "down": _format(range(down[0], end)),
        "at": _list_switches(tree, "spines", tree.spines.guids),
    }
    spines |= {"trunk": "spread"} if tree.spines.spread else {}
    spines |= {"group": "rail"} if tree.by_rail else {}
    spines |= {"pod": tree.pod} if tree.pod else {}
    if not tree.cores.guids:
        return spines
    ratio = len(tree.spines.down) / len(tree.spines.up) * rate_ratio
    return spines | {"up": _format(tree.spines.up)} | ({"oversubscription": round(ratio, 3)} if ratio > 1 else {})


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
                guess = guess_name(near, [at for other, at in host_at if other == unit], port)
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


def name_by_rule(rules: dict[str, Any], design: FabricDesign) -> dict[str, Any]:
    """Return the rules with a name pattern for each tier that has one, and names only where it does not give them.

    `design` is what the rules make.
    """
    named = dict(rules)
    for tier, _ in design.tiers:
        wiring, at = design.fat_tree, rules[tier]["at"]
        fields = [wiring.switch_name_fields(tier, number) for number in range(len(at))] if wiring else []
        if pattern := infer_name_pattern([switch.get("name", "") for switch in at], fields):
            kept = []
            for switch, own in zip(at, fields, strict=True):
                by_rule = ("name", fill_pattern(pattern, own))
                kept.append({key: value for key, value in switch.items() if (key, value) != by_rule})
            named[tier] = rules[tier] | {"name": pattern, "at": kept}
    return named


def infer_name_pattern(names: Sequence[str], fields: Sequence[NameFields]) -> str:
    """Return the pattern that most switches of a tier follow, "" without one. `names` has "" for an unknown name.

    All names with the same text between their numbers must fit, for the pattern would give them to other switches.
    """
    usual = Counter(tuple(DIGITS.split(name)[::2]) for name in names if name).most_common(1)
    text, times = usual[0] if usual else ((), 0)
    if 2 * times <= len(names) or re.search("[{}]", "".join(text)):
        return ""
    alike = [(name, own) for name, own in zip(names, fields, strict=True) if tuple(DIGITS.split(name)[::2]) == text]
    columns = list(zip(*(DIGITS.split(name)[1::2] for name, _ in alike), strict=True))
    every = list(fields[0])
    kinds = [["unit", "rail"], ["index"]] if "unit" in every else [every]
    # A number that is the same in all known names may be one of these: over all places of the tier they differ, or they
    # will when the fabric grows.
    varying = {"unit", "index"} | {name for name in every if len({own[name] for own in fields}) > 1}
    for may_join, usable in product((False, True), kinds):  # with a text between two numbers is likelier
        numbers = _infer_numbers(columns, [own for _, own in alike], usable, varying, may_join=may_join)
        pattern = "".join(part for pair in zip(text, [*numbers, ""], strict=True) for part in pair)
        fits = "{" in pattern and all(fill_pattern(pattern, own) == name for name, own in alike)
        if not fits:
            continue
        given = {fill_pattern(pattern, own) for own in fields}
        # The only number of a leaf, counted from 1, is its number among all leaves: those of another unit need names.
        is_rail_only = "unit" in fields[0] and len(columns) == 1 and "{rail+" in pattern and "{unit" not in pattern
        if len(given) == len(fields) and not is_rail_only:
            return pattern
    return ""


def _infer_numbers(
    columns: Sequence[Column], fields: Sequence[NameFields], usable: Sequence[str], varying: set[str], *, may_join: bool
) -> list[str]:
    """Return a placeholder of `usable`, or the digits, for each column of numbers; "" for one that fits neither.

    Columns in which the numbers differ choose first, then the others from the last one on.
    """
    written = [""] * len(columns)
    unused = list(usable)
    for at in sorted(range(len(columns)), key=lambda at: (len(set(columns[at])) == 1, -at)):
        if len(set(columns[at])) == 1:
            written[at] = _write_fixed(columns[at], fields, [name for name in unused if name in varying])
        else:
            written[at] = _write(columns[at], fields, usable) or (
                _join(columns[at], fields, usable) if may_join else ""
            )
        unused = [name for name in unused if not re.search(rf"{{{name}\b", written[at])]
    return written


def _write_fixed(column: Column, fields: Sequence[NameFields], names: Sequence[str]) -> str:
    """Return a placeholder with nothing added that is the same number in all names, else the digits."""
    return next((text for name in names if (text := _fit(name, 0, column, fields))), column[0])


def _write(column: Column, fields: Sequence[NameFields], names: Sequence[str], width: int = 1) -> str:
    """Return the placeholder of a `width` that writes a column, "" if none does. One with nothing added comes first."""
    added = {name: int(column[0]) - fields[0][name] for name in names}
    order = sorted(names, key=lambda name: added[name] != 0)
    return next((text for name in order if (text := _fit(name, added[name], column, fields, width))), "")


def _join(column: Column, fields: Sequence[NameFields], names: Sequence[str]) -> str:
    """Return two placeholders or more that write a column without a text between them, "" if none do."""
    for width in range(1, min(map(len, column))):
        first, last = [digits[:-width] for digits in column], [digits[-width:] for digits in column]
        end = _write(last, fields, names, width)
        if end and len(set(first)) == 1:
            return _write_fixed(first, fields, [name for name in names if f"{{{name}" not in end]) + end
        if end and (start := _write(first, fields, names) or _join(first, fields, names)):
            return start + end
    return ""


def _fit(name: str, added: int, column: Column, fields: Sequence[NameFields], width: int = 1) -> str:
    """Return the placeholder, with a number added, that writes the digits of a column, "" if it does not.

    It has the given `width`, or that of the shortest number.
    """
    shortest = min(map(len, column))
    if not (0 if name == "rail" else -1) <= added <= MAX_ADDED or shortest > MAX_WIDTH:
        return ""
    for digits in (width, shortest):
        if [f"{own[name] + added:0{digits}}" for own in fields] == list(column):
            return f"{{{name}{f'{added:+}' if added else ''}{f':0{digits}' if digits > 1 else ''}}}"
    return ""
