"""Outcomes: exactly one verdict for every declared check on every subject, with its measurements.

A subject's id, such as `h100-a/n0017/gpu3`, is the same in every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.evidence import UNKNOWN_BASIS, EvidenceBasis
from assay.model.facts import frozen
from assay.model.reading import format_value

CheckVerdict = Literal["pass", "fail", "error", "skip"]
VERDICTS: tuple[CheckVerdict, ...] = get_args(CheckVerdict)
"""Ledger, run files and history store a verdict as its place here, so the order never changes."""


if TYPE_CHECKING:
    from dataclasses import dataclass as quick_record
else:

    def quick_record(*, frozen, slots):
        """Return the decorator for a class of which a run makes millions. Only mypy holds that nobody changes one.

        Python's own way to fill a frozen object takes longer than all else that makes an outcome.
        """
        return dataclass(slots=slots, unsafe_hash=frozen)


@quick_record(frozen=True, slots=True)
class Measurement:
    """A number that a check compared with a limit. `source` is the file and line of the limit."""

    name: str
    """What was measured."""
    value: float
    """The measured value, in `unit`."""
    unit: str = ""
    """The unit of value and limits; "" for a count or a ratio."""
    at_least: float | None = None
    """The lower limit; null for none."""
    at_most: float | None = None
    """The upper limit; null for none."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class FailureArtefact:
    """A file stored with a failure."""

    name: str
    """The name of the file."""
    digest: str
    """The SHA-256 of its content."""
    bytes: int
    """Its size in bytes."""


@quick_record(frozen=True, slots=True)
class Outcome:
    """One check on one subject."""

    check: str
    """The id of the check, as pytest names it, without parameters."""
    subject: str
    """What was judged: a node (pool/node), a part of it (pool/node/part), a rack or a fabric."""
    node: str
    """The node of the subject; "" for a rack or a fabric."""
    verdict: CheckVerdict
    """The verdict. An error is a check that could not be judged."""
    reason: str = ""
    """Why the verdict is so; "" only for a pass."""
    fault: str = ""
    """The fault class that a failure means; "" if none is named."""
    phases: tuple[str, ...] = ()
    """The phases that the check belongs to."""
    active: bool = False
    """Whether the check loads the node, instead of only reading it."""
    evidence: str = ""
    """The digest of the evidence that was judged; "" without any."""
    evidence_at: str = ""
    """When that evidence was collected: ISO 8601 UTC; "" without any."""
    duration_s: float = 0.0
    """How many seconds the judging took."""
    measurements: tuple[Measurement, ...] = ()
    """The numbers that the check compared with limits."""
    known: str = ""
    """The known issue that excuses this failure; "" for none."""
    observed: bool = False
    """Whether the check is at stage observe: its outcome is reported and decides nothing."""
    artefacts: tuple[FailureArtefact, ...] = ()
    """The files that are stored with a failure."""
    basis: EvidenceBasis = UNKNOWN_BASIS
    """The ledger entry and the boot that the evidence rests on, as text; "" if that is not known."""
    judged_by: str = ""
    """The digest of code, limits and spec values that judged; "" if that is not known."""

    @property
    def counts_against_subject(self) -> bool:
        """Whether the check failed or could not be judged, and no known issue or stage `observe` excuses that."""
        return self.verdict in ("fail", "error") and not self.known and not self.observed

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["phases"] = list(self.phases)
        plain["measurements"] = [{k: getattr(m, k) for k in m.__slots__} for m in self.measurements]
        plain["artefacts"] = [{k: getattr(a, k) for k in a.__slots__} for a in self.artefacts]
        plain["basis"] = self.basis.encode()
        return plain


