"""The metrics of a fleet as Prometheus' client wants them: the series of each subject, and what collects them all.

What it keeps in memory is a cache: a process that starts anew reads the ledger, and gives the same numbers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import nsmallest
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from threading import Lock

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from assay.act.effects.workflow_queues import count_unfinished_workflows, format_queue_name
from assay.act.ingest.silent_nodes import list_sources, open_last_seen
from assay.act.loop.context import ControllerContext
from assay.act.loop.pass_log import read_passes
from assay.act.loop.projections import read_node_states, read_unknown_jobs
from assay.act.schedules.due_slots import ScheduleHistory, ScheduleLine, compute_due_tasks, list_schedule_lines
from assay.act.schedules.slot_runner import read_schedule_history
from assay.decide.faults.telemetry_silence import is_silent, list_unread, silence_deadline
from assay.decide.moves.replacements import judge_pool
from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout
from assay.decide.state.load_coverage import COVERAGE
from assay.decide.state.node_state import NodeState
from assay.ledger.errors import LedgerError
from assay.ledger.ledger_reader import open_reader_of, read_projection
from assay.ledger.store import Ledger
from assay.model.decision import PERSON_RULE, find_rule_name
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.timestamps import parse_epoch_seconds
from assay.observe.last_seen import ALL_AGENTS
from assay.tell.metrics.families import FAMILIES_BY_NAME, Distribution, Family, Series
from assay.tell.metrics.ledger_counts import LEDGER_COUNTS, CheckCounts, LedgerCounts, count_series, oldest_series
from assay.tell.views.hosts import find_absence_reason, find_customers, judge_health
from assay.tell.views.idle_coverage import list_idle_coverage
from assay.tell.views.next_step import find_waiting_decision

MAX_LISTED_NODES = 500
INVENTORY = "inventory"
PROGRESS = ("waiting", "out", "proven")
NOTHING = "none"
LOG_SUFFIXES = ("", "-wal")
"""An SQLite ledger is a file and its log."""


@frozen
class MetricSource:
    """The fleet at one moment. `states` holds the enrolled nodes of the inventory, by name.

    `pool_names` are the pools of the inventory's nodes, by node. `service_states` are those that customers use.
    `answered` says when each source of a node answered last, as `LastSeen`; `unread` are the nodes that are in service
    and not known. `rollout` is the active one.
    """

    context: ControllerContext
    now: datetime
    states: Mapping[str, NodeState]
    pool_names: Mapping[str, str]
    service_states: frozenset[str]
    answered: Mapping[NodeSource, float]
    unread: Collection[str]
    counts: LedgerCounts
    checks: CheckCounts
    rollout: Rollout | None = None

    @property
    def pools(self) -> list[str]:
        """The pools of the inventory."""
        return list(dict.fromkeys(self.pool_names.values()))

    @property
    def now_s(self) -> float:
        """The fleet's time in seconds since 1970."""
        return self.now.timestamp()


