"""Collects what differs on one node, and what nobody knows, from its outcomes of the checks of drift.

Which checks count for a node in its state, and how old their evidence may be, the policy says.

Checks and `measure` word a difference in one form, and join several by "; ":

    WHAT SEEN, expected WANTED (FILE:LINE)
    SEEN: WANTED (FILE:LINE), WANTED (FILE:LINE)      for entries of a list that are absent
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from assay.decide.drift.sync_report import UNKNOWN_PREFIX, SyncDifference
from assay.decide.state.node_state import NodeState
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultRecord
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import PassCount, RecordedOutcome, StandingFailure
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.lifecycle_policy import LifecyclePolicy, PhaseAges, find_longest_hours
from assay.model.text.lists import format_count
from assay.model.timestamps import format_minute, parse_epoch_seconds_cached

HOUR_S = 3600


class UnknownReason(NamedTuple):
    """Why something is not known, and the time of the evidence that there is (ISO 8601 UTC), "" for none."""

    text: str
    since: str = ""


def list_phases(policy: LifecyclePolicy, state: str) -> PhaseAges:
    """Return the phases that count in a state: what a node in service needs, and what the state watches or requires.

    A requirement says how old evidence may be. For any other phase, the longest counts that a state of the policy
    allows for it.
    """
    declared = policy.states.get(state)
    required: PhaseAges = {want.phase: want.fresh_hours for want in declared.requires} if declared else {}
    watched = [phase for other in policy.states.values() if other.in_service for phase in other.watch]
    watched += declared.watch if declared else []
    return {phase: find_longest_hours(policy, phase) for phase in watched} | required


@frozen
class EvidenceWindow:
    """When evidence of a node must be from. It must not be older than the node's last repair (Unix seconds)."""

    now_s: float
    repaired_s: float

    @classmethod
    def of_node(cls, node_state: NodeState | None, now: datetime) -> EvidenceWindow:
        """Return the window of a node; one that was never enrolled has no repair."""
        repaired = node_state.repaired_at if node_state else ""
        return cls(now.timestamp(), parse_epoch_seconds_cached(repaired) if repaired else 0.0)

    def object_to_pass(self, passed: PassCount, max_hours: float | None) -> UnknownReason | None:
        """Return why passes prove nothing today, None if they count."""
        return self._object(passed.seen_at, passed.recorded_s, max_hours)

    def object_to_failure(self, recorded: RecordedOutcome, max_hours: float | None) -> UnknownReason | None:
        """Return why a failure proves nothing today, None if it counts."""
        dated = recorded.recorded_at or recorded.outcome.evidence_at
        return self._object(recorded.outcome.evidence_at, parse_epoch_seconds_cached(dated) if dated else 0, max_hours)

    def _object(self, seen_at: str, recorded_s: float, max_hours: float | None) -> UnknownReason | None:
        if not seen_at:
            return UnknownReason("judged without evidence")
        seen_s, skew_s = parse_epoch_seconds_cached(seen_at), MAX_CLOCK_SKEW.total_seconds()
        if seen_s - min(recorded_s, self.now_s) > skew_s:
            return UnknownReason("its evidence is dated ahead, so its age cannot be told")
        if seen_s < self.repaired_s:
            return UnknownReason("its evidence is older than the last repair", seen_at)
        if max_hours is not None and self.now_s - seen_s > max_hours * HOUR_S:
            return UnknownReason(f"its evidence is older than {max_hours:g} h", seen_at)
        return None


_PLACE = r"\((?P<where>[^()\s]+:\d+)\)"
_EXPECTED = re.compile(rf"(?P<what>\S+) (?:is )?(?P<seen>.+), expected (?P<wanted>.+?)(?: {_PLACE})?")
_ABSENT = re.compile(r"(?P<seen>[^:;]+): (?P<entries>.+ \([^()\s]+:\d+\))")
_ENTRY = re.compile(rf"(?P<wanted>.+?) {_PLACE}(?:, |$)")


class ReadDifference(NamedTuple):
    """One difference; `wanted` and `where` are "" where the reason does not name them."""

    what: str
    wanted: str
    seen: str
    where: str = ""


@lru_cache(4096)
def read_differences(check: str, reason: str) -> tuple[ReadDifference, ...]:
    """Return what differs according to a reason. Words in another form are one difference, named by its check."""
    if absent := _ABSENT.fullmatch(reason):
        return tuple(
            ReadDifference(entry["wanted"], entry["wanted"], absent["seen"], entry["where"])
            for entry in _ENTRY.finditer(absent["entries"])
        )
    matches = [_EXPECTED.fullmatch(part) for part in reason.split("; ")]
    if not all(matches):
        return (ReadDifference(name_of_check(check), "", reason),)
    return tuple(
        ReadDifference(match["what"], match["wanted"], match["seen"], match["where"] or "")
        for match in matches
        if match is not None
    )


def name_of_check(check: str) -> str:
    """Return a check's name in words: `firmware is the bundles`."""
    return check.rpartition("::test_")[2].replace("_", " ")


_NAMED_BY_KEY = ("bios.", "host.sysctls.", "limits.")
"""Mappings of a node spec whose keys are what differs, dots included."""
_INSIDE_A_VALUE = ("value", "unit", "source")


