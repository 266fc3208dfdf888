"""From a node's open faults to what should happen because of them, by the policy's fault rules and the ladder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import get_args

from assay.lifecycle.again import still_failing
from assay.lifecycle.ladder import climb
from assay.lifecycle.requirements import arrivals
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Known
from assay.lifecycle.verdicts import Wish
from assay.model.action import REPAIRS
from assay.model.decision import Cause
from assay.model.faults import Severity
from assay.model.policy import FaultRule

_RANK = {severity: rank for rank, severity in enumerate(get_args(Severity))}


def urgency(view: NodeView) -> tuple[int, str, str]:
    """Return a key that sorts nodes: worst fault first, then the oldest, then by name."""
    faults = _worst_first(unanswered(view))
    return (_RANK[faults[0].severity], faults[0].first_seen, view.name) if faults else (len(_RANK), "", view.name)


def unanswered(view: NodeView) -> list[Known]:
    """Return the open faults that no decision has acted on and no repair has overtaken."""
    return [known for known in view.story.faults if known.open and _asks(view, known)]


def wishes(situation: Situation, view: NodeView) -> Iterator[Wish]:
    """Yield what the node's faults ask for: records, and at most one move, of the worst fault with all its company."""
    asked = [(known, *_rule(situation, view, known)) for known in _worst_first(unanswered(view))]
    moves: list[tuple[Known, Wish]] = []
    for known, name, rule in asked:
        wish = _wish(situation, view, known, name, rule)
        if wish.timing == "record":
            yield wish
        else:
            moves.append((known, wish))
    if moves and not _repairing(situation, view):
        yield _together(moves)


def cause(known: Known) -> Cause:
    """Return a fault as a link of the chain."""
    times = f", {known.count} times" if known.count > 1 else ""
    detail = f": {known.detail}" if known.detail else ""
    return Cause("fault", known.id, f"{known.fault_class} on {known.subject}{times}{detail}")


def _asks(view: NodeView, known: Known) -> bool:
    if known.last_seen <= view.story.repaired_at:
        return False
    if known.answer == "breaker":
        return still_failing(view, known)
    return known.answer == ""


def _worst_first(faults: Iterable[Known]) -> list[Known]:
    return sorted(faults, key=lambda known: (_RANK[known.severity], known.first_seen, known.id))


def _rule(situation: Situation, view: NodeView, known: Known) -> tuple[str, FaultRule]:
    in_use = view.jobs is None or bool(view.jobs)
    return situation.policy.answer(view.story.state, known.fault_class, known.severity, known.blame, in_use)


def _wish(situation: Situation, view: NodeView, known: Known, name: str, rule: FaultRule) -> Wish:
    remedy: str = known.remedy if rule.remedy == "class" else rule.remedy
    to, timing = rule.to, rule.timing
    if to is None and timing != "record":
        step = climb(situation.policy.ladder, view.story, remedy, situation.now)
        remedy, to = (step[0], step[1].to) if step else (remedy, None)
    if timing == "record" or to is None or not situation.policy.may_go(view.story.state, to):
        to, timing = view.story.state, "record"
    return Wish(
        to=to,
        timing=timing,
        path=f"faults.{name}",
        name=name,
        because=(cause(known),),
        keys=(known.id, known.severity),
        remedy=remedy,
        takes_out=timing != "record",
    )


def _together(moves: list[tuple[Known, Wish]]) -> Wish:
    """Return the worst fault's wish, citing every fault that wishes the node moved, so that one move answers all."""
    first = moves[0][1]
    because = tuple(cause for _, wish in moves for cause in wish.because)
    keys = tuple(key for _, wish in moves for key in wish.keys)
    return replace(first, because=because, keys=keys)


def _repairing(situation: Situation, view: NodeView) -> bool:
    """Whether a repair is under way: what is seen meanwhile is its doing, or will be seen again after it."""
    begun = [standing for action, standing in arrivals(situation, view) if action in REPAIRS]
    return any(standing not in ("verified", "failed") for standing in begun)
