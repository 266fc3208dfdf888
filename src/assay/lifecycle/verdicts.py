"""How a decision is made out of its reasons: the same reasons give the same id, until what waited was withdrawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.lifecycle.situation import NodeView, Situation
from assay.model.decision import Cause, Decision, Timing
from assay.model.entry import derived_id


@dataclass(frozen=True, slots=True)
class Wish:
    """What should happen to a node, before anybody has asked whether it may.

    `path` and `name` say which part of the policy wishes it. `keys` tell this wish from the next one of the same rule
    during the same stay; `takes_out` marks one that a fault is behind, which limits and breaker may stop; `late` one
    that only a deadline is behind. `blockers` are what it waits for besides the node's jobs.
    """

    to: str
    timing: Timing
    path: str
    name: str
    because: tuple[Cause, ...]
    keys: tuple[str, ...] = ()
    remedy: str = ""
    takes_out: bool = False
    late: bool = False
    blockers: tuple[str, ...] = ()


def decided(situation: Situation, view: NodeView, wish: Wish, blockers: Iterable[str] = ()) -> Decision:
    """Return the decision that grants a wish."""
    return Decision(
        id=_id(view, wish.timing, wish),
        node=view.name,
        from_state=view.story.state,
        to_state=wish.to,
        timing=wish.timing,
        rule=situation.rule(wish.path, wish.name),
        remedy=wish.remedy,
        because=wish.because,
        blockers=tuple(blockers),
    )


def held_back(situation: Situation, view: NodeView, wish: Wish, why: Cause) -> Decision:
    """Return the record that a wish was not granted, and why. It says so once for each kind of reason."""
    return Decision(
        id=_id(view, "record", wish, why.kind, why.id),
        node=view.name,
        from_state=view.story.state,
        to_state=wish.to,
        timing="record",
        rule=situation.rule(wish.path, wish.name),
        remedy="wait",
        because=(why, *wish.because),
        blockers=(why.text,),
    )


def _id(view: NodeView, timing: str, wish: Wish, *more: str) -> str:
    reasons = (view.name, view.story.stay, wish.to, timing, wish.name, wish.remedy, *sorted(wish.keys), *more)
    withdrawn = view.story.withdrawn
    return derived_id("decision", *reasons, *([f"after {withdrawn.decision}"] if withdrawn else []))
