"""What happens next to every node: a pure function of the situation."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from assay.lifecycle import breaker, faulted
from assay.lifecycle.excused import as_it_counts, noted
from assay.lifecycle.limits import Room
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.verdicts import Wish, decided, held_back
from assay.lifecycle.ways import ways
from assay.model.decision import Cause, Decision
from assay.model.errors import Trouble


def decide(situation: Situation, asked: Collection[str] | None = None) -> list[Decision]:
    """Return what is to be decided now and was not decided before, at most one move a node.

    `asked` are the nodes to decide about, all by default; the others are only counted.

    The worst faults come first where limits leave room for some nodes only. Neither the order of the nodes nor that
    of their outcomes changes the answer. Raises Trouble for a node in a state that the policy does not have.
    """
    for view in situation.nodes:
        _refuse_an_unknown_state(situation, view)
    situation = as_it_counts(situation)
    room, waves = Room(situation), breaker.tripped(situation)
    answer: list[Decision] = []
    views = situation.nodes if asked is None else [view for view in situation.nodes if view.name in asked]
    for view in sorted(views, key=faulted.urgency):
        made = _of_node(situation, view, room, waves.get(view.node.pool, ""))
        answer += [decision for decision in made if decision.id not in view.story.decided]
    return answer


def _of_node(situation: Situation, view: NodeView, room: Room, wave: str) -> Iterator[Decision]:
    """Yield the records, and the first wish of a move that is granted or was held back."""
    for wish in [*noted(situation, view), *faulted.wishes(situation, view), *ways(situation, view)]:
        if wish.timing == "record":
            yield _granted(situation, view, wish)
            continue
        wish_now, blockers = _in_time(view, wish)
        if _is_waiting_already(view, wish_now):
            continue
        yield _gated(situation, view, wish_now, blockers, room, wave)
        return


def _gated(
    situation: Situation, view: NodeView, wish: Wish, blockers: tuple[str, ...], room: Room, wave: str
) -> Decision:
    """Return the decision for a move, or the record of what stands in its way."""
    if why := _forbidden(situation, view, wish):
        return held_back(situation, view, wish, why)
    if wish.takes_out and wave:
        return held_back(situation, view, wish, Cause("breaker", view.node.pool, wave))
    reaches = _reaches(situation, view, wish)
    if reaches and (refusal := room.refusal(view, reaches)):
        return held_back(situation, view, wish, Cause("limit", f"{refusal.limit}/{refusal.where}", refusal.text))
    if reaches:
        room.take(view, reaches)
    return decided(situation, view, wish, blockers)


def _granted(situation: Situation, view: NodeView, wish: Wish) -> Decision:
    """Return a record. A ticket that the profile does not allow is not asked for."""
    allowed = wish.remedy != "ticket" or "ticket" in view.profile.actions
    return decided(situation, view, wish if allowed else replace(wish, remedy="none"))


def _in_time(view: NodeView, wish: Wish) -> tuple[Wish, tuple[str, ...]]:
    """Return the wish as of now, with the jobs that it waits for: on an idle node nothing is pending."""
    if wish.timing != "pending":
        return wish, ()
    if view.jobs == ():
        return replace(wish, timing="immediate"), ()
    return wish, view.jobs or ("unknown: the scheduler does not answer",)


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
    needed = [*situation.policy.states[wish.to].entry, *_meanwhile(situation, wish)]
    if missing := sorted(set(needed) - set(profile.actions)):
        return Cause("profile", profile.name, f"profile {profile.name} does not allow: {', '.join(missing)}")
    return None


def _meanwhile(situation: Situation, wish: Wish) -> list[str]:
    """Return what is done at once for a wish that waits."""
    waits = wish.timing == "pending" and wish.name in situation.policy.faults
    return [*situation.policy.faults[wish.name].while_pending] if waits else []


def _reaches(situation: Situation, view: NodeView, wish: Wish) -> str:
    """Return the state whose room a move takes now: a pending one that cordons takes the node out where it is."""
    if wish.timing == "immediate":
        return wish.to
    return view.story.state if _meanwhile(situation, wish) else ""


def _refuse_an_unknown_state(situation: Situation, view: NodeView) -> None:
    if view.story.state not in situation.policy.states:
        raise Trouble(
            f"{view.name} is in state {view.story.state}, which policy {situation.policy.name} does not have",
            where=situation.lines.get((f"LifecyclePolicy/{situation.policy.name}", "states"), ""),
            fix=f"draw the state {view.story.state} again, with a way out of it",
        )
