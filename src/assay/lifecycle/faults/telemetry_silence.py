"""Silence past its deadline is a fault of its own (`telemetry.lost`), and never health. Pure: told what was heard when.

It is not held against a node while nobody listened to it, while a repair has it down, or in states in which nobody
looks at it. Many nodes of a pool that fall silent together are more likely one broken collector: a wave is told as one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.lifecycle.faults.detection import FaultClearance, FaultObservation
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import FaultRecord
from assay.model.ledger_entry import derive_id
from assay.model.node import Node
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.policy_sections import SilenceLimits
from assay.model.timestamps import format_duration, format_time, parse_time

TELEMETRY_LOST = "telemetry.lost"
SOURCE_LABELS = {"agent": "its agent", "probe": "the probe", "bmc": "its BMC"}


@dataclass(frozen=True, slots=True)
class TelemetrySource:
    """One source of one node: when it was heard last (None: never), and `since` when it could have been and was not."""

    node: str
    source: str
    last_heard_at: datetime | None
    since: datetime


@dataclass(frozen=True, slots=True)
class SilenceWave:
    """Nodes of a pool whose source fell silent together, the first of them at `since`. Nothing is held against them."""

    pool: str
    source: str
    nodes: tuple[str, ...]
    total: int
    since: datetime


@dataclass(frozen=True, slots=True)
class SilenceResult:
    """What silence asks for: faults, the ends of faults, and waves that stand for faults that are not told."""

    faults: tuple[FaultObservation, ...]
    clearances: tuple[FaultClearance, ...]
    waves: tuple[SilenceWave, ...]


def judge_silence(situation: FleetSnapshot, catalog: FaultCatalog, ears: Sequence[TelemetrySource]) -> SilenceResult:
    """Return what the silence of these sources asks for, by the deadlines of the policy."""
    views = {view.name: view for view in situation.nodes}
    ears = [ear for ear in ears if ear.node in views and is_telemetry_expected(situation, views[ear.node])]
    late = [(ear, at) for ear in ears if (at := _find_silent_since(situation, views[ear.node], ear))]
    fresh = [(ear, at) for ear, at in late if not _find_open_fault(views[ear.node], ear.source)]
    waves = tuple(_find_waves(situation, ears, fresh))
    held = {(name, wave.source) for wave in waves for name in wave.nodes}
    alone = [(ear, at) for ear, at in fresh if (ear.node, ear.source) not in held]
    lost = tuple(_make_silence_fault(situation, catalog, views[ear.node], ear, at) for ear, at in alone)
    return SilenceResult(lost, tuple(_find_clearances(situation, ears)), waves)


def is_telemetry_expected(situation: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether a node is to be heard: its state looks at it, and nothing that was begun may have it down."""
    state = situation.policy_state_of(view)
    return bool(state.watch or state.requires) and not view.node_state.unsettled_effects


def silence_deadline(silence: SilenceLimits, source: str) -> timedelta:
    """Return how long a source may stay silent."""
    return timedelta(minutes=silence.agent_minutes if source == "agent" else silence.readings_minutes)


def _find_silent_since(situation: FleetSnapshot, view: NodeSnapshot, ear: TelemetrySource) -> datetime | None:
    """Return when a silence began that is past its deadline. It counts from when the node was to be heard."""
    starts = [ear.since, parse_time(view.node_state.since), parse_time(view.node_state.repaired_at)]
    start = max([*starts, ear.last_heard_at] if ear.last_heard_at else starts)
    return start if situation.now - start > silence_deadline(situation.policy.silence, ear.source) else None


def _find_open_fault(view: NodeSnapshot, source: str) -> FaultRecord | None:
    subject = f"{view.node.subject}/{source}"
    told = (known for known in view.node_state.faults if known.is_open and known.fault_class == TELEMETRY_LOST)
    return next((known for known in told if known.subject == subject), None)


def _find_waves(
    situation: FleetSnapshot, ears: Sequence[TelemetrySource], fresh: Sequence[tuple[TelemetrySource, datetime]]
) -> Iterator[SilenceWave]:
    pools = {view.name: view.node.pool for view in situation.nodes}
    listened: dict[tuple[str, str], int] = defaultdict(int)
    for ear in ears:
        listened[pools[ear.node], ear.source] += 1
    silent: dict[tuple[str, str], list[tuple[TelemetrySource, datetime]]] = defaultdict(list)
    for ear, at in fresh:
        silent[pools[ear.node], ear.source].append((ear, at))
    breaker = situation.policy.breaker
    for (pool, source), found in sorted(silent.items()):
        of = listened[pool, source]
        if len(found) >= breaker.min_nodes and len(found) * 100 >= breaker.percent * of:
            names = tuple(sorted(ear.node for ear, _ in found))
            yield SilenceWave(pool, source, names, of, min(at for _, at in found))


def _make_silence_fault(
    situation: FleetSnapshot, catalog: FaultCatalog, view: NodeSnapshot, ear: TelemetrySource, at: datetime
) -> FaultObservation:
    heard = (
        "was never heard"
        if ear.last_heard_at is None
        else f"was last heard at {ear.last_heard_at:%Y-%m-%d %H:%M:%S} UTC"
    )
    detail = f"{SOURCE_LABELS[ear.source]} {heard}; silent for {format_duration(situation.now - at)}"
    return make_telemetry_fault(catalog, view.node, ear.source, "silence", at, situation.now, detail)


def make_telemetry_fault(
    catalog: FaultCatalog, node: Node, part: str, mark: str, since: datetime, now: datetime, detail: str
) -> FaultObservation:
    """Return the fault that nothing is known of a `part` of a node `since` then; `mark` says by what that was seen."""
    treatment, subject = catalog.find_treatment(TELEMETRY_LOST), f"{node.subject}/{part}"
    return FaultObservation(
        id=derive_id("fault", node.name, TELEMETRY_LOST, subject, mark, format_time(since)),
        node=node.name,
        fault_class=TELEMETRY_LOST,
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


def _find_clearances(situation: FleetSnapshot, ears: Sequence[TelemetrySource]) -> Iterator[FaultClearance]:
    """Yield the ends of silences: the source was heard since, or is no longer expected to speak."""
    heard = {(ear.node, ear.source): ear.last_heard_at for ear in ears}
    for view in situation.nodes:
        for known in view.node_state.faults:
            if known.is_open and "silence" in known.marks:
                source = known.subject.rpartition("/")[2]
                yield from _make_clearance(known, source, heard, (view.name, source))


def _make_clearance(
    known: FaultRecord, source: str, heard: Mapping[tuple[str, str], datetime | None], key: tuple[str, str]
) -> Iterator[FaultClearance]:
    if key not in heard:
        return
    at = heard[key]
    if at and at > parse_time(known.last_seen):
        yield FaultClearance(
            known.id, f"{SOURCE_LABELS.get(source, source)} was heard again at {at:%Y-%m-%d %H:%M:%S} UTC"
        )
