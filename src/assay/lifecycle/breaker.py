"""The breaker: a sudden wave of faults over a pool is more likely one cause than many, and holds the pool's nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from datetime import timedelta

from assay.lifecycle.common import suspects
from assay.lifecycle.limits import is_out, serves
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Known
from assay.lifecycle.when import hours, moment, written

SAMPLE = 64
LIKELIEST = 3


def tripped(situation: Situation) -> dict[str, str]:
    """Return the pools whose breaker is open, each with the reason in one line.

    Counted are nodes that serve, or served until just now, and whose faults could move them: a bring-up of a
    thousand nodes trips nothing, and nor does a pool that is only watched.
    """
    pools: dict[str, list[NodeView]] = defaultdict(list)
    for view in situation.nodes:
        if serves(situation.policy, view.story) or is_out(situation.policy, view.story):
            pools[view.node.pool].append(view)
    return {pool: text for pool, views in sorted(pools.items()) if (text := _wave(situation, pool, views))}


def late(situation: Situation) -> dict[str, str]:
    """Return the pools of which so many nodes miss a deadline at once that it is more likely one cause.

    Such a deadline counts anew from when it was held back: a clock that jumped sends nobody anywhere.
    """
    bound: dict[str, list[NodeView]] = defaultdict(list)
    for view in situation.nodes:
        deadline = situation.state_of(view).deadline
        if deadline and deadline.to:
            bound[view.node.pool].append(view)
    return {pool: text for pool, views in sorted(bound.items()) if (text := _late(situation, pool, views))}


def is_late(situation: Situation, view: NodeView) -> bool:
    """Whether a node has missed the deadline of its state."""
    deadline, story = situation.state_of(view).deadline, view.story
    start = max(moment(story.since), moment(story.spared))
    return deadline is not None and situation.now - start > hours(deadline.hours)


def _late(situation: Situation, pool: str, views: list[NodeView]) -> str:
    breaker, missed = situation.policy.breaker, [view for view in views if is_late(situation, view)]
    if len(missed) < breaker.min_nodes or len(missed) * 100 < breaker.percent * len(views):
        return ""
    states = Counter(view.story.state for view in missed)
    said = ", ".join(f"{state} on {count}" for state, count in sorted(states.items()))
    wave = f"{len(missed)} of {len(views)} nodes of pool {pool} miss their deadline at once ({said})"
    likely = _likely(situation, [view.name for view in missed])
    return f"breaker: {wave}: either the clock jumped, or what they wait for is down{likely}"


def _wave(situation: Situation, pool: str, views: list[NodeView]) -> str:
    breaker = situation.policy.breaker
    hit = {view.name: fresh for view in views if view.profile.acts_on_faults and (fresh := _fresh(situation, view))}
    if len(hit) < breaker.min_nodes:
        return ""
    serving = len(views) + sum(count for (name, *_), count in situation.quiet.items() if name == pool)
    if len(hit) * 100 < breaker.percent * serving:
        return ""
    wave = f"{len(hit)} of {serving} serving nodes of pool {pool} show faults within {breaker.window_minutes:g} min"
    common = _common([view for view in views if view.name in hit], hit.values())
    return f"breaker: {wave} ({common}){_likely(situation, hit)}"


def _likely(situation: Situation, wave: Collection[str]) -> str:
    """Return what the nodes of a wave share and others do not, for the end of the sentence; "" where nothing is known.

    Of the others a sample is asked, the first by name: to tell of one is to read its evidence.
    """
    known = situation.traits
    others = sorted(name for name in known if name not in wave)[:SAMPLE]
    hit = [known[name] for name in sorted(wave) if name in known][:SAMPLE]
    found = suspects(hit, [known[name] for name in others]) if hit else []
    said = "; or ".join(str(one) for one in found[:LIKELIEST])
    return f"; likely behind it: {said}" if said else ""


def _fresh(situation: Situation, view: NodeView) -> list[Known]:
    start = written(situation.now - timedelta(minutes=situation.policy.breaker.window_minutes))
    return [known for known in view.story.faults if known.first_seen > start and known.severity != "informational"]


def _common(views: list[NodeView], faults: Iterable[list[Known]]) -> str:
    """Return what the nodes have in common: the fault that most of them show, and the rack if it is one."""
    classes = Counter(name for known in faults for name in {one.fault_class for one in known})
    name, count = min(classes.items(), key=lambda item: (-item[1], item[0]))
    racks = sorted({view.node.rack for view in views})
    place = f"all in rack {racks[0]}" if len(racks) == 1 else f"in {len(racks)} racks"
    return f"{name} on {count}, {place}"
