"""What a policy does about faults that return: the ladder of remedies, flapping, and the lemon score."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from pydantic import Field

from assay.model.decision import ActionName
from assay.model.errors import FieldConflict
from assay.model.faults.fault_record import FaultBlame, FaultSeverity, Remedy
from assay.model.specs.spec_document import StrictModel


class LadderRung(StrictModel):
    """One rung of the ladder: `to` this state, at most `times` per part within the window, `then` the next rung."""

    to: str
    times: int = Field(default=1, ge=1)
    then: Remedy | None = None


class LadderWindow(StrictModel):
    """A further bound: a matching fault gets each remedy, or the given ones together, at most `times` within `hours`.

    An empty list matches everything. `of: part` counts the tries on the fault's own part, `of: node` those on all parts
    of the node. Within the hours of `part`, a repaired fault that comes back on the same part counts as recurred.

    `classes`, `severity`, `blame`: the faults that it is for. `remedies`: those that are counted, together.
    """

    classes: list[str] = Field(default=[])
    severity: list[FaultSeverity] = Field(default=[])
    blame: list[FaultBlame] = Field(default=[])
    remedies: list[Remedy] = Field(default=[])
    of: Literal["part", "node"] = "part"
    hours: float = Field(gt=0)
    times: int = Field(ge=1)
    source: str = ""

    def matches(self, fault_class: str, severity: FaultSeverity, blame: FaultBlame) -> bool:
        """Whether the window bounds the remedies of such a fault."""
        return (
            (not self.classes or fault_class in self.classes)
            and (not self.severity or severity in self.severity)
            and (not self.blame or blame in self.blame)
        )

    def is_as_wide_as(self, other: LadderWindow) -> bool:
        """Whether both bound the same remedies of the same faults."""
        names = ("classes", "severity", "blame", "remedies", "of")
        return all(getattr(self, name) == getattr(other, name) for name in names)


class RemedyLadder(StrictModel):
    """Remedies by name. Uses are counted per part over `window_hours`, and from the last certification only.

    `windows`: longer or wider bounds for some faults; all that match apply.

    `rungs`: the rung of each remedy.
    """

    window_hours: float = Field(gt=0)
    windows: list[LadderWindow] = Field(default=[])
    rungs: dict[Remedy, LadderRung]


class FlappingLimits(StrictModel):
    """A fault that comes and goes while the node waits for a job to end: such a wait costs jobs, and repairs nothing.

    - `window_hours`: a wait whose cause went away by itself counts for so long.
    - `clean_minutes`: after the first, second … of them, the node stays cordoned until the fault has been away for so
      long. The last one applies to all further ones.
    - `times`: after so many, the node stays cordoned, a ticket asks people, and the node leaves service when it is
      idle, by the rung `then`. Without `then` it only stays cordoned.
    """

    window_hours: float = Field(default=168, gt=0)
    clean_minutes: list[float] = Field(default=[0, 30, 120], min_length=1)
    times: int = Field(default=4, ge=1)
    then: Remedy | None = None
    source: str = ""

    def find_clean_minutes(self, times: int) -> float:
        """Return how long a fault must stay away after it went away so many times, at least once."""
        return self.clean_minutes[min(times, len(self.clean_minutes)) - 1]


class LemonWeights(StrictModel):
    """How many points each event in a node's life counts.

    - `actions`: a verified action that a fault asked for. What a person, a merge or the bring-up asked for counts not.
    - `states`: an arrival in a state.
    - `withdrawn_waits`: a wait whose cause went away by itself.
    """

    actions: dict[ActionName, float] = Field(default={})
    states: dict[str, float] = Field(default={})
    withdrawn_waits: float = Field(default=0, ge=0)


class LemonLimits(StrictModel):
    """The lemon score: what a node has cost in its whole life. From `threshold` on, the node is a lemon.

    - `then`: the remedies of a lemon's faults start with this rung, or above it.
    - `fresh_after`: after an arrival in one of these states, what came before counts no more. The arrival itself does.

    `weights`: the points of each event.
    """

    threshold: float = Field(gt=0)
    weights: LemonWeights
    fresh_after: list[str] = Field(default=[])
    then: Remedy | None = None
    source: str = ""


def find_repetition_conflicts(
    ladder: RemedyLadder, flapping: FlappingLimits, lemon: LemonLimits | None
) -> Iterator[FieldConflict]:
    """Yield what these sections contradict in themselves, and in each other."""
    yield from _find_ladder_circles(ladder)
    yield from _find_flapping_conflicts(ladder, flapping)
    yield from _find_window_conflicts(ladder)
    if lemon:
        yield from _find_lemon_conflicts(ladder, lemon)


def _find_ladder_circles(ladder: RemedyLadder) -> Iterator[FieldConflict]:
    rungs = ladder.rungs
    circles: set[str] = set()
    for remedy, rung in rungs.items():
        path = ("ladder", "rungs", remedy, "then")
        if rung.then is not None and rung.then not in rungs:
            message = f"ladder.rungs.{remedy}.then is {rung.then}, which is no rung"
            yield FieldConflict("ASY0076", path, message, f"use one of {', '.join(rungs)}, or add the rung {rung.then}")
        circle = _find_ladder_circle(ladder, remedy)
        if circle and not circles & set(circle):
            circles |= set(circle)
            message = f"the ladder climbs in a circle: {' → '.join([*circle, circle[0]])}"
            yield FieldConflict("ASY0076", path, message, "let one of them be the last: take its `then` out")


def _find_ladder_circle(ladder: RemedyLadder, remedy: str) -> list[str]:
    """Return the rungs of a circle that starts and ends at a remedy, none if there is no circle."""
    rungs = {str(name): rung for name, rung in ladder.rungs.items()}
    climbed: list[str] = []
    current: str | None = remedy
    while current in rungs and current not in climbed:
        climbed.append(current)
        current = rungs[current].then
    return climbed if current == remedy else []


def _find_flapping_conflicts(ladder: RemedyLadder, flapping: FlappingLimits) -> Iterator[FieldConflict]:
    minutes, path = flapping.clean_minutes, ("flapping", "clean_minutes")
    if any(later < earlier for earlier, later in pairwise(minutes)):
        message = f"flapping.clean_minutes falls: {', '.join(f'{value:g}' for value in minutes)}"
        yield FieldConflict("ASY0223", path, message, "let each be at least as long as the one before")
    if len(minutes) > max(1, flapping.times - 1):
        message = f"flapping has {len(minutes)} clean_minutes, but people are asked after {flapping.times} times"
        yield FieldConflict("ASY0223", path, message, f"keep the first {max(1, flapping.times - 1)}, or raise times")
    if max(minutes) >= flapping.window_hours * 60:
        message = f"a fault must stay away for {max(minutes):g} min, and counts for {flapping.window_hours * 60:g} min"
        yield FieldConflict("ASY0223", path, message, "let window_hours be longer than every one of clean_minutes")
    yield from _find_missing_rung(ladder, "ASY0223", "flapping", flapping.then)


def _find_missing_rung(ladder: RemedyLadder, code: str, section: str, remedy: Remedy | None) -> Iterator[FieldConflict]:
    if remedy is not None and remedy not in ladder.rungs:
        message = f"{section}.then is {remedy}, which is no rung of the ladder"
        yield FieldConflict(code, (section, "then"), message, f"use one of {', '.join(ladder.rungs)}")


def _find_window_conflicts(ladder: RemedyLadder) -> Iterator[FieldConflict]:
    for number, window in enumerate(ladder.windows):
        path, name = ("ladder", "windows", number), f"ladder.windows.{number}"
        times = [
            rung.times for remedy, rung in ladder.rungs.items() if not window.remedies or remedy in window.remedies
        ]
        most = max(times, default=0)
        if not times:
            message = f"{name} is for {', '.join(window.remedies)}, which the ladder does not have"
            yield FieldConflict("ASY0224", (*path, "remedies"), message, f"use some of {', '.join(ladder.rungs)}")
        elif window.times < most:
            message = f"{name} allows {window.times} in {window.hours:g} h, and a rung allows {most} in less time"
            yield FieldConflict("ASY0224", (*path, "times"), message, "lower the times of the rung, or raise these")
        elif window.of == "part" and window.hours <= ladder.window_hours:
            message = f"{name} allows {window.times} in {window.hours:g} h, and the rungs allow no more anyway"
            yield FieldConflict("ASY0224", (*path, "hours"), message, f"use more than {ladder.window_hours:g} hours")
        for other in ladder.windows[:number]:
            short, long = sorted((window, other), key=lambda limit: limit.hours)
            if window.is_as_wide_as(other) and short.times >= long.times:
                message = (
                    f"{name}: {short.times} in {short.hours:g} h never comes before {long.times} in {long.hours:g} h"
                )
                yield FieldConflict("ASY0224", path, message, "allow more in the longer time, or remove one of the two")


def _find_lemon_conflicts(ladder: RemedyLadder, lemon: LemonLimits) -> Iterator[FieldConflict]:
    weights = lemon.weights
    named: list[tuple[tuple[str, ...], float]] = [(("withdrawn_waits",), weights.withdrawn_waits)]
    named += [(("actions", action), weight) for action, weight in weights.actions.items()]
    named += [(("states", state), weight) for state, weight in weights.states.items()]
    for where, weight in named:
        name, path = where[-1], ("lemon", "weights", *where)
        if weight < 0:
            message = f"{name} counts {weight:g}: a node cannot earn points back"
            yield FieldConflict("ASY0225", path, message, "use 0 or more")
        elif weight >= lemon.threshold:
            message = f"one {name} counts {weight:g}, and {lemon.threshold:g} make a lemon"
            yield FieldConflict("ASY0225", path, message, f"use less than {lemon.threshold:g}, or raise the threshold")
    if not any(weight > 0 for _, weight in named):
        message = "nothing counts for the lemon score, so no node is ever a lemon"
        yield FieldConflict("ASY0225", ("lemon", "weights"), message, "give some weights, or remove the section")
    yield from _find_missing_rung(ladder, "ASY0225", "lemon", lemon.then)
