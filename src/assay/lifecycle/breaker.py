"""The breaker: a sudden wave of faults over a pool is more likely one cause than many, and holds the pool's nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta

from assay.lifecycle.again import still_failing
from assay.lifecycle.common import suspects
from assay.lifecycle.limits import is_out, serves
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Known
from assay.lifecycle.when import hours, moment, written

SAMPLE = 64
LIKELIEST = 3


@dataclass(frozen=True, slots=True)
class Lasting:
    """A wave that the breaker held and that is not over: of which classes of faults, and the reason in one line."""

    classes: frozenset[str]
    said: str


def tripped(situation: Situation) -> dict[str, str]:
    """Return the pools whose breaker is open, each with the reason in one line.

    Counted are nodes that serve, or served until just now, and whose faults could move them: a bring-up of a
    thousand nodes trips nothing, and nor does a pool that is only watched.
    """
    return {pool: text for pool, views in _pools(situation) if (text := _wave(situation, pool, views))}


def lasting(situation: Situation) -> dict[str, Lasting]:
    """Return the pools in which a wave goes on for longer than the window. It holds back what is part of it only.

    Otherwise a wave would be let through, one limit's worth after the other, because it lasts. What only a log told
    is over as a wave when nothing more comes.
    """
    return {pool: wave for pool, views in _pools(situation) if (wave := _lasting(situation, pool, views))}


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


def _pools(situation: Situation) -> list[tuple[str, list[NodeView]]]:
    """Return the nodes that serve, or served until just now, by pool."""
    pools: dict[str, list[NodeView]] = defaultdict(list)
    for view in situation.nodes:
        if serves(situation.policy, view.story) or is_out(situation.policy, view.story):
            pools[view.node.pool].append(view)
    return sorted(pools.items())


def _lasting(situation: Situation, pool: str, views: list[NodeView]) -> Lasting | None:
    left = {view.name: [known for known in view.story.faults if _left(view, known)] for view in views}
    hit = {view.name: left[view.name] for view in views if view.profile.acts_on_faults and left[view.name]}
    serving = _serving(situation, pool, views)
    if not _is_wave(situation, len(hit), serving):
        return None
    wave = f"{len(hit)} of {serving} serving nodes of pool {pool} still show the faults of a wave"
    common = _common([view for view in views if view.name in hit], hit.values())
    classes = frozenset(known.fault_class for faults in hit.values() for known in faults)
    return Lasting(classes, f"breaker: {wave} ({common}){_likely(situation, hit)}")


def _serving(situation: Situation, pool: str, views: list[NodeView]) -> int:
    return len(views) + sum(count for (name, *_), count in situation.quiet.items() if name == pool)


def _is_wave(situation: Situation, hit: int, serving: int) -> bool:
    breaker = situation.policy.breaker
    return hit >= breaker.min_nodes and hit * 100 >= breaker.percent * serving


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
    serving = _serving(situation, pool, views)
    if not _is_wave(situation, len(hit), serving):
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


def _left(view: NodeView, known: Known) -> bool:
    """Whether a fault that the breaker held is there still, or nobody has looked again where a check can."""
    if not known.open or known.answer != "breaker" or known.last_seen <= view.story.repaired_at:
        return False
    return "check" in known.marks or still_failing(view, known)


def _common(views: list[NodeView], faults: Iterable[list[Known]]) -> str:
    """Return what the nodes have in common: the fault that most of them show, and the rack if it is one."""
    classes = Counter(name for known in faults for name in {one.fault_class for one in known})
    name, count = min(classes.items(), key=lambda item: (-item[1], item[0]))
    racks = sorted({view.node.rack for view in views})
    place = f"all in rack {racks[0]}" if len(racks) == 1 else f"in {len(racks)} racks"
    return f"{name} on {count}, {place}"
