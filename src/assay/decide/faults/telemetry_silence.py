"""Silence past its deadline is a fault (`telemetry.lost`), and never counts as health. Pure.

It does not count against a node in three cases: nobody listened, a repair may have shut the node down, or its state
watches nothing. If many nodes of a pool fall silent together, one broken collector is more likely: that is one wave.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from assay.decide.faults.detection import FaultObservation
from assay.decide.faults.recovery import make_clearance
from assay.decide.moves.circuit_breaker import is_wave
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.model.entries.faults import FaultClearedEntry
from assay.model.facts import frozen
from assay.model.ledger_entry import derive_id
from assay.model.node import Node
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.serving import SilenceLimits
from assay.model.timestamps import format_duration, format_time, parse_epoch_seconds, parse_time

TELEMETRY_LOST = "telemetry.lost"
SOURCE_LABELS = {"agent": "its agent", "probe": "the probe", "bmc": "its BMC"}


@frozen
class TelemetrySource:
    """A source (agent, probe or bmc) of one node: when it was last heard (None for never).

    `since` is the time from which it could have been heard but was not.
    """

    node: str
    source: str
    last_heard_at: datetime | None
    since: datetime


@frozen
class SilenceWave:
    """Nodes of a pool whose source fell silent together, the first at `since`. `total` is the size of the pool."""

    pool: str
    source: str
    nodes: tuple[str, ...]
    total: int
    since: datetime


@frozen
class SilenceResult:
    """New faults, ends of faults, and waves. The nodes of a wave get no fault."""

    faults: tuple[FaultObservation, ...]
    clearances: tuple[FaultClearedEntry, ...]
    waves: tuple[SilenceWave, ...]


SilentSource = tuple[TelemetrySource, datetime]
"""A source that is silent past its deadline, and since when."""


def judge_silence(snapshot: FleetSnapshot, catalog: FaultCatalog, sources: Sequence[TelemetrySource]) -> SilenceResult:
    """Return the consequences of these sources' silence, by the policy's deadlines."""
    views = {view.name: view for view in snapshot.nodes}
    expected = [
        source for source in sources if source.node in views and is_telemetry_expected(snapshot, views[source.node])
    ]
    silent: list[SilentSource] = []
    for source in expected:
        view = views[source.node]
        at = _find_silent_since(snapshot, view, source)
        if at is None:
            continue
        lost = [fault for fault in view.node_state.faults if fault.is_open and fault.fault_class == TELEMETRY_LOST]
        if f"{view.node.subject}/{source.source}" not in {fault.subject for fault in lost}:
            silent.append((source, at))
    waves = tuple(_find_waves(snapshot, expected, silent))
    in_wave = {(name, wave.source) for wave in waves for name in wave.nodes}
    alone = [(source, at) for source, at in silent if (source.node, source.source) not in in_wave]
    faults = tuple(_make_silence_fault(snapshot, catalog, views[source.node], source, at) for source, at in alone)
    return SilenceResult(faults, tuple(_find_clearances(snapshot, expected)), waves)


def is_telemetry_expected(snapshot: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether a node must be heard: its state watches or requires phases, and no effect may have shut it down."""
    state = snapshot.policy_state_of(view)
    return bool(state.watch or state.requires) and not view.node_state.unsettled_effects


def list_unread(
    states: Iterable[NodeState],
    policies: Iterable[LifecyclePolicy],
    answered: Mapping[tuple[str, str], float],
    now: datetime,
) -> dict[str, str]:
    """Return the nodes in service that are not known, and since when: "" for one that was never read.

    Their probe never answered, or not for longer than it may be silent, or both their agent and their BMC are. How such
    a node is, nobody knows, whoever is to blame for it: the node, the network, or a controller that stands still.
    `answered`: the last answers (Unix seconds) by node and source.
    """
    unread = {}
    earliest = {
        name: {source: (now - silence_deadline(policy.silence, source)).timestamp() for source in SOURCE_LABELS}
        for policy in policies
        for name in policy.states_in_service
    }
    for state in states:
        if state.state not in earliest or state.unsettled_effects:
            continue
        last = {source: answered.get((state.node, source), 0.0) for source in SOURCE_LABELS}
        silent = {source for source, at in earliest[state.state].items() if is_silent(last[source], state.since, at)}
        silent |= set() if last["probe"] else {"probe"}
        if "probe" in silent or (last["agent"] and last["bmc"] and {"agent", "bmc"} <= silent):
            at = last["probe"] if "probe" in silent else max(last["agent"], last["bmc"])
            unread[state.node] = format_time(datetime.fromtimestamp(at, now.tzinfo)) if at else ""
    return unread


