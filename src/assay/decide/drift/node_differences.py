"""Collects what differs on one node, and what nobody knows, from its outcomes of the checks of drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.decide.drift.evidence_age import EvidenceWindow, UnknownReason
from assay.decide.drift.reason_reading import ReadDifference, name_of_check, read_differences
from assay.decide.drift.setting_lines import SettingLines
from assay.decide.drift.sync_report import UNKNOWN_PREFIX, DriftItem
from assay.model.node import Node
from assay.model.outcome import PassCount, StandingFailure
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.model.text.text_lists import format_count

NAMED_CHECKS = 3
"""So many checks are named; more are counted."""
OLD_SPEC = UnknownReason("not judged since its spec or its check has changed")
NEVER_JUDGED = UnknownReason("never judged")


class ExpectedCheck(NamedTuple):
    """A check that a node needs: the parts that it judges ("" for the node itself), and what judges it today.

    `judged_by` is the hash that its outcomes must have, "" for any, None where each node has its own. `max_hours` is
    how old its evidence may be, None for any age. `where` is the `file:line` of
    the one value of the spec that it reads, or that declares the check.
    """

    check: CheckDeclaration
    parts: frozenset[str]
    judged_by: str | None
    max_hours: float | None = None
    where: str = ""


@dataclass(slots=True)
class NodeDifferences:
    """What is found on one node.

    `differences` count today, `faults` are their classes. `old_differences` were seen, and may have changed since.
    `unknown` are checks by reason.
    `passed_before` are the last passes of what is not in sync now: date (Unix seconds, 0 for never) and revision.
    """

    node: Node
    window: EvidenceWindow
    lines: SettingLines
    differences: list[DriftItem] = field(default_factory=list)
    faults: dict[str, None] = field(default_factory=dict)
    old_differences: list[DriftItem] = field(default_factory=list)
    unknown: dict[UnknownReason, list[str]] = field(default_factory=dict)
    passed_before: list[tuple[float, str]] = field(default_factory=list)

    def add_check(
        self, expected: ExpectedCheck, passes: Sequence[PassCount], failures: Mapping[str, StandingFailure]
    ) -> None:
        """Add what the passes and the failures (by part) of one check say."""
        left, because = len(expected.parts), NEVER_JUDGED
        for passed in passes:
            if expected.judged_by and passed.judged_by != expected.judged_by:
                because = OLD_SPEC
                self.passed_before.append((passed.recorded_s, passed.revision))
            elif why := self.window.object_to_pass(passed, expected.max_hours):
                because = why
                self.passed_before.append((passed.recorded_s, passed.revision))
            else:
                left -= passed.subjects
        for part, failure in failures.items():
            if part in expected.parts:
                left -= 1
                self._add_failure(expected, part, failure)
        if left > 0:
            self._add_unknown(expected.check, because)
            self.passed_before += [(0.0, "")] if because == NEVER_JUDGED else []

    @property
    def items(self) -> tuple[DriftItem, ...]:
        """Everything that was found, what is known first."""
        return (*self.differences, *self.old_differences, *self._list_unknown())

    @property
    def last_revision(self) -> str:
        """The last revision with which the node is known to have been in sync, "" where that is not known."""
        return min(self.passed_before, default=(0.0, ""))[1]

    def _add_failure(self, expected: ExpectedCheck, part: str, failure: StandingFailure) -> None:
        outcome = failure.recorded.outcome
        self.passed_before.append((failure.passed_s, failure.passed_revision))
        if expected.judged_by and outcome.judged_by != expected.judged_by:
            self._add_unknown(expected.check, OLD_SPEC)
            return
        why = self.window.object_to_failure(failure.recorded, expected.max_hours)
        if outcome.verdict != "fail":
            self._add_unknown(expected.check, UnknownReason(outcome.reason, find_first_time(failure, outcome.reason)))
            return
        items = self._list_items(expected, part, failure)
        if why:
            self.old_differences += items
            self._add_unknown(expected.check, why)
        else:
            self.differences += items
            self.faults.setdefault(outcome.fault)

    def _list_items(self, expected: ExpectedCheck, part: str, failure: StandingFailure) -> Iterator[DriftItem]:
        for one in read_differences(expected.check.id, failure.recorded.outcome.reason):
            what = f"{part} {one.what}" if part else one.what
            where = self.lines.find(self.node.spec, one.what, one.where) if one.where else expected.where
            yield DriftItem(what, one.wanted, one.seen, where, find_first_time_of(expected.check.id, failure, one))

    def _add_unknown(self, check: CheckDeclaration, why: UnknownReason) -> None:
        self.unknown.setdefault(why, []).append(name_of_check(check.id))

    def _list_unknown(self) -> Iterator[DriftItem]:
        for why, checks in self.unknown.items():
            names = list(dict.fromkeys(checks))
            what = ", ".join(names) if len(names) <= NAMED_CHECKS else format_count(len(names), "check")
            yield DriftItem(what, "", f"{UNKNOWN_PREFIX}{why.text}", "", why.since)


def find_first_time(failure: StandingFailure, reason: str) -> str:
    """Return when a check first gave a reason in the row that the failure ends, "" where the row has it nowhere."""
    return min((at for at, said in failure.row if said == reason), default="")


def find_first_time_of(check: str, failure: StandingFailure, difference: ReadDifference) -> str:
    """Return when a check first saw a difference in the row that the failure ends, whatever else it saw then."""
    same = difference[:3]
    times = (at for at, said in failure.row if any(one[:3] == same for one in read_differences(check, said)))
    return min(times, default="")
