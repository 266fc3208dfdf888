"""The backtest: compares what the new and the present limits and policy would have done in the last days.

It reads only what it needs from the ledger. How a revision reacts to a failure or a fault depends on the state of the
node at that time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import eq, ge, le

from assay.decide.plan.inputs import BacktestDifference, BacktestReport, FleetRevision
from assay.decide.state.node_projection import project_node_states
from assay.decide.state.node_state import NodeState
from assay.model.entries.node_entries import read_entered_state
from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultRecord, FaultSeverity
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Measurement, Outcome, RecordedOutcome
from assay.model.specs.policy_response import respond_to_fault
from assay.model.timestamps import parse_time

ASSUME_IN_USE = True  # whose jobs are not known counts as in use, as when deciding


@frozen
class RevisionReaction:
    """The reaction as text, and whether it moves the node."""

    text: str
    moves: bool = False


PASSED_REACTION = RevisionReaction("passes")
NOT_THERE = RevisionReaction("the state or the node is not there")


def _find_limit(revision: FleetRevision, node: str, name: str) -> float | None:
    """Return a limit of a node's spec, None if the spec lacks it."""
    known = revision.fleet.nodes.get(node)
    spec = revision.fleet.node_specs.get(known.spec) if known else None
    limit = spec.limits.get(name) if spec else None
    return limit.value if limit else None


def _react_to_failure(revision: FleetRevision, outcome: Outcome, state: str) -> RevisionReaction:
    """Return the reaction to a failed check."""
    node, phases, fault = outcome.node, set(outcome.phases), outcome.fault
    here = revision.policy.states.get(state)
    if here is None or node not in revision.fleet.nodes:
        return NOT_THERE
    if fault and set(here.watch) & phases:
        return react_to_fault(revision, node, state, fault, revision.catalog.find_treatment(fault).severity)
    if {want.phase for want in here.requires} & phases:
        if not here.fail_to:
            return RevisionReaction("fails, ticket")
        return RevisionReaction(f"fails, to {here.fail_to}", True)
    return RevisionReaction(f"nothing in {state} looks at it")


def react_to_fault(
    revision: FleetRevision, node: str, state: str, fault: str, severity: FaultSeverity
) -> RevisionReaction:
    """Return the reaction to an open fault of that severity."""
    if state not in revision.policy.states or node not in revision.fleet.nodes:
        return NOT_THERE
    treatment = revision.catalog.find_treatment(fault)
    response = (fault, severity, treatment.blame, treatment.remedy, ASSUME_IN_USE)
    answer = respond_to_fault(revision.policy, state, *response)
    acts = revision.fleet.profile_of(node).acts_on_faults
    return RevisionReaction(str(answer), answer.moves_node) if acts else RevisionReaction("tracked, not acted on")


class StateTimeline:
    """The stays of every node, from the ledger's entries."""

    def __init__(self, entries: Iterable[LedgerEntry]) -> None:
        self._since: dict[str, list[datetime]] = defaultdict(list)
        self._state: dict[str, list[str]] = defaultdict(list)
        for entry in entries:
            if entry.kind in ("node.enrolled", "transition"):
                self._since[entry.node].append(parse_time(entry.at))
                self._state[entry.node].append(read_entered_state(entry))

    def state_at(self, node: str, when: str) -> str:
        """Return the state of a node at a time; before its first entry, its first state; "" for an unknown node."""
        stays = self._state.get(node)
        if not stays:
            return ""
        return stays[max(0, bisect_right(self._since[node], parse_time(when)) - 1)]

    def last_state(self, node: str) -> str:
        """Return the state that a node is in."""
        return self._state[node][-1] if node in self._state else ""


HOLDS = {"at_least": ge, "at_most": le}
CheckBounds = Mapping[tuple[str, str], Sequence[tuple[str, str]]]
"""By check and measurement: the sides (`at_least`, `at_most`, `equals`) and the limit on each."""


@frozen
class RejudgedMeasurement:
    """One measurement whose limit changed. `before` and `after` are the reactions of the two revisions."""

    node: str
    key: tuple[str, str, str]
    at: str
    because: str
    before: RevisionReaction
    after: RevisionReaction
    before_now: RevisionReaction
    after_now: RevisionReaction