def is_silent(answered_s: float, since: str, earliest_s: float) -> bool:
    """Whether a source gave no answer for too long, and the node's state, which began `since`, is as old."""
    return answered_s < earliest_s and parse_epoch_seconds(since) < earliest_s


def silence_deadline(silence: SilenceLimits, source: str) -> timedelta:
    """Return how long a source may stay silent."""
    return timedelta(minutes=silence.agent_minutes if source == "agent" else silence.readings_minutes)


def _find_silent_since(snapshot: FleetSnapshot, view: NodeSnapshot, source: TelemetrySource) -> datetime | None:
    """Return when a silence past its deadline began, else None. It counts from when the node must be heard."""
    starts = [source.since, parse_time(view.node_state.since), parse_time(view.node_state.repaired_at)]
    start = max([*starts, source.last_heard_at] if source.last_heard_at else starts)
    return start if snapshot.now - start > silence_deadline(snapshot.policy.silence, source.source) else None


def _find_waves(
    snapshot: FleetSnapshot, expected: Sequence[TelemetrySource], silent: Sequence[SilentSource]
) -> Iterator[SilenceWave]:
    pools = {view.name: view.node.pool for view in snapshot.nodes}
    totals = Counter((pools[source.node], source.source) for source in expected)
    groups: dict[tuple[str, str], list[SilentSource]] = defaultdict(list)
    for source, at in silent:
        groups[pools[source.node], source.source].append((source, at))
    for (pool, name), silent_sources in sorted(groups.items()):
        if is_wave(snapshot.policy.breaker, len(silent_sources), totals[pool, name]):
            nodes = tuple(sorted(source.node for source, _ in silent_sources))
            yield SilenceWave(pool, name, nodes, totals[pool, name], min(at for _, at in silent_sources))


def _make_silence_fault(
    snapshot: FleetSnapshot, catalog: FaultCatalog, view: NodeSnapshot, source: TelemetrySource, at: datetime
) -> FaultObservation:
    if source.last_heard_at is None:
        heard = "was never heard"
    else:
        heard = f"was last heard at {source.last_heard_at:%Y-%m-%d %H:%M:%S} UTC"
    detail = f"{SOURCE_LABELS[source.source]} {heard}; silent for {format_duration(snapshot.now - at)}"
    return make_telemetry_fault(catalog, view.node, source.source, "silence", at, snapshot.now, detail)


def make_telemetry_fault(
    catalog: FaultCatalog,
    node: Node,
    part: str,
    mark: str,
    since: datetime,
    now: datetime,
    detail: str,
    fault_class: str = TELEMETRY_LOST,
) -> FaultObservation:
    """Return the fault of a `part` of a node, "" for the node, since that time; `mark` names what told it."""
    treatment, subject = catalog.find_treatment(fault_class), f"{node.subject}/{part}".rstrip("/")
    return FaultObservation(
        id=derive_id("fault", node.name, fault_class, subject, mark, format_time(since)),
        node=node.name,
        fault_class=fault_class,
        subject=subject,
        severity=treatment.severity,
        blame=treatment.blame,
        remedy=treatment.remedy,
        count=1,
        first_seen=format_time(since),
        last_seen=format_time(now),
        detail=detail,
        marks={mark: format_time(since)},
        times=(format_time(now),),
    )


def _find_clearances(snapshot: FleetSnapshot, expected: Sequence[TelemetrySource]) -> Iterator[FaultClearedEntry]:
    """Yield the ends of silences: sources that were heard again."""
    heard = {(source.node, source.source): source.last_heard_at for source in expected}
    for view in snapshot.nodes:
        for fault in view.node_state.faults:
            if fault.is_open and "silence" in fault.marks:
                source = fault.subject.rpartition("/")[2]
                at = heard.get((view.name, source))
                if at and at > parse_time(fault.last_seen):
                    label = SOURCE_LABELS.get(source, source)
                    yield make_clearance(fault, f"{label} was heard again at {at:%Y-%m-%d %H:%M:%S} UTC")
