"""What happens next to every node: a pure function of the situation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from assay.lifecycle import breaker, faulted, racks
from assay.lifecycle.by_hand import asked_for
from assay.lifecycle.excused import as_it_counts, noted
from assay.lifecycle.holding import holding
from assay.lifecycle.limits import Room, takes_out
from assay.lifecycle.opened import opened
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.verdicts import Wish, decided, held_back
from assay.lifecycle.waiting import NO_ANSWER, gone_cause, waiting
from assay.lifecycle.ways import ways
from assay.model.decision import Cause, Decision
from assay.model.errors import Trouble
from assay.model.policy import BY_PERSON, OF_RACK


def decide(situation: Situation, asked: Collection[str] | None = None) -> list[Decision]:
    """Return what is to be decided now and was not decided before, at most one move a node.

    `asked` are the nodes to decide about, all by default; the others are only counted.

    The worst faults come first where limits leave room for some nodes only. Neither the order of the nodes nor that
    of their outcomes changes the answer. Raises Trouble for a node in a state that the policy does not have.
    """
    for view in situation.nodes:
        _refuse_an_unknown_state(situation, view)
    situation = as_it_counts(situation)
    bounds = _Bounds(situation)
    answer: list[Decision] = []
    views = situation.nodes if asked is None else [view for view in situation.nodes if view.name in asked]
    for view in sorted(views, key=faulted.urgency):
        made = _of_node(situation, view, bounds)
        answer += [decision for decision in made if decision.id not in view.story.decided]
    return answer


class _Bounds:
    """What bounds a pass: room, pools with a wave of faults or of missed deadlines, and racks that lack nodes.

    Each is counted over the fleet when a wish first asks for it: most passes wish for no move.
    """

    def __init__(self, situation: Situation) -> None:
        self._situation = situation

    @cached_property
    def room(self) -> Room:
        """What the limits still leave."""
        return Room(self._situation)

    @cached_property
    def waves(self) -> Mapping[str, str]:
        """The pools with a wave of faults."""
        return breaker.tripped(self._situation)

    @cached_property
    def lasting(self) -> Mapping[str, breaker.Lasting]:
        """The pools in which a wave goes on."""
        return breaker.lasting(self._situation)

    @cached_property
    def late(self) -> Mapping[str, str]:
        """The pools with a wave of missed deadlines."""
        return breaker.late(self._situation)

    @cached_property
    def short(self) -> Mapping[racks.Rack, racks.Short]:
        """The racks that lack nodes."""
        return racks.short_racks(self._situation)


def _of_node(situation: Situation, view: NodeView, bounds: _Bounds) -> Iterator[Decision]:
    """Yield the records, and the first wish of a move that is granted or was held back.

    A move that is held back stands in the way of all others but that of a whole rack. It does not where a person
    asked for it, nor where the profile lets no fault move the node at all.
    """
    held = False
    for wish in _wishes(situation, view, bounds.short.get(racks.rack_of(view.node))):
        if wish.timing == "record":
            yield _granted(situation, view, wish)
            continue
        wish_now, blockers = _in_time(view, wish)
        if _is_waiting_already(view, wish_now) or (held and not wish.name.startswith(OF_RACK)):
            continue
        made = _gated(situation, view, wish_now, blockers, bounds)
        yield made
        if made.timing != "record":
            return
        held = wish.name != BY_PERSON and (not wish.takes_out or view.profile.acts_on_faults)


def _wishes(situation: Situation, view: NodeView, short: racks.Short | None) -> Iterator[Wish]:
    """Yield what should happen to a node. What has lost its cause is withdrawn, and wishes nothing on the way."""
    yield from noted(situation, view)
    yield from holding(situation, view)
    yield from waiting(situation, view, short)
    if gone_cause(situation.policy, view.story, short):
        view = replace(view, story=replace(view.story, pending=None))
    yield from asked_for(situation, view)
    yield from faulted.wishes(situation, view)
    yield from ways(situation, view)
    yield from racks.cordoned_with_its_rack(situation.policy, view, short)
    yield from opened(situation, view)


def _gated(situation: Situation, view: NodeView, wish: Wish, blockers: tuple[str, ...], bounds: _Bounds) -> Decision:
    """Return the decision for a move, or the record of what stands in its way."""
    if why := _forbidden(situation, view, wish) or _bounded(view, wish, bounds):
        return held_back(situation, view, wish, why)
    reaches = _reaches(situation, view, wish)
    if reaches and (refusal := bounds.room.refusal(view, reaches)):
        return held_back(situation, view, wish, Cause("limit", f"{refusal.limit}/{refusal.where}", refusal.text))
    if reaches:
        bounds.room.take(view, reaches)
    return decided(situation, view, wish, blockers)


def _bounded(view: NodeView, wish: Wish, bounds: _Bounds) -> Cause | None:
    """Return what holds a whole pool back: a wave of faults, one of missed deadlines, or too many racks cordoned."""
    pool = view.node.pool
    wave = (wish.takes_out and _wave(view, wish, bounds)) or (wish.late and bounds.late.get(pool))
    if wave:
        return Cause("breaker", pool, wave)
    short = bounds.short.get(racks.rack_of(view.node)) if wish.name.startswith(OF_RACK) else None
    return Cause("limit", f"{wish.name}/{pool}", short.full) if short and short.full else None


def _wave(view: NodeView, wish: Wish, bounds: _Bounds) -> str:
    """Return the wave that holds back what faults wish for: a new one everything, one that lasts only what is of it."""
    if wave := bounds.waves.get(view.node.pool):
        return wave
    lasting, cited = bounds.lasting.get(view.node.pool), {cause.id for cause in wish.because if cause.kind == "fault"}
    classes = {known.fault_class for known in view.story.faults if known.id in cited}
    return lasting.said if lasting and classes <= lasting.classes else ""


def _granted(situation: Situation, view: NodeView, wish: Wish) -> Decision:
    """Return a record. A ticket that the profile does not allow is not asked for."""
    allowed = wish.remedy != "ticket" or "ticket" in view.profile.actions
    return decided(situation, view, wish if allowed else replace(wish, remedy="none"), wish.blockers)


def _in_time(view: NodeView, wish: Wish) -> tuple[Wish, tuple[str, ...]]:
    """Return the wish as of now, with the jobs that it waits for: on an idle node nothing is pending."""
    if wish.timing != "pending" or wish.blockers:
        return wish, wish.blockers
    if view.jobs == ():
        return replace(wish, timing="immediate"), ()
    return wish, view.jobs or NO_ANSWER


def _is_waiting_already(view: NodeView, wish: Wish) -> bool:
    pending = view.story.pending
    return wish.timing == "pending" and pending is not None and pending.to == wish.to


def _forbidden(situation: Situation, view: NodeView, wish: Wish) -> Cause | None:
    """Return who or what forbids automation to do this at all: a person's hold, or the profile."""
    held, profile = view.story.held, view.profile
    if held:
        return Cause("person", held.id, f"held by {held.who}: {held.reason}")
    if wish.takes_out and not profile.acts_on_faults:
        return Cause("profile", profile.name, f"profile {profile.name}: faults are tracked, not acted on")
    entry = situation.policy.states[wish.to].entry if wish.to != view.story.state else []
    needed = [*entry, *_meanwhile(situation, wish)]
    if missing := sorted(set(needed) - set(profile.actions)):
        return Cause("profile", profile.name, f"profile {profile.name} does not allow: {', '.join(missing)}")
    return None


def _meanwhile(situation: Situation, wish: Wish) -> list[str]:
    """Return what is done at once for a wish that waits."""
    return [*situation.policy.meanwhile(wish.name)] if wish.timing == "pending" else []


def _reaches(situation: Situation, view: NodeView, wish: Wish) -> str:
    """Return the state whose room a move takes now: a pending one that cordons takes the node out where it is."""
    if wish.timing == "immediate":
        return wish.to
    return view.story.state if takes_out(situation.policy, wish.name) else ""


def _refuse_an_unknown_state(situation: Situation, view: NodeView) -> None:
    if view.story.state not in situation.policy.states:
        raise Trouble(
            f"{view.name} is in state {view.story.state}, which policy {situation.policy.name} does not have",
            where=situation.lines.get((f"LifecyclePolicy/{situation.policy.name}", "states"), ""),
            fix=f"draw the state {view.story.state} again, with a way out of it",
        )
