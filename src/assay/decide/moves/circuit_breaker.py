"""The circuit breaker. If many nodes of a pool fail at once, it holds back the moves of the whole pool.

One common cause is then more likely than many separate ones. The module also finds waves of missed deadlines, and ranks
what the nodes of a wave have in common. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import product
from math import ceil, sqrt

from assay.decide.moves.blast_radius_limits import is_in_service, is_out_of_service
from assay.decide.moves.fault_remedies import is_still_failing
from assay.decide.state.fault_weeks import WEEK, ClassHistory
from assay.decide.state.fleet_snapshot import COMMIT, SWITCH_TRAY, FleetSnapshot, NodeSnapshot, NodeTrait, NodeTraits
from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultRecord
from assay.model.specs.policy_sections import FaultBreakerLimits, FaultClassWave
from assay.model.timestamps import format_time, hours, parse_time

MAX_NODES_COMPARED = 64
MAX_CAUSES_SHOWN = 3
MAX_NAMES_SHOWN = 3
MIN_WAVE_SHARE = 0.8
"""Of a wave's nodes, at least this share has a trait that may be its cause …"""
MIN_CONTRAST = 2
"""… and that share is at least this many times the share among the other nodes."""
TRAIT_ORDER = (COMMIT, SWITCH_TRAY, "leaf", "rack", "batch", "spec commit", "driver", "firmware", "part")
"""The order of trait kinds that are equally likely; other kinds come after them."""


@frozen
class OngoingWave:
    """A wave that goes on: the fault classes in it, and the reason in one line.

    A series has a name, and is of these `nodes`; without any, it is of the whole pool.
    """

    classes: frozenset[str]
    reason: str
    series: str = ""
    nodes: frozenset[str] = frozenset()


RATE_SAYS = "; asked by "
"""After this, the reason of a series says which rate made it one."""


@frozen
class SeriesRate:
    """From how many nodes on a fault class is a series: by the policy, or by the pool's own history."""

    window: FaultClassWave
    history: ClassHistory

    def count_least(self, size: int) -> int:
        """Return the least number of the nodes of a group of this size. Chance is that of single, unlike faults."""
        most, learnt = self.window.percent * size / 100, self.window.learnt
        if learnt and self.history.weeks >= learnt.weeks:
            usual = size * (self.history.nodes + 1) / self.history.node_weeks * (hours(self.window.hours) / WEEK)
            most = min(most, (sqrt(usual) + learnt.deviations / 2) ** 2)
        return max(self.window.min_nodes, ceil(most))

    def describe(self, size: int) -> str:
        """Return which rate it is, and from how many node-weeks."""
        stated, least, learnt = f"the policy's {self.window.percent:g} %", self.count_least(size), self.window.learnt
        nodes, node_weeks, weeks = self.history
        if learnt is None:
            return stated
        if weeks < learnt.weeks:
            return f"{stated}, as {node_weeks:,} node-weeks of the pool's own history ({weeks} weeks) teach no rate yet"
        history = f"{nodes} nodes had it in {node_weeks:,} node-weeks of the pool's own history"
        if least * 100 >= self.window.percent * size:
            return f"{stated}, the most that history may teach: {history}"
        return f"the learnt rate, {least} of {size} nodes: {history}"


def find_new_waves(snapshot: FleetSnapshot) -> dict[str, str]:
    """Return the pools whose breaker is open, each with the reason in one line.

    Only nodes count that serve, or served until just now, and whose faults can move them. So the bring-up of a thousand
    nodes does not open the breaker, and neither does a pool that assay only watches.
    """
    pools = {pool: _describe_new_wave(snapshot, pool, views) for pool, views in _group_serving_by_pool(snapshot)}
    return {pool: reason for pool, reason in pools.items() if reason}


def find_ongoing_waves(snapshot: FleetSnapshot) -> dict[str, OngoingWave]:
    """Return the pools in which a wave lasts longer than the window. Such a wave holds back only its own fault classes.

    Without this, a lasting wave would pass the breaker: as many nodes at a time as the limits allow. A fault that only
    a log reported stops being part of the wave when the log reports nothing more.
    """
    pools = {pool: _find_ongoing_wave(snapshot, pool, views) for pool, views in _group_serving_by_pool(snapshot)}
    return {pool: wave for pool, wave in pools.items() if wave}


