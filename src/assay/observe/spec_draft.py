"""Drafts a node spec from a good node's evidence, for a person to review. Pure: evidence in, YAML text out.

Limits are learned only where they are facts of the hardware, such as a PCIe width, and not somebody's choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from assay.model.specs.node.node_spec import MetricLimit
from assay.observe.spec_values import DraftEntry, ObservedNode, learn_entries, read_typed_value

GPUS, HCAS = ("probe", "gpu", "devices"), ("probe", "hca")
LIMIT_FACTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {  # limit → parts, reading of each, unit
    "pcie_width": (GPUS, ("pcie", "width"), "lanes"),
    "pcie_generation": (GPUS, ("pcie", "generation"), "generation"),
    "gpu_power_limit": (GPUS, ("power", "limit_w"), "W"),
    "nvlink_links": (GPUS, ("nvlink", "up"), "links"),
    "hca_rate": (HCAS, ("rate_gbps",), "Gb/s"),
}

SCHEMA = "# yaml-language-server: $schema=../schemas/node-spec.json"


def draft_node_spec(seen: ObservedNode, wanted: Iterable[str] = ()) -> str:
    """Return the spec as YAML, with a `# review:` at everything that was not read on the node or is a guess.

    `wanted` are the names of the limits that the suites use.
    """
    entries = list(learn_entries(seen))
    body = [line for entry in entries for line in _entry_lines(entry)]
    limits = _limit_lines(learn_limits(seen, wanted))
    head = [
        SCHEMA,
        f"# Drafted from what {seen.evidence.node} was at {seen.evidence.at:%Y-%m-%d %H:%M} UTC (evidence",
        f"# {seen.evidence.digest()[:12]}), for a person to review: look at every `# review:`.",
    ]
    return "\n".join([*head, *_name_lines(seen, entries), *body, *limits]) + "\n"


def learn_limits(seen: ObservedNode, wanted: Iterable[str]) -> Iterator[DraftEntry]:
    """Yield the limits that the suites use and those of the present spec, learned where they are facts."""
    present = seen.present_spec.limits if seen.present_spec else {}
    for name in dict.fromkeys([*present, *sorted(wanted)]):
        if name in LIMIT_FACTS:
            yield _learn_limit(seen, name, present.get(name))
        elif name in present:
            yield DraftEntry(name, _limit_as_data(present[name]), (seen.copy_review,))
        else:
            review = f"no evidence of one node sets {name}: choose it, and say where it comes from"
            yield DraftEntry(name, None, (review,))


def _learn_limit(seen: ObservedNode, name: str, present: MetricLimit | None) -> DraftEntry:
    """Return the present limit where all parts read the same as it, else a limit with the value that they read."""
    path, below, unit = LIMIT_FACTS[name]
    parts, reasons = seen.parts(*path)
    distinct = {_read_number(tree, below) for tree in parts.values()} | ({None} if reasons else set())
    readings = sorted(distinct, key=lambda reading: (reading is None, reading or 0))
    unchanged = DraftEntry(name, _limit_as_data(present)) if present else DraftEntry(name)
    value = readings[0] if len(readings) == 1 else None
    if value is None:
        shown = ", ".join("nothing" if reading is None else f"{reading:g}" for reading in readings) or "nothing"
        review = f"{name} was not learned: {'.'.join(below)} reads {shown}"
        return DraftEntry(name, unchanged.value, (f"{review}; {seen.copy_review}" if present else review,))
    if present and (present.value, present.unit) == (value, unit):
        return unchanged
    day = f"{seen.evidence.at:%Y-%m-%d}"
    source = f"learned from {seen.evidence.node} on {day}: {'.'.join(below)} of all {len(parts)}"
    review = f"the present limit is {present.value:g} {present.unit} ({present.source})" if present else ""
    limit = {"value": _shorten_number(value), "unit": unit, "source": source}
    return DraftEntry(name, limit, (review,) if review else ())


def _read_number(tree: Any, path: tuple[str, ...]) -> float | None:
    for step in path[:-1]:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    number: float | None = read_typed_value(tree, path[-1], (int, float))
    return number


def _limit_as_data(limit: MetricLimit) -> dict[str, Any]:
    return {"value": _shorten_number(limit.value), "unit": limit.unit, "source": limit.source}


def _shorten_number(value: float) -> float | int:
    """Turn 16.0 into 16."""
    return int(value) if value == int(value) else value


def _name_lines(seen: ObservedNode, entries: list[DraftEntry]) -> Iterator[str]:
    """Yield kind, name, description and owner. The name is the present spec's, or else made from the product."""
    if seen.present_spec:
        name = seen.present_spec.name
        review = f"this would take the place of {name}: give it a name of its own if it is another kind of node"
    else:
        product = next((entry.value for entry in entries if entry.key == "product" and entry.value), seen.evidence.node)
        name = re.sub(r"[^a-z0-9.-]+", "-", str(product).lower()).strip("-.")
        review = "the name is a guess, after the product"
    yield from _entry_lines(DraftEntry("kind", "NodeSpec"))
    yield from _entry_lines(DraftEntry("name", name, (review,)))
    for key in ("description", "owner"):
        if text := getattr(seen.present_spec, key, ""):
            yield from _entry_lines(DraftEntry(key, text, (seen.copy_review,)))