@frozen
class RecordedOutcome:
    """An outcome in the ledger, with the id and the time of its run (ISO 8601 UTC).

    `recorded_at` is set only if the evidence is dated later than it was recorded: a wrong clock dated it.
    """

    run: str
    at: str
    outcome: Outcome
    recorded_at: str = ""

    @property
    def id(self) -> str:
        """The id in a DecisionCause of kind outcome: `<run>/<check>[<subject>]`."""
        return f"{self.run}/{self.outcome.check}[{self.outcome.subject}]"

    @property
    def is_dated_ahead(self) -> bool:
        """Whether a wrong clock dated the evidence. Its age is unknown then, so a pass on it does not count."""
        return (
            bool(self.recorded_at)
            and _parse_time(self.outcome.evidence_at) - _parse_time(self.recorded_at) > MAX_CLOCK_SKEW
        )

    @property
    def seen_at(self) -> str:
        """When the judged evidence was collected, never later than it was recorded; "" without evidence."""
        return self.outcome.evidence_at and (self.recorded_at or self.outcome.evidence_at)

    @property
    def measured_at(self) -> str:
        """When the judged evidence was collected; without evidence (an error), the time of the run."""
        return self.seen_at or self.at


def _parse_time(at: str) -> datetime:
    moment = datetime.fromisoformat(at)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class PassCount(NamedTuple):
    """The subjects of one check on one node whose newest outcome is a pass, all of one run and one document.

    `seen_at` is when the evidence was collected (ISO 8601 UTC), `recorded_s` the date of the oldest of the outcomes in
    Unix seconds, never later than its recording. `revision` is the commit of the specs in that run, "" if unknown.
    """

    node: str
    check: str
    judged_by: str
    seen_at: str
    revision: str
    subjects: int
    recorded_s: float


@frozen
class StandingFailure:
    """A newest outcome that is no pass.

    `row` holds each reason that the check gave on this subject since its last pass, with the time when it first gave
    it (ISO 8601 UTC). `passed_s` is the date of the last pass in Unix seconds, 0 if there was none, and
    `passed_revision` is the commit of the specs in its run.
    """

    recorded: RecordedOutcome
    row: tuple[tuple[str, str], ...] = ()
    passed_s: float = 0
    passed_revision: str = ""


@frozen
class CheckStandings:
    """The newest outcomes of some checks on all nodes. Most are passes, of which a report needs only the number."""

    passes: tuple[PassCount, ...] = ()
    failures: tuple[StandingFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of the suites."""

    id: str
    """The id of the run."""
    at: str
    """When it began: ISO 8601 UTC."""
    phases: tuple[str, ...] = ()
    """The phases that were asked for; none if all were."""
    nodes: tuple[str, ...] = ()
    """The nodes that were asked for; none if all were."""
    spec_commit: str = ""
    """The commit of specs and suites; "" without one."""
    dirty: bool = False
    """Whether files differed from that commit."""
    suite_hash: str = ""
    """The digest of the suites."""
    who: str = ""
    """Who started it."""


@dataclass(frozen=True, slots=True, order=True)
class CheckSubject:
    """What a check judges: a node (`h100-a/n0017`), a part of it, a rack (`h100-a/rack-r01`) or a fabric.

    A fabric is `fabric/compute`. Its parts are switches (`fabric/compute/leaf-su01-r0`) and rails
    (`fabric/compute/rail-0`).
    """

    scope: str
    name: str
    part: str = ""

    def __str__(self) -> str:
        if self.scope and self.name:  # nearly always: a fast path, since this is called very often
            return f"{self.scope}/{self.name}/{self.part}" if self.part else f"{self.scope}/{self.name}"
        return "/".join(piece for piece in (self.scope, self.name, self.part) if piece)

    @classmethod
    def parse(cls, text: str) -> CheckSubject:
        """Return the subject of an id. Raises ValueError unless the id has two or three parts."""
        pieces = text.split("/", 2)
        if len(pieces) < 2 or not all(pieces):
            raise ValueError(f"{text!r} is no subject id; expected pool/node or pool/node/part")
        return cls(*pieces)


def read_part(subject: str) -> str:
    """Return the part that a subject names, "" for a whole node, rack or fabric: `gpu0` of `h100-a/n0017/gpu0`."""
    return "".join(subject.split("/", 2)[2:])


def read_whole(subject: str) -> str:
    """Return the node, rack or fabric of a subject, with its scope: `h100-a/n0017` of `h100-a/n0017/gpu0`."""
    return "/".join(subject.split("/", 2)[:2])


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