def list_node_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of nodes."""
    states = source.states.values()
    labels = []
    for state in states:
        in_service = str(state.state in source.service_states).lower() if state.node not in source.unread else "unknown"
        labels.append((source.pool_names[state.node], state.state, in_service, find_stay_reason(state)))
    yield from count_series("assay_nodes", labels)
    ages = (((source.pool_names[state.node], state.state), parse_epoch_seconds(state.since)) for state in states)
    yield from oldest_series("assay_state_oldest_age_seconds", ages, source.now_s)
    yield from _list_pending(source)
    holds = [(source.pool_names[state.node], state.hold) for state in states if state.hold]
    yield from count_series("assay_holds", ((pool,) for pool, _ in holds))
    held = (((pool,), parse_epoch_seconds(hold.at)) for pool, hold in holds)
    yield from oldest_series("assay_hold_oldest_age_seconds", held, source.now_s)
    stopped = [source.pool_names[state.node] for state in states if state.is_held_by_breaker]
    yield from count_series("assay_breaker_held_nodes", ((pool,) for pool in stopped))
    opened = {*stopped, *(source.pool_names[state.node] for state in states if state.open_series)}
    yield from (Series("assay_breaker_open", (pool,), float(pool in opened)) for pool in source.pools)
    unknown = read_unknown_jobs(source.context.home).keys() & source.states.keys()
    yield from count_series("assay_jobs_unknown_nodes", ((source.pool_names[name],) for name in unknown))
    yield from count_series("assay_nodes_unread", ((source.pool_names[name],) for name in source.unread))
    yield from _list_nodes_out(source)


def list_capacity_series(source: MetricSource) -> Iterator[Series]:
    """Yield what pools deliver that declare it."""
    for pool, declared in source.context.fleet.capacities.items():
        states = [state for name, state in source.states.items() if source.pool_names[name] == pool]
        standing = judge_pool(source.context.policy, pool, declared, states, source.now)
        spares, not_known = len(standing.spares), sum(state.node in source.unread for state in states)
        counts = {
            "declared": declared.delivered,
            "delivered": standing.delivered - not_known,
            "not_known": not_known,
            "spare": spares,
            "lacking": max(0, standing.wanted - spares),
        }
        yield from (Series("assay_pool_capacity_nodes", (pool, name), count) for name, count in counts.items())


def list_service_series(source: MetricSource) -> Iterator[Series]:
    """Yield what pools have in service, and what is out, as `/capacity` of the API tells it."""
    fleet, customers, left = source.context.fleet, find_customers(source.context.fleet), list[tuple[str, str]]()
    nodes = Counter({(pool, standing): 0 for pool in source.pools for standing in ("delivered", "healthy", "reserved")})
    gpus, read = nodes.copy(), {name for name, channel in source.answered if channel == "probe"}
    for name, state in source.states.items():
        pool = source.pool_names[name]
        if state.state not in source.service_states:
            left.append((pool, find_absence_reason(state, source.service_states)))
            continue
        is_healthy = judge_health(fleet, state, source.unread, read) == "healthy"
        is_reserved = pool in customers or bool(fleet.nodes[name].settings.customer)
        for standing, count in (("delivered", 1), ("healthy", is_healthy), ("reserved", is_reserved)):
            nodes[pool, standing] += count
            gpus[pool, standing] += count * fleet.spec_of(name).gpus.count
    yield from _count("assay_service_nodes", nodes)
    yield from _count("assay_service_gpus", gpus)
    yield from count_series("assay_nodes_out", left)


def list_zeros(source: MetricSource, counted: Iterable[Series]) -> Iterator[Series]:
    """Yield a 0 for each pool of which a `zero` family has nothing, and for each without pools that has nothing."""
    known = {
        (series.family, dict(zip(FAMILIES_BY_NAME[series.family].labels, series.values, strict=True)).get("pool"))
        for series in counted
    }
    for family in [each for each in FAMILIES_BY_NAME.values() if each.zero]:
        number = Distribution((0,) * (len(family.edges) + 1), 0.0) if family.edges else 0
        for pool in source.pools if "pool" in family.labels else [None]:
            if (family.name, pool) not in known:
                yield Series(family.name, tuple((name == "pool" and pool) or NOTHING for name in family.labels), number)


def find_stay_reason(state: NodeState) -> str:
    """Return the name of the rule that brought a node into its state, PERSON_RULE or INVENTORY."""
    if not state.transitions:
        return INVENTORY
    return find_rule_name(state.transitions[-1].rule) or PERSON_RULE


def _list_pending(source: MetricSource) -> Iterator[Series]:
    waits = [
        (source.pool_names[name], waiting, state.pending)
        for name, state in source.states.items()
        if (waiting := find_waiting_decision(state, serves=state.state in source.service_states))
    ]
    yield from count_series(
        "assay_pending_decisions", [(pool, waiting.to, waiting.blocker) for pool, waiting, _ in waits]
    )
    since = (
        ((pool, waiting.blocker), parse_epoch_seconds(pending.since)) for pool, waiting, pending in waits if pending
    )
    yield from oldest_series("assay_pending_oldest_age_seconds", since, source.now_s)


def _list_nodes_out(source: MetricSource) -> Iterator[Series]:
    """Yield the nodes out of service that have been in their state for longest."""
    out = [state for state in source.states.values() if state.state not in source.service_states]
    listed = nsmallest(MAX_LISTED_NODES, out, key=lambda state: state.since)
    for state in listed:
        age_s = max(0.0, source.now_s - parse_epoch_seconds(state.since))
        yield Series("assay_node_state_age_seconds", (state.node, source.pool_names[state.node], state.state), age_s)
    yield Series("assay_nodes_unlisted", (), len(out) - len(listed))


def list_effect_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of effects that have not ended."""
    effects = source.counts.effects.values()
    yield from count_series("assay_effects_open", ((effect.action, effect.status) for effect in effects))
    since = (((effect.action,), effect.begun_s) for effect in effects)
    yield from oldest_series("assay_effect_oldest_age_seconds", since, source.now_s)


