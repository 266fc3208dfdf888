"""Stored measurements, held to the limits of two revisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.model.fleet import Fleet
from assay.model.outcome import Measurement, Recorded
from assay.trends.reaction import PASSED, Reaction, Side
from assay.trends.states import States

Bounds = Mapping[tuple[str, str], Sequence[tuple[str, str]]]
"""By check and measurement: the sides (`at_least`, `at_most`, `equals`) and the limit on each."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One measurement of a limit that changed. `before` and `after` are what the two revisions say to it."""

    node: str
    key: tuple[str, str, str]
    at: str
    because: str
    before: Reaction
    after: Reaction
    before_now: Reaction
    after_now: Reaction


class Rejudging:
    """Holds measurements to both revisions. `read`: how many have a changed limit; `unmapped`: how many an unknown."""

    def __init__(self, before: Side, after: Side, bounds: Bounds, states: States) -> None:
        self._before, self._after, self._bounds, self._states = before, after, bounds, states
        self._limits = _limits_by_line(before.fleet)
        self._lines = set(before.fleet.lines.values())
        self.read = self.unmapped = 0

    def seen(self, outcomes: Iterable[Recorded]) -> Iterator[Seen]:
        """Yield every measurement whose limit changed, in order."""
        for one in outcomes:
            if one.outcome.verdict in ("pass", "fail"):
                for measurement in one.outcome.measurements:
                    yield from self._of(one, measurement)

    def _of(self, one: Recorded, measurement: Measurement) -> Iterator[Seen]:
        limits = self._limits_of(one.outcome.check, measurement)
        node = one.outcome.node
        changed = [name for _, name in limits if self._before.limit(node, name) != self._after.limit(node, name)]
        if not changed:
            return
        self.read += 1
        fails = [_fails(side, node, limits, measurement.value) for side in (self._before, self._after)]
        then, now = self._states.at(node, one.measured_at), self._states.last(node)
        yield Seen(
            node=node,
            key=(one.outcome.check, one.outcome.subject, measurement.name),
            at=one.measured_at,
            because=self._told(one, measurement, changed),
            before=self._reaction(self._before, one, then, fails[0]),
            after=self._reaction(self._after, one, then, fails[1]),
            before_now=self._reaction(self._before, one, now, fails[0]),
            after_now=self._reaction(self._after, one, now, fails[1]),
        )

    def _limits_of(self, check: str, measurement: Measurement) -> Sequence[tuple[str, str]]:
        """Return the limits that a measurement was held to: as the check is written, else as the line says."""
        if (check, measurement.name) in self._bounds:
            return self._bounds[check, measurement.name]
        name = self._limits.get(measurement.source, "")
        if measurement.source and not name and measurement.source not in self._lines:
            self.unmapped += 1
        sides = ("at_least", measurement.at_least), ("at_most", measurement.at_most)
        return [(side, name) for side, value in sides if name and value is not None]

    def _reaction(self, side: Side, one: Recorded, state: str, fails: bool) -> Reaction:
        outcome = one.outcome
        return side.to_failure(outcome.node, state, outcome.phases, outcome.fault) if fails else PASSED

    def _told(self, one: Recorded, measurement: Measurement, changed: list[str]) -> str:
        node = one.outcome.node
        bounds = [f"{_number(self._before.limit(node, n))} → {_number(self._after.limit(node, n))}" for n in changed]
        limits = ", ".join(f"limit {name} {bound}" for name, bound in zip(changed, bounds, strict=True))
        return f"{measurement.name} {measurement.value:g} {measurement.unit} on {one.outcome.subject}; {limits}"


def _fails(side: Side, node: str, limits: Sequence[tuple[str, str]], value: float) -> bool:
    bounds = [(where, side.limit(node, name)) for where, name in limits]
    return any(bound is not None and not _holds(where, value, bound) for where, bound in bounds)


def _holds(where: str, value: float, bound: float) -> bool:
    if where == "at_least":
        return value >= bound
    return value <= bound if where == "at_most" else value == bound


def _limits_by_line(fleet: Fleet) -> dict[str, str]:
    """Return the limit that stands on each line of a spec."""
    paths = ((path.split("."), line) for (_, path), line in fleet.lines.items() if path.startswith("limits."))
    return {line: steps[1] for steps, line in paths}


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
