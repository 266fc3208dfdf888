"""Where the nodes are, for how long, what they wait for, and who holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import nsmallest

from assay.act.loop.unknown_jobs import read_unknown_jobs
from assay.decide.moves.held_answers import BREAKER_CAUSE
from assay.decide.moves.pending_decisions import SCHEDULER_SILENT
from assay.decide.state.node_state import NodeState, PendingDecision
from assay.model.decision import HELD_RULE, PERSON_RULE, find_rule_name
from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX
from assay.model.timestamps import parse_epoch_seconds
from assay.tell.metrics import families
from assay.tell.metrics.family import Family, Series
from assay.tell.metrics.metric_source import MetricSource
from assay.tell.metrics.tally import count_series, oldest_series, oldest_series_at

MAX_LISTED_NODES = 500
INVENTORY = "inventory"


def list_node_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of nodes."""
    states = source.states.values()
    yield from count_series(families.NODES, (_label_node(source, state) for state in states))
    ages = (((source.pool_names[one.node], one.state), one.since) for one in states)
    yield from oldest_series_at(families.STATE_OLDEST, ages, source.now_s)
    yield from _list_pending(source)
    holds = [(source.pool_names[one.node], one.hold) for one in states if one.hold]
    yield from _list_by_pool(source, families.HOLDS, [pool for pool, _ in holds])
    held = (((pool,), parse_epoch_seconds(hold.at)) for pool, hold in holds)
    yield from oldest_series(families.HOLD_OLDEST, held, source.now_s)
    stopped = [source.pool_names[one.node] for one in states if one.is_held_by_breaker]
    yield from _list_by_pool(source, families.BREAKER_NODES, stopped)
    yield from (Series(families.BREAKER_OPEN, (pool,), float(pool in stopped)) for pool in source.pools)
    unknown = read_unknown_jobs(source.context.home).keys() & source.states.keys()
    yield from _list_by_pool(source, families.JOBS_UNKNOWN, [source.pool_names[name] for name in unknown])
    yield from _list_nodes_out(source)


def _label_node(source: MetricSource, state: NodeState) -> tuple[str, ...]:
    in_service = "true" if state.state in source.service_states else "false"
    return source.pool_names[state.node], state.state, in_service, find_stay_reason(state)


def find_stay_reason(state: NodeState) -> str:
    """Return the name of the rule that brought a node into its state, PERSON_RULE or INVENTORY."""
    if not state.transitions:
        return INVENTORY
    return find_rule_name(state.transitions[-1].rule) or PERSON_RULE


def _list_pending(source: MetricSource) -> Iterator[Series]:
    waiting = [
        (source.pool_names[state.node], find_blocker(state.pending), state.pending)
        for state in source.states.values()
        if state.pending
    ]
    yield from count_series(families.PENDING, ((pool, pending.to, blocker) for pool, blocker, pending in waiting))
    since = (((pool, blocker), parse_epoch_seconds(pending.since)) for pool, blocker, pending in waiting)
    yield from oldest_series(families.PENDING_OLDEST, since, source.now_s)


def find_blocker(pending: PendingDecision) -> str:
    """Return the kind of what a pending decision waits for; its blockers may be names of jobs."""
    if pending.rule_name.startswith(RACK_RULE_PREFIX):
        return "rack"
    if pending.rule_name == HELD_RULE:
        stops = any(cause.kind == BREAKER_CAUSE and cause.text in pending.blockers for cause in pending.because)
        return "breaker" if stops else "limits"
    if not pending.blockers:
        return "turn"
    return "scheduler" if pending.blockers == SCHEDULER_SILENT else "jobs"


def _list_by_pool(source: MetricSource, family: Family, pools: Iterable[str]) -> Iterator[Series]:
    """Yield one series for each pool of the inventory, 0 where `pools` does not have it."""
    counts = Counter(pools)
    return (Series(family, (pool,), counts[pool]) for pool in source.pools)


def _list_nodes_out(source: MetricSource) -> Iterator[Series]:
    """Yield the nodes out of service that have been in their state for longest."""
    out = [state for state in source.states.values() if state.state not in source.service_states]
    listed = nsmallest(MAX_LISTED_NODES, out, key=lambda one: one.since)
    for state in listed:
        age_s = max(0.0, source.now_s - parse_epoch_seconds(state.since))
        yield Series(families.NODE_STATE_AGE, (state.node, source.pool_names[state.node], state.state), age_s)
    yield Series(families.NODES_UNLISTED, (), len(out) - len(listed))
