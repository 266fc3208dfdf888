"""The limits that a good node's evidence can set: what is a fact of the hardware and not a choice. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assay.model.nodespec import Limit
from assay.observe.seen import Entry, Seen, value_of

GPUS, HCAS = ("probe", "gpu", "devices"), ("probe", "hca")
FACTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {  # limit → parts, reading of each, unit
    "pcie_width": (GPUS, ("pcie", "width"), "lanes"),
    "pcie_generation": (GPUS, ("pcie", "generation"), "generation"),
    "gpu_power_limit": (GPUS, ("power", "limit_w"), "W"),
    "nvlink_links": (GPUS, ("nvlink", "up"), "links"),
    "hca_rate": (HCAS, ("rate_gbps",), "Gb/s"),
}


def limits(seen: Seen, wanted: Iterable[str]) -> Iterator[Entry]:
    """Yield the limits that the suites want and those of the present spec: learned where that is honest."""
    standing = seen.present.limits if seen.present else {}
    for name in dict.fromkeys([*standing, *sorted(wanted)]):
        if name in FACTS:
            yield _learned(seen, name, standing.get(name))
        elif name in standing:
            yield Entry(name, _plain(standing[name]))
        else:
            yield Entry(name, None, (f"no evidence of one node sets {name}: choose it, and say where it comes from",))


def _learned(seen: Seen, name: str, standing: Limit | None) -> Entry:
    """Return a fact: the present limit with its source where it says the same, else what all parts read."""
    path, below, unit = FACTS[name]
    said = _readings(seen, path, below)
    kept = Entry(name, _plain(standing)) if standing else Entry(name)
    value = said[0] if len(said) == 1 else None
    if value is None:
        shown = ", ".join("nothing" if one is None else f"{one:g}" for one in said) or "nothing"
        return Entry(name, kept.value, (f"{name} was not learned: {'.'.join(below)} reads {shown}",))
    if standing and (standing.value, standing.unit) == (value, unit):
        return kept
    day = f"{seen.evidence.at:%Y-%m-%d}"
    source = f"learned from {seen.evidence.node} on {day}: {'.'.join(below)} of all {len(seen.parts(*path)[0])}"
    review = f"the present limit is {standing.value:g} {standing.unit} ({standing.source})" if standing else ""
    return Entry(name, {"value": _short(value), "unit": unit, "source": source}, (review,) if review else ())


def _readings(seen: Seen, path: tuple[str, ...], below: tuple[str, ...]) -> list[float | None]:
    """Return the different readings of all parts; None for one that did not answer."""
    found, silent = seen.parts(*path)
    read = [_at(tree, below) for tree in found.values()] + [None] * bool(silent)
    return sorted(set(read), key=lambda one: (one is None, one or 0))


def _at(tree: Any, path: tuple[str, ...]) -> float | None:
    for step in path[:-1]:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    number: float | None = value_of(tree, path[-1], (int, float))
    return number


def _plain(limit: Limit) -> dict[str, Any]:
    return {"value": _short(limit.value), "unit": limit.unit, "source": limit.source}


def _short(value: float) -> float | int:
    """Return 16 for 16.0."""
    return int(value) if value == int(value) else value
