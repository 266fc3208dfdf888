"""Limits and checks that speak of the same thing in different units."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, rule
from assay.model.nodespec import Limit, NodeSpec
from assay.model.units import UNITS, converted, spelling


@rule(
    "ASY0054", "a limit in another unit than its check", why="400 Gb/s is 50 GB/s: the check would be eight times off."
)
def other_unit(draft: Draft) -> Iterator[Finding]:
    """Find limits whose unit is not the one in which a check measures."""
    told = set()
    for measured in draft.suites.measures:
        for spec in draft.of(NodeSpec).values():
            for name in measured.limits:
                limit = spec.limits.get(name)
                wrong = limit is not None and measured.unit in UNITS and limit.unit != measured.unit
                if limit is not None and wrong and (spec.name, name) not in told:
                    told.add((spec.name, name))
                    said = f"{name} is in {limit.unit}, but {measured.file}:{measured.line} measures in {measured.unit}"
                    yield Finding(
                        draft.at(f"NodeSpec/{spec.name}", "limits", name), said, _instead(limit, measured.unit)
                    )


@rule("ASY0057", "a check that names the wrong unit", why="A number is only as good as the unit it is recorded in.")
def wrong_unit(draft: Draft) -> Iterator[Finding]:
    """Find checks whose `unit=` is unknown, or is another than the one in the name of what they read."""
    for measured in draft.suites.measures:
        place = (measured.file, measured.line, measured.column)
        if measured.said and measured.said not in UNITS:
            yield Finding(
                place, f"{measured.name} is in {measured.said}, which is no known unit", spelling(measured.said)
            )
        elif measured.said and measured.named and measured.said != measured.named:
            said = f"{measured.name} is recorded in {measured.said}, but its reading's name says {measured.named}"
            yield Finding(place, said, f"leave out unit=, or convert the reading to {measured.said}")


def _instead(limit: Limit, unit: str) -> str:
    """Return what to write instead: the same limit in the check's unit."""
    value = converted(limit.value, limit.unit, unit)
    if value is None:
        measured, meant = UNITS[limit.unit].dimension, UNITS[unit].dimension
        return f"{limit.unit} is {measured} and {unit} is {meant}: read another limit, or correct the unit"
    return f"write {{value: {value:.10g}, unit: {unit}}}, or measure in {limit.unit}"
