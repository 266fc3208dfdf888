"""The breaker: a sudden wave of faults over a pool is more likely one cause than many, and holds the pool's nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta

from assay.lifecycle.decisions.blast_radius_limits import is_in_service, is_out_of_service
from assay.lifecycle.decisions.common_cause import rank_common_causes
from assay.lifecycle.decisions.fault_remedies import is_still_failing
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import FaultRecord
from assay.model.timestamps import format_time, hours, parse_time

MAX_NODES_COMPARED = 64
MAX_CAUSES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class OngoingWave:
    """A wave that the breaker held and that is not over: of which classes of faults, and the reason in one line."""

    classes: frozenset[str]
    reason: str


def find_new_waves(situation: FleetSnapshot) -> dict[str, str]:
    """Return the pools whose breaker is open, each with the reason in one line.

    Counted are nodes that serve, or served until just now, and whose faults could move them: a bring-up of a
    thousand nodes trips nothing, and nor does a pool that is only watched.
    """
    return {
        pool: text
        for pool, views in _group_serving_by_pool(situation)
        if (text := _describe_new_wave(situation, pool, views))
    }


def find_ongoing_waves(situation: FleetSnapshot) -> dict[str, OngoingWave]:
    """Return the pools in which a wave goes on for longer than the window. It holds back what is part of it only.

    Otherwise a wave would be let through, one limit's worth after the other, because it lasts. What only a log told
    is over as a wave when nothing more comes.
    """
    return {
        pool: wave
        for pool, views in _group_serving_by_pool(situation)
        if (wave := _find_ongoing_wave(situation, pool, views))
    }


def find_deadline_waves(situation: FleetSnapshot) -> dict[str, str]:
    """Return the pools of which so many nodes miss a deadline at once that it is more likely one cause.

    Such a deadline counts anew from when it was held back: a clock that jumped sends nobody anywhere.
    """
    bound: dict[str, list[NodeSnapshot]] = defaultdict(list)
    for view in situation.nodes:
        deadline = situation.policy_state_of(view).deadline
        if deadline and deadline.to:
            bound[view.node.pool].append(view)
    return {
        pool: text for pool, views in sorted(bound.items()) if (text := _describe_deadline_wave(situation, pool, views))
    }


def has_missed_deadline(situation: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether a node has missed the deadline of its state."""
    deadline, story = situation.policy_state_of(view).deadline, view.node_state
    start = max(parse_time(story.since), parse_time(story.deadline_held_at))
    return deadline is not None and situation.now - start > hours(deadline.hours)


def _group_serving_by_pool(situation: FleetSnapshot) -> list[tuple[str, list[NodeSnapshot]]]:
    """Return the nodes that serve, or served until just now, by pool."""
    pools: dict[str, list[NodeSnapshot]] = defaultdict(list)
    for view in situation.nodes:
        if is_in_service(situation.policy, view.node_state) or is_out_of_service(situation.policy, view.node_state):
            pools[view.node.pool].append(view)
    return sorted(pools.items())


def _find_ongoing_wave(situation: FleetSnapshot, pool: str, views: list[NodeSnapshot]) -> OngoingWave | None:
    left = {view.name: [known for known in view.node_state.faults if _is_still_present(view, known)] for view in views}
    hit = {view.name: left[view.name] for view in views if view.profile.acts_on_faults and left[view.name]}
    serving = _count_serving(situation, pool, views)
    if not _is_wave(situation, len(hit), serving):
        return None
    wave = f"{len(hit)} of {serving} serving nodes of pool {pool} still show the faults of a wave"
    common = _describe_faults_and_racks([view for view in views if view.name in hit], hit.values())
    classes = frozenset(known.fault_class for faults in hit.values() for known in faults)
    return OngoingWave(classes, f"breaker: {wave} ({common}){_describe_likely_causes(situation, hit)}")


def _count_serving(situation: FleetSnapshot, pool: str, views: list[NodeSnapshot]) -> int:
    return len(views) + sum(count for (name, *_), count in situation.quiet_counts.items() if name == pool)


def _is_wave(situation: FleetSnapshot, hit: int, serving: int) -> bool:
    breaker = situation.policy.breaker
    return hit >= breaker.min_nodes and hit * 100 >= breaker.percent * serving


def _describe_deadline_wave(situation: FleetSnapshot, pool: str, views: list[NodeSnapshot]) -> str:
    breaker, missed = situation.policy.breaker, [view for view in views if has_missed_deadline(situation, view)]
    if len(missed) < breaker.min_nodes or len(missed) * 100 < breaker.percent * len(views):
        return ""
    states = Counter(view.node_state.state for view in missed)
    said = ", ".join(f"{state} on {count}" for state, count in sorted(states.items()))
    wave = f"{len(missed)} of {len(views)} nodes of pool {pool} miss their deadline at once ({said})"
    likely = _describe_likely_causes(situation, [view.name for view in missed])
    return f"breaker: {wave}: either the clock jumped, or what they wait for is down{likely}"


def _describe_new_wave(situation: FleetSnapshot, pool: str, views: list[NodeSnapshot]) -> str:
    breaker = situation.policy.breaker
    hit = {
        view.name: fresh
        for view in views
        if view.profile.acts_on_faults and (fresh := _find_recent_faults(situation, view))
    }
    serving = _count_serving(situation, pool, views)
    if not _is_wave(situation, len(hit), serving):
        return ""
    wave = f"{len(hit)} of {serving} serving nodes of pool {pool} show faults within {breaker.window_minutes:g} min"
    common = _describe_faults_and_racks([view for view in views if view.name in hit], hit.values())
    return f"breaker: {wave} ({common}){_describe_likely_causes(situation, hit)}"


def _describe_likely_causes(situation: FleetSnapshot, wave: Collection[str]) -> str:
    """Return what the nodes of a wave share and others do not, for the end of the sentence; "" where nothing is known.

    Of the others a sample is asked, the first by name: to tell of one is to read its evidence.
    """
    known = situation.traits
    others = sorted(name for name in known if name not in wave)[:MAX_NODES_COMPARED]
    hit = [known[name] for name in sorted(wave) if name in known][:MAX_NODES_COMPARED]
    found = rank_common_causes(hit, [known[name] for name in others]) if hit else []
    said = "; or ".join(str(one) for one in found[:MAX_CAUSES_SHOWN])
    return f"; likely behind it: {said}" if said else ""


def _find_recent_faults(situation: FleetSnapshot, view: NodeSnapshot) -> list[FaultRecord]:
    start = format_time(situation.now - timedelta(minutes=situation.policy.breaker.window_minutes))
    return [known for known in view.node_state.faults if known.first_seen > start and known.severity != "informational"]


def _is_still_present(view: NodeSnapshot, known: FaultRecord) -> bool:
    """Whether a fault that the breaker held is there still, or nobody has looked again where a check can."""
    if not known.is_open or known.response != "breaker" or known.last_seen <= view.node_state.repaired_at:
        return False
    return "check" in known.marks or is_still_failing(view, known)


def _describe_faults_and_racks(views: list[NodeSnapshot], faults: Iterable[list[FaultRecord]]) -> str:
    """Return what the nodes have in common: the fault that most of them show, and the rack if it is one."""
    classes = Counter(name for known in faults for name in {one.fault_class for one in known})
    name, count = min(classes.items(), key=lambda item: (-item[1], item[0]))
    racks = sorted({view.node.rack for view in views})
    place = f"all in rack {racks[0]}" if len(racks) == 1 else f"in {len(racks)} racks"
    return f"{name} on {count}, {place}"
