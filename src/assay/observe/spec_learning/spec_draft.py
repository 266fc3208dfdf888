"""Drafts a node spec from a good node's evidence, for a person to review. Pure: evidence in, YAML text out.

The limits that a good node's evidence can set: what is a fact of the hardware and not a choice. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from assay.model.specs.node_spec import MetricLimit
from assay.observe.spec_learning.learned_entries import learn_entries
from assay.observe.spec_learning.observed_node import DraftEntry, ObservedNode, read_typed_value

GPUS, HCAS = ("probe", "gpu", "devices"), ("probe", "hca")
LIMIT_FACTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {  # limit → parts, reading of each, unit
    "pcie_width": (GPUS, ("pcie", "width"), "lanes"),
    "pcie_generation": (GPUS, ("pcie", "generation"), "generation"),
    "gpu_power_limit": (GPUS, ("power", "limit_w"), "W"),
    "nvlink_links": (GPUS, ("nvlink", "up"), "links"),
    "hca_rate": (HCAS, ("rate_gbps",), "Gb/s"),
}


def learn_limits(seen: ObservedNode, wanted: Iterable[str]) -> Iterator[DraftEntry]:
    """Yield the limits that the suites want and those of the present spec: learned where that is honest."""
    standing = seen.present_spec.limits if seen.present_spec else {}
    for name in dict.fromkeys([*standing, *sorted(wanted)]):
        if name in LIMIT_FACTS:
            yield _learn_limit(seen, name, standing.get(name))
        elif name in standing:
            yield DraftEntry(name, _limit_as_data(standing[name]))
        else:
            yield DraftEntry(
                name, None, (f"no evidence of one node sets {name}: choose it, and say where it comes from",)
            )


def _learn_limit(seen: ObservedNode, name: str, standing: MetricLimit | None) -> DraftEntry:
    """Return a fact: the present limit with its source where it says the same, else what all parts read."""
    path, below, unit = LIMIT_FACTS[name]
    said = _readings(seen, path, below)
    kept = DraftEntry(name, _limit_as_data(standing)) if standing else DraftEntry(name)
    value = said[0] if len(said) == 1 else None
    if value is None:
        shown = ", ".join("nothing" if one is None else f"{one:g}" for one in said) or "nothing"
        return DraftEntry(name, kept.value, (f"{name} was not learned: {'.'.join(below)} reads {shown}",))
    if standing and (standing.value, standing.unit) == (value, unit):
        return kept
    day = f"{seen.evidence.at:%Y-%m-%d}"
    source = f"learned from {seen.evidence.node} on {day}: {'.'.join(below)} of all {len(seen.parts(*path)[0])}"
    review = f"the present limit is {standing.value:g} {standing.unit} ({standing.source})" if standing else ""
    return DraftEntry(name, {"value": _short(value), "unit": unit, "source": source}, (review,) if review else ())


def _readings(seen: ObservedNode, path: tuple[str, ...], below: tuple[str, ...]) -> list[float | None]:
    """Return the different readings of all parts; None for one that did not answer."""
    found, silent = seen.parts(*path)
    read = [_at(tree, below) for tree in found.values()] + [None] * bool(silent)
    return sorted(set(read), key=lambda one: (one is None, one or 0))


def _at(tree: Any, path: tuple[str, ...]) -> float | None:
    for step in path[:-1]:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    number: float | None = read_typed_value(tree, path[-1], (int, float))
    return number


def _limit_as_data(limit: MetricLimit) -> dict[str, Any]:
    return {"value": _short(limit.value), "unit": limit.unit, "source": limit.source}


def _short(value: float) -> float | int:
    """Return 16 for 16.0."""
    return int(value) if value == int(value) else value


SCHEMA = "# yaml-language-server: $schema=../schemas/node-spec.json"


def draft_node_spec(seen: ObservedNode, wanted: Iterable[str] = ()) -> str:
    """Return the spec as YAML; `# review:` stands above everything that was not read, or is a guess.

    `wanted` are the limits that the suites read.
    """
    found = list(learn_entries(seen))
    return (
        "\n".join(
            [
                *_comment_lines(seen),
                *_name_lines(seen, found),
                *_entry_lines(found),
                *_limit_lines(learn_limits(seen, wanted)),
            ]
        )
        + "\n"
    )


def _comment_lines(seen: ObservedNode) -> Iterator[str]:
    yield SCHEMA
    yield f"# Drafted from what {seen.evidence.node} was at {seen.evidence.at:%Y-%m-%d %H:%M} UTC (evidence"
    yield f"# {seen.evidence.digest()[:12]}), for a person to review: every `# review:` wants a look."


def _name_lines(seen: ObservedNode, found: list[DraftEntry]) -> Iterator[str]:
    """Yield what names the spec: the present one's, whose place the draft would take, or one after the product."""
    product = next((entry.value for entry in found if entry.key == "product" and entry.value), seen.evidence.node)
    name = (
        seen.present_spec.name if seen.present_spec else re.sub(r"[^a-z0-9.-]+", "-", str(product).lower()).strip("-.")
    )
    yield from _lines(DraftEntry("kind", "NodeSpec"))
    takes = f"this would take the place of {name}: give it a name of its own if it is another kind of node"
    yield from _lines(
        DraftEntry("name", name, (takes if seen.present_spec else "the name is a guess, after the product",))
    )
    for key in ("description", "owner"):
        text = getattr(seen.present_spec, key, "")
        yield from _lines(DraftEntry(key, text)) if text else ()


def _entry_lines(found: Iterable[DraftEntry]) -> Iterator[str]:
    for entry in found:
        yield from _lines(entry)


def _limit_lines(found: Iterable[DraftEntry]) -> Iterator[str]:
    lines = [line for entry in found for line in _lines(entry)]
    named = any(not line.startswith("#") for line in lines)
    yield "limits:" if named else "# limits:"
    yield from (f"  {line}" for line in lines)


def _lines(entry: DraftEntry) -> Iterator[str]:
    """Yield an entry as YAML with its reviews above it; one without a value as a comment."""
    yield from (f"# review: {_on_one_line(review)}" for review in entry.reviews)
    yield from _yaml(entry.key, entry.value).split("\n") if entry.value is not None else (f"# {entry.key}:",)


def _on_one_line(text: str) -> str:
    """Return a text that can stand in a comment, whatever a device said."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _yaml(key: str, value: Any) -> str:
    """Return one entry: the innermost lists and mappings on a line each."""
    style = None if isinstance(value, dict | list) else False
    width = 1_000_000  # never fold a text
    return yaml.safe_dump(
        {key: value}, sort_keys=False, allow_unicode=True, width=width, default_flow_style=style
    ).rstrip("\n")