def find_series(snapshot: FleetSnapshot) -> dict[str, list[OngoingWave]]:
    """Return the series in each pool: one fault class came to many nodes within hours or days.

    A series holds back only its class: a driver's bug shows on a few nodes an hour, and on all in a week. It is of the
    whole pool, or of the nodes that have a rack, a firmware or another trait in common. A fault that ended without a
    repair does not count, unless the series held it back. A series is open until a person answers. Its reason says
    by which rate it is one.
    """
    pools = {pool: list(_find_series(snapshot, pool, views)) for pool, views in _group_serving_by_pool(snapshot)}
    return {pool: waves for pool, waves in pools.items() if waves}


def find_deadline_waves(snapshot: FleetSnapshot) -> dict[str, str]:
    """Return the pools in which so many nodes miss a deadline at once that one cause is more likely.

    A deadline counts from the time when the breaker last held it back. So a clock that jumps moves no node.
    """
    bound: dict[str, list[NodeSnapshot]] = defaultdict(list)
    for view in snapshot.nodes:
        deadline = snapshot.policy_state_of(view).deadline
        if deadline and deadline.to:
            bound[view.node.pool].append(view)
    pools = {pool: _describe_deadline_wave(snapshot, pool, views) for pool, views in sorted(bound.items())}
    return {pool: reason for pool, reason in pools.items() if reason}