class SettingLines:
    """The lines of settings and firmware versions by what checks call them, for each node spec."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._known: dict[str, dict[str, str]] = {}

    def find(self, spec: str, name: str, place: str) -> str:
        """Return where `name` is declared now, if that is in the file of `place`; else `place`."""
        if spec not in self._known:
            self._known[spec] = dict(reversed(list(self._list_names(spec))))
        now = self._known[spec].get(name, "")
        return now if now.rpartition(":")[0] == place.rpartition(":")[0] else place

    def _list_names(self, spec: str) -> Iterator[tuple[str, str]]:
        """Yield name and line, better names first."""
        declared, lines = self._fleet.node_specs[spec], self._fleet.lines.items()
        paths = [(path, where) for (document, path), where in lines if document == f"NodeSpec/{spec}"]
        for path, where in paths:
            for mapping in _NAMED_BY_KEY:
                if path.startswith(mapping):
                    yield path.removeprefix(mapping), where
            yield path.replace(".", "_"), where
        for path, where in paths:
            name = path.rpartition(".")[2]
            if not name.isdigit() and name not in _INSIDE_A_VALUE:
                yield name, where
        if bundle := self._fleet.bundles.get(declared.firmware):
            for number, component in enumerate(bundle.components):
                where = self._fleet.lines.get((f"FirmwareBundle/{bundle.name}", f"components.{number}.version"), "")
                yield from ((name, where) for name in (*component.inventory, component.name))


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
    differences: list[SyncDifference] = field(default_factory=list)
    faults: dict[str, None] = field(default_factory=dict)
    old_differences: list[SyncDifference] = field(default_factory=list)
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
            elif objection := self.window.object_to_pass(passed, expected.max_hours):
                because = objection
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
    def items(self) -> tuple[SyncDifference, ...]:
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
        objection = self.window.object_to_failure(failure.recorded, expected.max_hours)
        if outcome.verdict != "fail":
            since = min((at for at, failed_for in failure.row if failed_for == outcome.reason), default="")
            self._add_unknown(expected.check, UnknownReason(outcome.reason, since))
            return
        items = self._list_items(expected, part, failure)
        if objection:
            self.old_differences += items
            self._add_unknown(expected.check, objection)
        else:
            self.differences += items
            self.faults.setdefault(outcome.fault)

    def _list_items(self, expected: ExpectedCheck, part: str, failure: StandingFailure) -> Iterator[SyncDifference]:
        for difference in read_differences(expected.check.id, failure.recorded.outcome.reason):
            value = f"{part} {difference.what}" if part else difference.what
            where = (
                self.lines.find(self.node.spec, difference.what, difference.where)
                if difference.where
                else expected.where
            )
            yield SyncDifference(
                value,
                difference.wanted,
                difference.seen,
                where,
                find_first_time_of(expected.check.id, failure, difference),
            )

    def _add_unknown(self, check: CheckDeclaration, reason: UnknownReason) -> None:
        self.unknown.setdefault(reason, []).append(name_of_check(check.id))

    def _list_unknown(self) -> Iterator[SyncDifference]:
        for reason, checks in self.unknown.items():
            names = list(dict.fromkeys(checks))
            shown = ", ".join(names) if len(names) <= NAMED_CHECKS else format_count(len(names), "check")
            yield SyncDifference(shown, "", f"{UNKNOWN_PREFIX}{reason.text}", since=reason.since)


def find_first_time_of(check: str, failure: StandingFailure, difference: ReadDifference) -> str:
    """Return when a check first saw a difference in the row that the failure ends, whatever else it saw then."""
    same = difference[:3]
    times = (
        at
        for at, failed_for in failure.row
        if any(difference[:3] == same for difference in read_differences(check, failed_for))
    )
    return min(times, default="")


def describe_fault(fault: FaultRecord, drift: Collection[str], latest: Iterable[RecordedOutcome]) -> tuple[str, str]:
    """Return what a ticket about a fault expects ("": that it ends), and what was seen. `drift`: classes of drift.

    A fault covers all checks of its class on one subject. `latest` are the node's newest outcomes.
    """
    if fault.fault_class not in drift:
        return "", fault.detail
    failing = sorted(
        (recorded.outcome.check, recorded.outcome.reason)
        for recorded in latest
        if (recorded.outcome.verdict, recorded.outcome.fault, recorded.outcome.subject)
        == ("fail", fault.fault_class, fault.subject)
    )
    differences = [(check, difference) for check, reason in failing for difference in read_differences(check, reason)]
    if not differences:
        return "", _add_since(fault.detail, fault)
    wanted = dict.fromkeys(_format_wanted(check, difference) for check, difference in differences)
    seen = dict.fromkeys(
        f"{difference.what}: {difference.seen}" if difference.wanted else difference.seen
        for _, difference in differences
    )
    return "\n".join(wanted), _add_since("\n".join(seen), fault)


def _format_wanted(check: str, difference: ReadDifference) -> str:
    if not difference.wanted:
        return name_of_check(check)
    where = f" ({difference.where})" if difference.where else ""
    return (
        f"{difference.wanted}{where}"
        if difference.wanted == difference.what
        else f"{difference.what}: {difference.wanted}{where}"
    )


def _add_since(text: str, fault: FaultRecord) -> str:
    return f"{text}\nsince {format_minute(fault.first_seen)}"