def list_fault_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of faults that nothing has cleared."""
    faults = [
        (source.pool_names[state.node], fault)
        for state in source.states.values()
        for fault in state.faults
        if fault.is_open
    ]
    labels = ((pool, fault.fault_class, fault.severity) for pool, fault in faults)
    yield from count_series("assay_faults_open", labels)
    unjudged = Counter[str]()
    for state in source.states.values():
        unjudged[source.pool_names[state.node]] += state.unjudged
    yield from (Series("assay_errors_not_judged", (pool,), count) for pool, count in sorted(unjudged.items()))
    since = (((pool, fault.severity), parse_epoch_seconds(fault.first_seen)) for pool, fault in faults)
    yield from oldest_series("assay_fault_oldest_age_seconds", since, source.now_s)


def list_ticket_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of open tickets."""
    tickets = source.counts.tickets.values()
    yield from count_series("assay_tickets_open", ((ticket.severity,) for ticket in tickets))
    since = (((ticket.severity,), ticket.opened_s) for ticket in tickets)
    yield from oldest_series("assay_ticket_oldest_age_seconds", since, source.now_s)


def list_idle_coverage_series(source: MetricSource) -> Iterator[Series]:
    """Yield how long ago idle verification covered the GPUs in service."""
    covered = read_projection(source.context.ledger, COVERAGE)
    serving = {name: state for name, state in source.states.items() if state.state in source.service_states}
    for own in list_idle_coverage(source.context.fleet, serving, covered, source.now):
        for part in own.parts:
            labels = (own.schedule, own.pool, part.part)
            yield from (Series("assay_idle_coverage_gpus", (*labels, age), count) for age, count in part.gpus.items())
            yield Series("assay_idle_coverage_late_gpus", labels, part.late)


def list_rollout_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of the active rollout; without one, that no node waits for one."""
    rollout = source.rollout
    members = list(rollout.members.values()) if rollout else []
    progress = ["proven" if member.proof else "out" if member.is_ordered_out else "waiting" for member in members]
    yield from (Series("assay_rollout_nodes", (name,), progress.count(name)) for name in PROGRESS)
    if rollout:
        yield Series("assay_rollout_age_seconds", (), max(0.0, source.now_s - parse_epoch_seconds(rollout.started_at)))
    if rollout and (pause := rollout.pause):
        age_s = max(0.0, source.now_s - parse_epoch_seconds(pause.at))
        yield Series("assay_rollout_pause_age_seconds", (pause.rule or PERSON_RULE,), age_s)


def list_build_series() -> Iterator[Series]:
    """Yield what is true without a ledger."""
    yield Series("assay_build_info", (read_version(),), 1)


def list_ledger_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of the fleet's commit and of the ledger."""
    fleet, ledger = source.context.fleet, source.context.ledger
    yield Series("assay_fleet_info", (f"{fleet.commit[:12]}{'-dirty' if fleet.dirty else ''}",), 1)
    head = ledger.head()
    yield Series("assay_ledger_entries_total", (), head)
    yield Series("assay_ledger_read_entries", (), open_reader_of(ledger).seq)
    for entry in ledger.entries(after=head - 1)[:1]:
        yield Series("assay_ledger_last_entry_age_seconds", (), max(0.0, source.now_s - parse_epoch_seconds(entry.at)))
    if ledger.file:
        yield Series("assay_ledger_size_bytes", (), sum(_measure(ledger, suffix) for suffix in LOG_SUFFIXES))


def list_pass_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of the controller's passes, from its file."""
    for stage, totals in sorted(read_passes(source.context.home).items()):
        yield Series("assay_pass_duration_seconds", (stage,), Distribution(totals.buckets, totals.seconds))
        yield Series("assay_pass_cpu_seconds_total", (stage,), totals.cpu_seconds)
        yield Series("assay_pass_failures_total", (stage,), totals.failures)
        yield Series("assay_pass_last_end_age_seconds", (stage,), max(0.0, time.time() - totals.ended_s))


