"""What judging says: exactly one outcome for every declared check and subject.

What a check judges. The id is stable from run to run: `h100-a/n0017/gpu3`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from assay.model.clock import MAX_CLOCK_SKEW

CheckVerdict = Literal["pass", "fail", "error", "skip"]
VERDICTS: tuple[CheckVerdict, ...] = get_args(CheckVerdict)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A number that a check looked at, with the limit it was held to and where that limit is written."""

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class FailureArtefact:
    """What was kept to look at beside a failure: its name, the sha256 of its content, and how many bytes it has."""

    name: str
    digest: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check on one subject. `reason` is never empty unless the verdict is `pass`.

    `check` is the pytest id without its parameters (`suites/seatrial/test_gpu.py::test_gpu_count`);
    `fault` the fault class that a failure means; `evidence` the hash of the document that was judged and
    `evidence_at` when that was collected (ISO 8601 UTC); `phases` the check's phase marks. `known` is the issue that
    excuses a failure, `observed` says that the check is on trial itself: both are reported and decide nothing.
    """

    check: str
    subject: str
    node: str
    verdict: CheckVerdict
    reason: str = ""
    fault: str = ""
    phases: tuple[str, ...] = ()
    active: bool = False
    evidence: str = ""
    evidence_at: str = ""
    duration_s: float = 0.0
    measurements: tuple[Measurement, ...] = field(default=())
    known: str = ""
    observed: bool = False
    artefacts: tuple[FailureArtefact, ...] = field(default=())

    @property
    def counts_against_subject(self) -> bool:
        """Whether this counts against its subject: it failed or could not be judged, and nothing excuses that."""
        return self.verdict in ("fail", "error") and not self.known and not self.observed

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data; `from_json` reads it back."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["phases"] = list(self.phases)
        plain["measurements"] = [{k: getattr(m, k) for k in m.__slots__} for m in self.measurements]
        plain["artefacts"] = [{k: getattr(a, k) for k in a.__slots__} for a in self.artefacts]
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Outcome:
        """Read `as_json` back."""
        return cls(
            **{
                **plain,
                "phases": tuple(plain["phases"]),
                "measurements": tuple(Measurement(**m) for m in plain["measurements"]),
                "artefacts": tuple(FailureArtefact(**a) for a in plain["artefacts"]),
            }
        )


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """An outcome as history holds it: in which run, and when that run was (ISO 8601 UTC).

    `kept_at` is when it was recorded, where its evidence says to be of later ("" else): nothing is seen in the future.
    """

    run: str
    at: str
    outcome: Outcome
    recorded_at: str = ""

    @property
    def id(self) -> str:
        """What a Cause of kind outcome names: `<run>/<check>[<subject>]`."""
        return f"{self.run}/{self.outcome.check}[{self.outcome.subject}]"

    @property
    def is_dated_ahead(self) -> bool:
        """Whether a wrong clock dated its evidence, so that nobody can tell how old that is: no pass on it counts."""
        return (
            bool(self.recorded_at)
            and _parse_time(self.outcome.evidence_at) - _parse_time(self.recorded_at) > MAX_CLOCK_SKEW
        )

    @property
    def seen_at(self) -> str:
        """When the judged evidence was collected, at the latest when it was recorded; "" where there was none."""
        return self.outcome.evidence_at and (self.recorded_at or self.outcome.evidence_at)

    @property
    def measured_at(self) -> str:
        """When the judged evidence was collected; where there was none (an error), when the run was."""
        return self.seen_at or self.at


def _parse_time(at: str) -> datetime:
    read = datetime.fromisoformat(at)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of the suites: what was asked, of which specs, by whom."""

    id: str
    at: str
    phases: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    spec_commit: str = ""
    dirty: bool = False
    suite_hash: str = ""
    who: str = ""


@dataclass(frozen=True, slots=True, order=True)
class CheckSubject:
    """A pool's node, a part of it, a rack (`h100-a/rack-r01`), or a fabric (`fabric/compute`) with its parts.

    The parts of a fabric are its switches (`fabric/compute/leaf-su01-r0`) and rails (`fabric/compute/rail-0`).
    """

    scope: str
    name: str
    part: str = ""

    def __str__(self) -> str:
        if self.scope and self.name:  # nearly always, and often
            return f"{self.scope}/{self.name}/{self.part}" if self.part else f"{self.scope}/{self.name}"
        return "/".join(piece for piece in (self.scope, self.name, self.part) if piece)

    @classmethod
    def parse(cls, text: str) -> CheckSubject:
        """Read an id back. Raises ValueError unless it has two or three parts."""
        pieces = text.split("/", 2)
        if len(pieces) < 2 or not all(pieces):
            raise ValueError(f"{text!r} is no subject id; expected pool/node or pool/node/part")
        return cls(*pieces)