def _limit_lines(limits: Iterable[DraftEntry]) -> Iterator[str]:
    lines = [line for limit in limits for line in _entry_lines(limit)]
    has_limits = any(not line.startswith("#") for line in lines)
    yield "limits:" if has_limits else "# limits:"
    yield from (f"  {line}" for line in lines)


def _entry_lines(entry: DraftEntry) -> Iterator[str]:
    """Yield an entry as YAML with its reviews at it. An entry without a value is a comment."""
    if entry.value is None:
        yield from (*_review_lines(entry.reviews), f"# {entry.key}:")
    elif not entry.part_reviews:
        yield from _mark(_to_yaml(entry.key, entry.value).split("\n"), entry.reviews)
    else:
        parts = [line for part in _list_parts(entry) for line in part]
        yield from _mark([f"{entry.key}:", *parts], entry.reviews)


def _list_parts(entry: DraftEntry) -> Iterator[list[str]]:
    """Yield the lines of each part of a list or mapping, with the part's reviews."""
    if isinstance(entry.value, Mapping):
        for name, part in entry.value.items():
            lines = _mark(_to_yaml(name, part).split("\n"), entry.part_reviews.get(name, ()))
            yield [f"  {line}" for line in lines]
    else:
        for index, part in enumerate(entry.value):
            yield list(_mark(_dump([part], None).split("\n"), entry.part_reviews.get(index, ())))


def _mark(lines: list[str], reviews: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines with the last review at the end of the first and the others above it.

    A text of several lines has all of them above: within it, they would be part of the text.
    """
    *above, last = [*_review_lines(reviews)] or [""]
    can_end_with_comment = len(lines) == 1 or re.fullmatch(r"\w+:", lines[0])
    yield from above
    if last and not can_end_with_comment:
        yield last
    yield f"{lines[0]}  {last}" if last and can_end_with_comment else lines[0]
    yield from lines[1:]


def _review_lines(reviews: tuple[str, ...]) -> Iterator[str]:
    for review in reviews:  # a device may put line breaks and control characters into what it is quoted with
        printable = "".join(character if character.isprintable() else " " for character in review)
        yield f"# review: {' '.join(printable.split())}"


def _to_yaml(key: str, value: Any) -> str:
    """Return one entry as YAML, with the innermost lists and mappings on one line each."""
    return _dump({key: value}, None if isinstance(value, dict | list) else False)


def _dump(value: Any, style: bool | None) -> str:
    width = 1_000_000  # never fold a text
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=width, default_flow_style=style)
    return text.rstrip("\n")