def list_workflow_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of the queues of DBOS: each pool has one, and it may be empty."""
    queues = count_unfinished_workflows(source.context)
    counts = {(queue.queue, queue.status): queue.count for queue in queues}
    waiting = {(format_queue_name(pool), "ENQUEUED"): 0 for pool in source.pools}
    yield from (Series("assay_dbos_workflows", labels, count) for labels, count in sorted((waiting | counts).items()))
    yield from oldest_series(
        "assay_dbos_oldest_workflow_age_seconds", (((queue.queue,), queue.oldest_s) for queue in queues), time.time()
    )


def _measure(ledger: Ledger, suffix: str) -> int:
    """Return the bytes of a file of an SQLite ledger, 0 if it has none of that name."""
    try:
        return Path(f"{ledger.file}{suffix}").stat().st_size
    except FileNotFoundError:
        return 0


def read_version() -> str:
    """Return the version of the installed package, "unknown" if it is not installed."""
    try:
        return version("assay-fleet")
    except PackageNotFoundError:
        return "unknown"


@frozen
class DueTimes:
    """What holds for one line from `computed_at` until its `next_start`: since when a slot is due, None if none is.

    `may_lapse`: after a while it is too late for that slot.
    """

    computed_at: datetime
    next_start: datetime | None
    newest_slot: datetime | None
    due_since: datetime | None
    may_lapse: bool

    def holds(self, now: datetime, newest_slot: datetime | None) -> bool:
        """Whether these times are still right: no slot began, none has lapsed, and the next one is not there."""
        is_before_next = self.next_start is None or now < self.next_start
        is_same = newest_slot == self.newest_slot and not self.may_lapse
        return is_same and self.computed_at <= now and is_before_next


class ScheduleTimes:
    """Computes the times of all schedules; what cron expressions say is kept until it changes."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._lines: list[ScheduleLine] = []
        self._times: dict[tuple[str, str], DueTimes] = {}

    def series(self, source: MetricSource) -> Iterator[Series]:
        """Yield the series of schedules."""
        if self._fleet is not source.context.fleet:
            self._fleet, self._times = source.context.fleet, {}
            self._lines = list(list_schedule_lines(self._fleet))
        history = read_schedule_history(source.context.ledger)
        for line in self._lines:
            labels, times = (line.name, line.target), self._find_times(line, history, source.now)
            if (ended_s := source.counts.slot_ends.get(labels)) is not None:
                yield Series("assay_schedule_last_end_age_seconds", labels, max(0.0, source.now_s - ended_s))
            if times.next_start:
                yield Series(
                    "assay_schedule_next_start_seconds", labels, (times.next_start - source.now).total_seconds()
                )
            late_s = (source.now - times.due_since).total_seconds() if times.due_since else 0.0
            yield Series("assay_schedule_late_seconds", labels, max(0.0, late_s))

    def _find_times(self, line: ScheduleLine, history: ScheduleHistory, now: datetime) -> DueTimes:
        newest = history.get(line).find_newest()
        known = self._times.get((line.name, line.target))
        if known is None or not known.holds(now, newest):
            due = [task for task in compute_due_tasks([line], history, now) if task.attempt == 1]
            since = min((task.slot + line.offset for task in due), default=None)
            may_lapse = since is not None and not line.schedule.catch_up
            known = DueTimes(now, line.find_next_start(now), newest, since, may_lapse)
            self._times[line.name, line.target] = known
        return known


NodeSource = tuple[str, str]
"""A node and one of its sources, as `LastSeen` names them."""
PoolSource = tuple[str, str]