def has_missed_deadline(snapshot: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether a node has missed the deadline of its state."""
    deadline, node_state = snapshot.policy_state_of(view).deadline, view.node_state
    start = max(parse_time(node_state.since), parse_time(node_state.deadline_held_at))
    return deadline is not None and snapshot.now - start > hours(deadline.hours)


def is_wave(breaker: FaultBreakerLimits | FaultClassWave, count: int, total: int) -> bool:
    """Whether `count` of `total` nodes are enough for a wave."""
    return count >= breaker.min_nodes and count * 100 >= breaker.percent * total


def can_be_wave(breaker: FaultBreakerLimits, fault_class: str, severity: str) -> bool:
    """Whether a fault counts for the breaker. Declared drift does not: a merged change causes it on all nodes."""
    return severity != "informational" and fault_class not in breaker.drift


def _group_serving_by_pool(snapshot: FleetSnapshot) -> list[tuple[str, list[NodeSnapshot]]]:
    """Return the nodes that serve, or served until just now, by pool."""
    pools: dict[str, list[NodeSnapshot]] = defaultdict(list)
    for view in snapshot.nodes:
        if is_in_service(snapshot.policy, view.node_state) or is_out_of_service(snapshot.policy, view.node_state):
            pools[view.node.pool].append(view)
    return sorted(pools.items())


def _count_serving(snapshot: FleetSnapshot, pool: str, views: list[NodeSnapshot]) -> int:
    return len(views) + sum(count for (name, *_), count in snapshot.quiet_counts.items() if name == pool)


def _describe_new_wave(snapshot: FleetSnapshot, pool: str, views: list[NodeSnapshot]) -> str:
    breaker, hit = snapshot.policy.breaker, dict[str, list[FaultRecord]]()
    start = format_time(snapshot.now - timedelta(minutes=breaker.window_minutes))
    for view in views:
        recent = [fault for fault in _list_counting(snapshot, view) if fault.arrived_at > start]
        if recent:
            hit[view.name] = recent
    serving = _count_serving(snapshot, pool, views)
    if not is_wave(breaker, len(hit), serving):
        return ""
    wave = f"{len(hit)} of {serving} serving nodes of pool {pool} show faults within {breaker.window_minutes:g} min"
    return f"breaker: {wave} {_describe_common(snapshot, views, hit)}"


def _list_counting(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[FaultRecord]:
    """Return the faults of a node that count for the breaker, whenever they arrived."""
    if not view.profile.acts_on_faults:
        return []
    breaker = snapshot.policy.breaker
    faults = (fault for fault in view.node_state.faults if not fault.no_wave)
    return [fault for fault in faults if can_be_wave(breaker, fault.fault_class, fault.severity)]


def _find_series(snapshot: FleetSnapshot, pool: str, views: list[NodeSnapshot]) -> Iterator[OngoingWave]:
    known = frozenset[str]().union(*(view.node_state.open_series for view in snapshot.nodes))
    serving, shown = _count_serving(snapshot, pool, views), defaultdict[str, list[tuple[str, FaultRecord]]](list)
    for view in views:
        for fault in _list_counting(snapshot, view):
            shown[fault.fault_class].append((view.name, fault))
    windows = sorted(snapshot.policy.breaker.by_class, key=lambda window: -window.hours)
    states = [state for state, spec in snapshot.policy.states.items() if spec.in_service]
    for (name, faults), window in product(sorted(shown.items()), windows):
        start = format_time(snapshot.now - hours(window.hours))
        hit = {
            node: fault
            for node, fault in reversed(faults)
            if fault.open_series or (fault.arrived_at > start and (fault.is_open or fault.response == "acted"))
        }
        members = {node for node, fault in hit.items() if fault.open_series}
        groups = [("", frozenset(hit), serving), *_list_alike(snapshot, pool, hit, serving, window.min_nodes)]
        until = snapshot.now - hours(window.hours)
        rate = SeriesRate(window, snapshot.fault_weeks.find_history(pool, name, states, until))
        for trait, nodes, size in groups:
            series, fresh = f"{pool}/{name}{trait}", nodes - members if trait else nodes
            if series in known or len(fresh) >= rate.count_least(size):
                first = parse_time(min((hit[node].arrived_at for node in nodes), default=start))
                within = max(window.hours, ceil((snapshot.now - first) / hours(1)))
                least = "at least " if within > window.hours else ""  # what was repaired before counts for the window
                text = f"breaker: {least}{len(nodes)} of {serving} serving nodes of pool {pool} showed {name}"
                alike = f", all of {trait[1:]}" if trait else _describe_likely_causes(snapshot, nodes)
                reason = f"{text} within {within:g} h{alike}{RATE_SAYS}{rate.describe(size)}"
                of_nodes = nodes if trait else frozenset[str]()
                yield OngoingWave(frozenset({name}), reason, series, of_nodes)


def _list_alike(
    snapshot: FleetSnapshot, pool: str, hit: Collection[str], serving: int, least: int
) -> list[tuple[str, frozenset[str], int]]:
    """Return each trait of some of the nodes: those nodes, and how many of the pool have it, by a sample of the others.

    First comes what most of them share, and of several traits, what the fewest others have.
    """
    if len(hit) < least:
        return []
    traits, groups = snapshot.traits, defaultdict[NodeTrait, set[str]](set)
    names = sorted(name for name in traits if snapshot.pools.get(name) == pool and name not in hit)
    others = [traits[name] for name in names[:: max(1, len(names) // MAX_NODES_COMPARED)]]
    elsewhere, each_stands_for = _count_traits(others), (serving - len(hit)) / max(1, len(others))
    for name in hit:
        for trait in traits.get(name, ()):
            groups[trait].add(name)
    sizes = {trait: len(nodes) + round(elsewhere[trait] * each_stands_for) for trait, nodes in groups.items()}
    ranked = sorted(groups, key=lambda trait: (-len(groups[trait]), sizes[trait], trait))
    return [(f"/{' '.join(trait)}", frozenset(groups[trait]), sizes[trait]) for trait in ranked]


def _find_ongoing_wave(snapshot: FleetSnapshot, pool: str, views: list[NodeSnapshot]) -> OngoingWave | None:
    hit: dict[str, list[FaultRecord]] = {}
    for view in views:
        present = [fault for fault in view.node_state.faults if _is_still_present(view, fault)]
        if present and view.profile.acts_on_faults:
            hit[view.name] = present
    serving = _count_serving(snapshot, pool, views)
    if not is_wave(snapshot.policy.breaker, len(hit), serving):
        return None
    wave = f"{len(hit)} of {serving} serving nodes of pool {pool} still show the faults of a wave"
    classes = frozenset(fault.fault_class for faults in hit.values() for fault in faults)
    return OngoingWave(classes, f"breaker: {wave} {_describe_common(snapshot, views, hit)}")


def _is_still_present(view: NodeSnapshot, fault: FaultRecord) -> bool:
    """Whether a fault that the breaker held still exists. A check's fault does until newer evidence is judged."""
    if not fault.is_open or not fault.is_held_by_wave or fault.no_wave or view.node_state.is_repaired(fault):
        return False
    return "check" in fault.marks or is_still_failing(view, fault)


def _describe_deadline_wave(snapshot: FleetSnapshot, pool: str, views: list[NodeSnapshot]) -> str:
    late = (view for view in views if has_missed_deadline(snapshot, view))
    missed = [view for view in late if not view.node_state.is_deadline_free]
    if not is_wave(snapshot.policy.breaker, len(missed), len(views)):
        return ""
    states = Counter(view.node_state.state for view in missed)
    counts = ", ".join(f"{state} on {count}" for state, count in sorted(states.items()))
    wave = f"{len(missed)} of {len(views)} nodes of pool {pool} miss their deadline at once ({counts})"
    likely = _describe_likely_causes(snapshot, [view.name for view in missed])
    return f"breaker: {wave}: either the clock jumped, or what they wait for is down{likely}"


def _describe_common(snapshot: FleetSnapshot, views: list[NodeSnapshot], hit: Mapping[str, list[FaultRecord]]) -> str:
    """Return what the nodes have in common: the fault that most show, the rack if all are in one, and likely causes.

    Where no fault is on most of them, say that they have none in common: nobody should look for one cause.
    """
    classes = Counter(name for of_node in hit.values() for name in {fault.fault_class for fault in of_node})
    name, count = min(classes.items(), key=lambda item: (-item[1], item[0]))
    racks = sorted({view.node.rack for view in views if view.name in hit})
    place = f"all in rack {racks[0]}" if len(racks) == 1 else f"in {len(racks)} racks"
    if count < MIN_WAVE_SHARE * len(hit):
        return f"({len(classes)} kinds of fault, none on most of them: {name} on {count}, {place})"
    return f"({name} on {count}, {place}){_describe_likely_causes(snapshot, hit)}"


def _describe_likely_causes(snapshot: FleetSnapshot, wave: Collection[str]) -> str:
    """Return what only the nodes of a wave share, as the end of a sentence; "" if nothing is known."""
    likely = describe_shared_traits(snapshot.traits, wave)
    return f"; likely behind it: {likely}" if likely else ""


def describe_shared_traits(traits: Mapping[str, NodeTraits], wave: Collection[str]) -> str:
    """Return what only these nodes share; "" if nothing is known.

    Reading traits means reading evidence, which is slow. So this compares only the first nodes by name.
    """
    others = sorted(traits.keys() - set(wave))[:MAX_NODES_COMPARED]
    hit = [traits[name] for name in sorted(wave) if name in traits][:MAX_NODES_COMPARED]
    causes = rank_common_causes(hit, [traits[name] for name in others]) if hit else []
    return "; or ".join(str(cause) for cause in causes[:MAX_CAUSES_SHOWN])


@frozen
class CommonCause:
    """Traits of one kind that the same number of nodes have, in the wave and among the other nodes."""

    kind: str
    names: tuple[str, ...]
    wave_hits: int
    wave_size: int
    other_hits: int
    others: int

    def __str__(self) -> str:
        more = f" and {len(self.names) - MAX_NAMES_SHOWN} more" if len(self.names) > MAX_NAMES_SHOWN else ""
        names = f"{', '.join(self.names[:MAX_NAMES_SHOWN])}{more}"
        rest = f", and {self.other_hits} of the {self.others} others" if self.others else ""
        return f"{self.kind} {names} ({self.wave_hits} of {self.wave_size}{rest})"


def rank_common_causes(wave: Sequence[NodeTraits], others: Sequence[NodeTraits]) -> list[CommonCause]:
    """Return the traits that may have caused a wave, the likeliest first.

    See `MIN_WAVE_SHARE` and `MIN_CONTRAST`. Without other nodes to compare with, a trait qualifies if the whole wave
    shares it.
    """
    wave_counts, other_counts = _count_traits(wave), _count_traits(others)
    groups: dict[tuple[str, int, int], list[str]] = defaultdict(list)
    for (kind, name), count in wave_counts.items():
        elsewhere = other_counts[kind, name]
        share, other_share = count / len(wave), elsewhere / len(others) if others else 0.0
        if share >= (MIN_WAVE_SHARE if others else 1) and share >= MIN_CONTRAST * other_share:
            groups[kind, count, elsewhere].append(name)
    causes = [
        CommonCause(kind, tuple(sorted(names)), count, len(wave), elsewhere, len(others))
        for (kind, count, elsewhere), names in groups.items()
    ]
    return sorted(causes, key=_likelihood_key)


def _count_traits(nodes: Iterable[NodeTraits]) -> Counter[NodeTrait]:
    return Counter(trait for traits in nodes for trait in traits)


def _likelihood_key(cause: CommonCause) -> tuple[float, int, str]:
    contrast = cause.wave_hits / cause.wave_size - (cause.other_hits / cause.others if cause.others else 0)
    order = TRAIT_ORDER.index(cause.kind) if cause.kind in TRAIT_ORDER else len(TRAIT_ORDER)
    return (-contrast, order, cause.kind)
