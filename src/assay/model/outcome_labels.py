"""The labels and lines of an outcome that our report and the Allure plug-in of a plain pytest share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.model.fleet import Fleet
from assay.model.outcome import CheckSubject, Measurement
from assay.model.reading import format_value


def allure_labels(
    fleet: Fleet, node: str, subject: str, phases: Iterable[str], fault: str
) -> Iterator[tuple[str, str]]:
    """Yield the labels of a subject: pool, rack, node, every phase, fault class, and commit of the specs."""
    declared = fleet.nodes.get(node)
    parsed = CheckSubject.parse(subject)
    yield "pool", declared.pool if declared else parsed.scope
    yield "rack", declared.rack if declared else parsed.name.removeprefix("rack-")
    yield "node", node or parsed.name
    for phase in phases:
        yield "phase", phase
    if fault:
        yield "fault", fault
    yield "spec", f"{fleet.commit[:12] or 'no commit'}{'+changes' if fleet.dirty else ''}"


def format_measurement(measurement: Measurement) -> str:
    """Return a measurement as one line: name, value, and the limit with its source."""
    expected = format_bounds(measurement)
    limit = f" ({expected}{'; ' if measurement.source else ''}{measurement.source})" if expected else ""
    return f"{measurement.name} {format_value(measurement.value)} {measurement.unit}".rstrip() + limit


def format_bounds(measurement: Measurement) -> str:
    """Return the bounds of a measurement: `at least 16`, "" for none."""
    low, high = measurement.at_least, measurement.at_most
    bounds = [f"at least {format_value(low)}"] if low is not None else []
    bounds += [f"at most {format_value(high)}"] if high is not None else []
    return " and ".join(bounds)