class MeasurementRejudger:
    """Compares measurements with both revisions. `read` counts changed limits, `unmapped` unknown ones."""

    def __init__(self, before: FleetRevision, after: FleetRevision, bounds: CheckBounds, states: StateTimeline) -> None:
        self._before = before
        self._after = after
        self._bounds = bounds
        self._states = states
        paths = (
            (path.split("."), line) for (_, path), line in before.fleet.lines.items() if path.startswith("limits.")
        )
        self._limits = {line: steps[1] for steps, line in paths}
        self._lines = set(before.fleet.lines.values())
        self.read = self.unmapped = 0

    def rejudge(self, outcomes: Iterable[RecordedOutcome]) -> Iterator[RejudgedMeasurement]:
        """Yield every measurement whose limit changed, in order."""
        for recorded in outcomes:
            if recorded.outcome.verdict in ("pass", "fail"):
                for measurement in recorded.outcome.measurements:
                    yield from self._rejudge_measurement(recorded, measurement)

    def _rejudge_measurement(
        self, recorded: RecordedOutcome, measurement: Measurement
    ) -> Iterator[RejudgedMeasurement]:
        limits = self._limits_of(recorded.outcome.check, measurement)
        node = recorded.outcome.node
        changed = [
            name for _, name in limits if _find_limit(self._before, node, name) != _find_limit(self._after, node, name)
        ]
        if not changed:
            return
        self.read += 1
        fails = [_fails(side, node, limits, measurement.value) for side in (self._before, self._after)]
        then, now = self._states.state_at(node, recorded.measured_at), self._states.last_state(node)
        yield RejudgedMeasurement(
            node=node,
            key=(recorded.outcome.check, recorded.outcome.subject, measurement.name),
            at=recorded.measured_at,
            because=self._describe(recorded, measurement, changed),
            before=_react_to_failure(self._before, recorded.outcome, then) if fails[0] else PASSED_REACTION,
            after=_react_to_failure(self._after, recorded.outcome, then) if fails[1] else PASSED_REACTION,
            before_now=_react_to_failure(self._before, recorded.outcome, now) if fails[0] else PASSED_REACTION,
            after_now=_react_to_failure(self._after, recorded.outcome, now) if fails[1] else PASSED_REACTION,
        )

    def _limits_of(self, check: str, measurement: Measurement) -> Sequence[tuple[str, str]]:
        """Return the limits of a measurement: those in the check's code, else those of the spec's line."""
        if (check, measurement.name) in self._bounds:
            return self._bounds[check, measurement.name]
        name = self._limits.get(measurement.source, "")
        if measurement.source and not name and measurement.source not in self._lines:
            self.unmapped += 1
        sides = ("at_least", measurement.at_least), ("at_most", measurement.at_most)
        return [(side, name) for side, value in sides if name and value is not None]

    def _describe(self, recorded: RecordedOutcome, measurement: Measurement, changed: list[str]) -> str:
        node = recorded.outcome.node
        bounds = [
            f"{_number(_find_limit(self._before, node, n))} → {_number(_find_limit(self._after, node, n))}"
            for n in changed
        ]
        limits = ", ".join(f"limit {name} {bound}" for name, bound in zip(changed, bounds, strict=True))
        return f"{measurement.name} {measurement.value:g} {measurement.unit} on {recorded.outcome.subject}; {limits}"


def _fails(side: FleetRevision, node: str, limits: Sequence[tuple[str, str]], value: float) -> bool:
    bounds = [(where, _find_limit(side, node, name)) for where, name in limits]
    return any(bound is not None and not HOLDS.get(where, eq)(value, bound) for where, bound in bounds)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


BACKTEST_DAYS = 30.0


@frozen
class _ReactionDifference:
    """One sighting to which the revisions react differently. `still`: it describes the node as it is now."""

    node: str
    at: str
    because: str
    before: RevisionReaction
    after: RevisionReaction
    is_current: bool