class TelemetrySources:
    """The sources of a fleet's nodes, listed once for each version of the fleet."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._sources: list[tuple[NodeSource, PoolSource]] = []

    def series(self, source: MetricSource) -> Iterator[Series]:
        """Yield the series of agents, probes and BMCs."""
        if self._fleet is not source.context.fleet:
            self._fleet = source.context.fleet
            self._sources = [
                ((node.name, name), (node.pool, name))
                for node in self._fleet.nodes.values()
                for name in list_sources(node)
            ]
        answered, expected = source.answered, list_expected_nodes(source)
        must_answer = [(key, labels) for key, labels in self._sources if key[0] in expected]
        asked = Counter(labels for _, labels in must_answer)
        yield from _count("assay_sources", asked)
        limits, now_s = source.context.policy.silence, source.now_s
        earliest = {labels: now_s - silence_deadline(limits, labels[1]).total_seconds() for labels in asked}
        silent = Counter(
            labels
            for key, labels in must_answer
            if is_silent(answered.get(key, 0.0), source.states[key[0]].since, earliest[labels])
        )
        yield from _count("assay_sources_silent", Counter({labels: silent[labels] for labels in asked}))
        known = ((labels, answered[key]) for key, labels in must_answer if key in answered)
        yield from oldest_series("assay_source_oldest_answer_age_seconds", known, source.now_s)
        yield Series("assay_agent_items_total", (), open_last_seen(source.context).count_received())
        if (listened_s := answered.get(ALL_AGENTS)) is not None:
            yield Series("assay_agents_heard_age_seconds", (), max(0.0, source.now_s - listened_s))


def list_expected_nodes(source: MetricSource) -> set[str]:
    """Return the nodes that must be heard: their state asks for checks, and no effect may have shut them down."""
    states = {name for name, state in source.context.policy.states.items() if state.watch or state.requires}
    return {name for name, state in source.states.items() if state.state in states and not state.unsettled_effects}


def _count(family: str, counts: Counter[PoolSource]) -> Iterator[Series]:
    return (Series(family, labels, count) for labels, count in sorted(counts.items()))


class FleetMetrics(Collector):
    """Collects every family of one fleet; `current` returns the controller's context, with the newest fleet.

    `report` shows a line to people when the ledger cannot be read. One thread collects at a time.
    """

    def __init__(
        self, current: Callable[[], ControllerContext], report: Callable[[str], None] = lambda _: None
    ) -> None:
        self._current, self._report, self._lock = current, report, Lock()
        self._checks, self._schedules, self._telemetry = CheckCounts(), ScheduleTimes(), TelemetrySources()

    def describe(self) -> Iterable[Metric]:
        """Return the families without series, so that registering them reads nothing."""
        return _make_metrics(())

    def collect(self) -> Iterable[Metric]:
        """Return every family with its series now; in the lab, each has the label `context`.

        Without a ledger, `assay_ledger_up` is 0, and most are empty. Raises AssayError if something else cannot be
        read, such as the policy.
        """
        with self._lock:
            metrics = _make_metrics(self._list_series())
        if self._current().fleet.is_lab:
            for metric in metrics:
                metric.samples = [
                    sample._replace(labels={**sample.labels, "context": "lab"}) for sample in metric.samples
                ]
        return metrics

    def _list_series(self) -> list[Series]:
        begun_s, series = time.thread_time(), list(list_build_series())
        try:
            series += self._list_fleet_series()
            series.append(Series("assay_ledger_up", (), 1))
        except LedgerError as error:
            self._report(str(error))
            series = [*list_build_series(), Series("assay_ledger_up", (), 0)]
        return [*series, Series("assay_metrics_collect_cpu_seconds", (), time.thread_time() - begun_s)]

    def _list_fleet_series(self) -> list[Series]:
        context = self._current()
        self._checks.refresh(context.ledger, context.fleet)
        counts = read_projection(context.ledger, LEDGER_COUNTS)
        nodes, states = context.fleet.nodes, read_node_states(context.ledger)
        known = {name: state for name, state in states.items() if name in nodes}
        now, rollout = context.clock.now(), read_projection(context.ledger, ROLLOUTS).find_active()
        pools, service = {name: node.pool for name, node in nodes.items()}, context.policy.states_in_service
        answered = open_last_seen(context).last_answers()
        unread = list_unread(known.values(), context.fleet.policies.values(), answered, now)
        source = MetricSource(context, now, known, pools, service, answered, unread, counts, self._checks, rollout)
        series = chain(
            list_node_series(source),
            list_capacity_series(source),
            list_service_series(source),
            counts.series(),
            list_effect_series(source),
            self._checks.series(context.policy, known.values(), pools, source.now_s),
            list_fault_series(source),
            list_ticket_series(source),
            list_rollout_series(source),
            self._schedules.series(source),
            list_idle_coverage_series(source),
            self._telemetry.series(source),
            list_ledger_series(source),
            list_pass_series(source),
            list_workflow_series(source),
        )
        return [*(counted := list(series)), *list_zeros(source, counted)]


def format_metrics(metrics: FleetMetrics) -> bytes:
    """Return the metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(metrics)
    return generate_latest(registry)


def _make_metrics(series: Iterable[Series]) -> list[Metric]:
    """Return every family in the order of `FAMILIES`, each with its series."""
    by_family = {name: list[Series]() for name in FAMILIES_BY_NAME}
    for item in series:
        by_family[item.family].append(item)
    return [_make_metric(family, by_family[name]) for name, family in FAMILIES_BY_NAME.items()]


def _make_metric(family: Family, series: Iterable[Series]) -> Metric:
    if family.type == "histogram":
        return _make_histogram(family, series)
    kind = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
    metric = kind(family.name, family.help, labels=list(family.labels))
    for item in series:
        assert not isinstance(item.number, Distribution), family.name
        metric.add_metric(item.values, item.number)
    return metric


def _make_histogram(family: Family, series: Iterable[Series]) -> Metric:
    metric = HistogramMetricFamily(family.name, family.help, labels=list(family.labels))
    for item in series:
        assert isinstance(item.number, Distribution), family.name
        metric.add_metric(item.values, list(_list_buckets(family, item.number)), item.number.total)
    return metric


def _list_buckets(family: Family, content: Distribution) -> Iterator[tuple[str, float]]:
    """Yield the buckets by their upper bound, each with all values up to it."""
    so_far = 0
    for edge, count in zip([*map(str, family.edges), "+Inf"], content.counts, strict=True):
        so_far += count
        yield edge, so_far
