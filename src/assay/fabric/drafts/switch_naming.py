"""Infers the rule by which the switches of a tier are named, so that a design need not spell the names out.

`leaf-su01-r0` … `leaf-su02-r3` follow `leaf-su{unit:02}-r{rail}`. Numbers are as in a design: rails count from 0, all
else from 1. Names that count otherwise, or that write two numbers without anything between them, are spelled out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from assay.model.fabric.fabric_design import FabricDesign

NameFields = Mapping[str, int]
"""The values of the placeholders in the name of a switch."""
DIGITS = re.compile(r"(\d+)")


def name_by_rule(rules: dict[str, Any], design: FabricDesign) -> dict[str, Any]:
    """Return the rules with a name pattern for each tier that has one, and names only where it does not give them.

    `design` is what the rules make.
    """
    named = dict(rules)
    for tier, _ in design.tiers:
        wiring, at = design.fat_tree, rules[tier]["at"]
        fields = [wiring.switch_name_fields(tier, number) for number in range(len(at))] if wiring else []
        if pattern := infer_name_pattern([switch.get("name", "") for switch in at], fields):
            kept = [_drop_name(switch, pattern.format(**own)) for switch, own in zip(at, fields, strict=True)]
            named[tier] = rules[tier] | {"name": pattern, "at": kept}
    return named


def _drop_name(switch: dict[str, Any], by_rule: str) -> dict[str, Any]:
    return {key: value for key, value in switch.items() if (key, value) != ("name", by_rule)}


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
    numbers = _infer_numbers(columns, [own for _, own in alike], _find_varying(fields))
    pattern = "".join(part for pair in zip(text, [*numbers, ""], strict=True) for part in pair)
    return pattern if "{" in pattern and all(pattern.format(**own) == name for name, own in alike) else ""


def _find_varying(fields: Sequence[NameFields]) -> set[str]:
    """Return the placeholders that a number may be even if it is the same in all known names.

    Over all places of the tier they differ, or they will when the fabric grows.
    """
    return {"unit", "index"} | {name for name in fields[0] if len({own[name] for own in fields}) > 1}


def _infer_numbers(columns: Sequence[Sequence[str]], fields: Sequence[NameFields], varying: set[str]) -> list[str]:
    """Return a placeholder, or the digits, for each column of numbers; "" for one that fits neither.

    Columns in which the numbers differ choose first, then the others from the last one on.
    """
    found = [""] * len(columns)
    unused = list(fields[0])
    for at in sorted(range(len(columns)), key=lambda at: (len(set(columns[at])) == 1, -at)):
        is_fixed = len(set(columns[at])) == 1
        names = [name for name in unused if name in varying] if is_fixed else fields[0]
        for name in names:
            if placeholder := _fit(name, columns[at], [own[name] for own in fields]):
                found[at] = placeholder
                unused = [other for other in unused if other != name]
                break
        else:
            found[at] = columns[at][0] if is_fixed else ""
    return found


def _fit(name: str, column: Sequence[str], values: Sequence[int]) -> str:
    """Return the placeholder that writes these values as the digits of a column, "" if none does."""
    width = min(map(len, column))
    for form in ("", f":0{width}"):
        written = [f"{value:0{width if form else 1}d}" for value in values]
        if written == list(column) and width < 10:  # a format has one digit
            return f"{{{name}{form}}}"
    return ""