def run_backtest(
    before: FleetRevision,
    after: FleetRevision,
    bounds: CheckBounds,
    entries: Sequence[LedgerEntry],
    outcomes: Iterable[RecordedOutcome],
    now: datetime,
) -> BacktestReport:
    """Return the nodes on which two revisions differ. `entries` is the whole ledger, `outcomes` the recent ones."""
    start = now - timedelta(days=BACKTEST_DAYS)
    recent = list(outcomes)
    states = StateTimeline(entries)
    node_states = project_node_states(entries)
    judging = MeasurementRejudger(before, after, bounds, states)
    differing = list(_by_measurement(judging.rejudge(recent)))
    faults = [
        (node_state, known)
        for node_state in node_states.values()
        for known in node_state.faults
        if parse_time(known.last_seen) >= start
    ]
    differing += _by_fault(before, after, states, faults)
    first = [*(entry.at for entry in entries[:1]), *(recorded.at for recorded in recent[:1])]
    begun = min(map(parse_time, first), default=now)
    return BacktestReport(
        days=max(0.0, (now - max(start, begun)) / timedelta(days=1)),
        measurements=judging.read,
        faults=len(faults),
        unmapped=judging.unmapped,
        found=tuple(_merge_differences(differing)),
    )


def find_changed_scopes(before: FleetRevision, after: FleetRevision) -> tuple[bool, bool]:
    """Return whether any limit differs, and whether policy or catalogue differs. Otherwise a backtest says nothing."""
    names = before.fleet.node_specs.keys() | after.fleet.node_specs.keys()
    specs = [(before.fleet.node_specs.get(name), after.fleet.node_specs.get(name)) for name in names]
    limits = any(old is None or new is None or old.limits != new.limits for old, new in specs)
    return limits, before.policy != after.policy or before.catalog != after.catalog


def _by_measurement(seen: Iterable[RejudgedMeasurement]) -> Iterator[_ReactionDifference]:
    """Yield the measurements to which the revisions react differently; the newest one of each subject is `still` so."""
    newest: dict[tuple[str, str, str], RejudgedMeasurement] = {}
    for measured in seen:
        if measured.key not in newest or parse_time(measured.at) >= parse_time(newest[measured.key].at):
            newest[measured.key] = measured
        if measured.before != measured.after:
            yield _ReactionDifference(
                measured.node, measured.at, measured.because, measured.before, measured.after, is_current=False
            )
    for measured in newest.values():
        if measured.before_now != measured.after_now:
            yield _ReactionDifference(
                measured.node, measured.at, measured.because, measured.before_now, measured.after_now, is_current=True
            )


def _by_fault(
    before: FleetRevision,
    after: FleetRevision,
    states: StateTimeline,
    faults: Iterable[tuple[NodeState, FaultRecord]],
) -> Iterator[_ReactionDifference]:
    for node_state, known in faults:
        then = states.state_at(node_state.node, known.last_seen)
        # A decision would consider the fault now if nothing has cleared, answered or repaired it.
        is_open = known.is_open and known.response == "" and not node_state.is_repaired(known)
        # A fault that had not reached its count has still not reached it now.
        counted = known.severity == before.catalog.find_treatment(known.fault_class).severity
        for state, still in ((then, False), *([(node_state.state, True)] if is_open else [])):
            reactions = []
            for side in (before, after):
                severity = side.catalog.find_treatment(known.fault_class).severity if counted else known.severity
                reactions.append(react_to_fault(side, node_state.node, state, known.fault_class, severity))
            if reactions[0] != reactions[1]:
                because = f"{known.fault_class} on {known.subject}"
                yield _ReactionDifference(node_state.node, known.last_seen, because, reactions[0], reactions[1], still)


def _merge_differences(differing: Iterable[_ReactionDifference]) -> Iterator[BacktestDifference]:
    """Yield one line for each node and reason if exactly one of the revisions moves the node."""
    groups: dict[tuple[str, bool, str, str], list[_ReactionDifference]] = defaultdict(list)
    for difference in differing:
        if difference.before.moves != difference.after.moves:
            key = (difference.node, difference.after.moves, difference.before.text, difference.after.text)
            groups[key].append(difference)
    for (node, acts, then, now), some in sorted(groups.items()):
        last = max(some, key=lambda difference: parse_time(difference.at))
        times = sum(not difference.is_current for difference in some)
        still = any(difference.is_current for difference in some)
        yield BacktestDifference(node, acts, still, last.because, then, now, last.at, max(times, 1))
