"""What is open: effects, faults, tickets, and the active rollout."""

from __future__ import annotations

from collections.abc import Iterator

from assay.decide.rollouts.rollout_history import Rollout, RolloutMember
from assay.model.decision import PERSON_RULE
from assay.model.timestamps import parse_epoch_seconds
from assay.tell.metrics import families
from assay.tell.metrics.family import Series
from assay.tell.metrics.metric_source import MetricSource
from assay.tell.metrics.tally import count_series, oldest_series

PROGRESS = ("waiting", "out", "proven")


def list_effect_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of effects that have not ended."""
    effects = source.counts.effects.values()
    yield from count_series(families.EFFECTS_OPEN, ((one.action, one.status) for one in effects))
    since = (((one.action,), one.begun_s) for one in effects)
    yield from oldest_series(families.EFFECT_OLDEST, since, source.now_s)


def list_fault_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of faults that nothing has cleared and no repair answers."""
    faults = [
        (source.pool_names[state.node], fault)
        for state in source.states.values()
        for fault in state.faults
        if fault.is_open and not state.is_repaired(fault)
    ]
    labels = ((pool, fault.fault_class, fault.severity) for pool, fault in faults)
    yield from count_series(families.FAULTS_OPEN, labels)
    since = (((pool, fault.severity), parse_epoch_seconds(fault.first_seen)) for pool, fault in faults)
    yield from oldest_series(families.FAULT_OLDEST, since, source.now_s)


def list_ticket_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of open tickets."""
    tickets = source.counts.tickets.values()
    yield from count_series(families.TICKETS_OPEN, ((one.severity,) for one in tickets))
    since = (((one.severity,), one.opened_s) for one in tickets)
    yield from oldest_series(families.TICKET_OLDEST, since, source.now_s)


def list_rollout_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of the active rollout; without one, that no node waits for one."""
    rollout = source.rollout
    members = list(rollout.members.values()) if rollout else []
    progress = [_find_progress(member) for member in members]
    yield from (Series(families.ROLLOUT_NODES, (name,), progress.count(name)) for name in PROGRESS)
    if rollout:
        yield from _list_rollout_ages(rollout, source.now_s)


def _list_rollout_ages(rollout: Rollout, now_s: float) -> Iterator[Series]:
    yield Series(families.ROLLOUT_AGE, (), max(0.0, now_s - parse_epoch_seconds(rollout.started_at)))
    if pause := rollout.pause:
        age_s = max(0.0, now_s - parse_epoch_seconds(pause.at))
        yield Series(families.ROLLOUT_PAUSE_AGE, (pause.rule or PERSON_RULE,), age_s)


def _find_progress(member: RolloutMember) -> str:
    if member.proof:
        return "proven"
    return "out" if member.is_ordered_out else "waiting"
