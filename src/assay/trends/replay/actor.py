"""One node of a replay's world: what is wrong with it, who uses it, and what its suites said last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from assay.lifecycle.sightings import Sighting
from assay.lifecycle.silent import LOST
from assay.lifecycle.situation import NodeView
from assay.lifecycle.story import Known, Story
from assay.lifecycle.when import NEVER, moment, written
from assay.model.checks import Check
from assay.model.fleet import Node
from assay.model.outcome import Outcome, Recorded
from assay.model.profile import ManagementProfile
from assay.model.subject import Subject

CUSTOMER = ("customer work",)


@dataclass(slots=True)
class Actor:
    """`present`: the faults (class, part) that the history told of and has not cleared.

    `verifying`: which verification is under way, "" for none; `judged`: the stay in which one has ended; `stirred`:
    when a serious fault or a move came last. `settled`: faults of which another sighting would be no news; `again`:
    such sightings, which nobody has counted yet.
    """

    node: Node
    profile: ManagementProfile
    declared: tuple[tuple[Check, Subject], ...]
    present: dict[tuple[str, str], None] = field(default_factory=dict)
    in_use: bool = False
    verifying: str = ""
    judged: str = ""
    stirred: datetime = NEVER
    latest: dict[str, Recorded] = field(default_factory=dict)
    settled: set[tuple[str, str]] = field(default_factory=set)
    again: list[Sighting] = field(default_factory=list)

    def view(self, story: Story) -> NodeView:
        """Return what a decision may look at."""
        jobs = CUSTOMER if self.in_use else ()
        return NodeView(self.node, self.profile, story, self.declared, tuple(self.latest.values()), jobs)

    def subject(self, part: str) -> str:
        """Return the subject of a part, "" being the node."""
        return f"{self.node.subject}/{part}".rstrip("/")

    def is_blocked(self, story: Story) -> bool:
        """Whether something is wrong that a suite would see, or that lets none see anything."""
        return any(name == LOST or self._is_serious(story, name, part) for name, part in self.present)

    def _is_serious(self, story: Story, name: str, part: str) -> bool:
        return any(known.severity != "informational" for known in _open(story, name, self.subject(part)))

    def clear(self, fault: str, part: str) -> list[str]:
        """Take a fault away, of all parts where none is named; return the subjects that had it."""
        gone = [(name, where) for name, where in self.present if name == fault and part in ("", where)]
        for key in gone:
            del self.present[key]
            self.latest.pop(_seen(*key), None)
        return [self.subject(where) for _, where in gone]

    def passes(self, checks: Iterable[Check], at: datetime) -> None:
        """Let these checks pass on evidence of that time."""
        for check in checks:
            self._record(check.id, Outcome(check.id, self.node.subject, self.node.name, "pass"), check, at)

    @property
    def fails(self) -> bool:
        """Whether a look found again what is there."""
        return any(one.outcome.verdict == "fail" for one in self.latest.values())

    def still_fails(self, fault: str, part: str, at: datetime, since: datetime) -> bool:
        """Let a look find again what is there, if none has `since` then; return whether one did."""
        name = _seen(fault, part)
        if name in self.latest and moment(self.latest[name].measured_at) > since:
            return False
        found = Outcome(name, self.subject(part), self.node.name, "fail", "still there", fault)
        self._record(name, found, None, at)
        return True

    def _record(self, key: str, outcome: Outcome, check: Check | None, at: datetime) -> None:
        said = written(at)
        whole = Outcome(
            outcome.check,
            outcome.subject,
            outcome.node,
            outcome.verdict,
            outcome.reason,
            outcome.fault,
            phases=tuple(check.phases) if check else (),
            active=check.active if check else False,
            evidence_at=said,
        )
        self.latest[key] = Recorded(f"replay {said[:19]}", said, whole)


def _open(story: Story, name: str, subject: str) -> Iterator[Known]:
    return (known for known in story.faults if known.open and (known.fault_class, known.subject) == (name, subject))


def _seen(fault: str, part: str) -> str:
    return f"a look at {fault} {part}".rstrip()
