"""From a node's open faults to what should happen because of them, by the policy's fault rules and the ladder.

What the breaker held and is there still: old events are not replayed, evidence that is younger counts.

The ladder of remedies: which step a node has come to, and whether a fault has outlived its repair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import get_args

from assay.lifecycle.decisions.proposals import Proposal
from assay.lifecycle.decisions.requirements import list_entry_actions
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import FaultRecord, NodeState
from assay.model.decision import REPAIR_ACTIONS, DecisionCause
from assay.model.specs.fault_catalog import FaultSeverity
from assay.model.specs.policy_sections import FaultRule, LadderRung, RemedyLadder
from assay.model.timestamps import hours, parse_time


def is_still_failing(view: NodeSnapshot, known: FaultRecord) -> bool:
    """Whether evidence that is younger than the breaker shows a check's fault again."""
    return any(
        one.outcome.verdict == "fail"
        and (one.outcome.fault, one.outcome.subject) == (known.fault_class, known.subject)
        and parse_time(one.measured_at) > parse_time(known.responded_at)
        for one in view.latest
    )


LADDER_RESETS = frozenset({"certified", "replaced"})
"""After these a node's ladder begins anew: a person answers for it, or another part stands in the place."""


def find_rung(ladder: RemedyLadder, story: NodeState, remedy: str, now: datetime) -> tuple[str, LadderRung] | None:
    """Return the first step from `remedy` upwards that the node has not used up; None where `remedy` is no step.

    The top of the ladder is never used up. What was done before the node was last certified, or got another part,
    does not count.
    """
    rungs = {str(name): rung for name, rung in ladder.rungs.items()}
    start = _find_window_start(ladder, story, now)
    while rung := rungs.get(remedy):
        used = sum(1 for move in story.transitions if move.remedy == remedy and parse_time(move.at) > start)
        if used < rung.times or rung.then is None:
            return remedy, rung
        remedy = rung.then
    return None


def has_recurred(ladder: RemedyLadder, story: NodeState, fault: FaultRecord, now: datetime) -> bool:
    """Whether a fault of this class was repaired within the window and came back."""
    start = _find_window_start(ladder, story, now)
    repairs = [
        repair.at for repair in story.repairs if repair.kind not in LADDER_RESETS and parse_time(repair.at) > start
    ]
    earlier = [known for known in story.faults if known.fault_class == fault.fault_class and known.id != fault.id]
    return any(known.last_seen < at < fault.first_seen for known in earlier for at in repairs)


def _find_window_start(ladder: RemedyLadder, story: NodeState, now: datetime) -> datetime:
    anew = max((repair.at for repair in story.repairs if repair.kind in LADDER_RESETS), default="")
    return max(now - hours(ladder.window_hours), parse_time(anew))


_RANK = {severity: rank for rank, severity in enumerate(get_args(FaultSeverity))}


def urgency_key(view: NodeSnapshot) -> tuple[int, str, str]:
    """Return a key that sorts nodes: worst fault first, then the oldest, then by name."""
    faults = _worst_first(find_unanswered_faults(view))
    return (_RANK[faults[0].severity], faults[0].first_seen, view.name) if faults else (len(_RANK), "", view.name)


def find_unanswered_faults(view: NodeSnapshot) -> list[FaultRecord]:
    """Return the open faults that no decision has acted on and no repair has overtaken."""
    return [known for known in view.node_state.faults if known.is_open and _needs_answer(view, known)]


def propose_fault_remedies(situation: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield what the node's faults ask for: records, and at most one move, of the worst fault with all its company."""
    asked = [(known, *_find_rule(situation, view, known)) for known in _worst_first(find_unanswered_faults(view))]
    moves: list[tuple[FaultRecord, Proposal]] = []
    for known, name, rule in asked:
        wish = _make_proposal(situation, view, known, name, rule)
        if wish.timing == "record":
            yield wish
        else:
            moves.append((known, wish))
    if moves and not _is_repair_under_way(situation, view):
        yield _merge_moves(moves)


def make_fault_cause(known: FaultRecord) -> DecisionCause:
    """Return a fault as a link of the chain."""
    times = f", {known.count} times" if known.count > 1 else ""
    detail = f": {known.detail}" if known.detail else ""
    return DecisionCause("fault", known.id, f"{known.fault_class} on {known.subject}{times}{detail}")


def _needs_answer(view: NodeSnapshot, known: FaultRecord) -> bool:
    if known.last_seen <= view.node_state.repaired_at:
        return False
    if known.response == "breaker":
        return is_still_failing(view, known)
    return known.response == ""


def _worst_first(faults: Iterable[FaultRecord]) -> list[FaultRecord]:
    return sorted(faults, key=lambda known: (_RANK[known.severity], known.first_seen, known.id))


def _find_rule(situation: FleetSnapshot, view: NodeSnapshot, known: FaultRecord) -> tuple[str, FaultRule]:
    in_use = view.jobs is None or bool(view.jobs)
    return situation.policy.find_fault_rule(
        view.node_state.state, known.fault_class, known.severity, known.blame, in_use
    )


def _make_proposal(
    situation: FleetSnapshot, view: NodeSnapshot, known: FaultRecord, name: str, rule: FaultRule
) -> Proposal:
    remedy: str = known.remedy if rule.remedy == "class" else rule.remedy
    to, timing = rule.to, rule.timing
    if to is None and timing != "record":
        step = find_rung(situation.policy.ladder, view.node_state, remedy, situation.now)
        remedy, to = (step[0], step[1].to) if step else (remedy, None)
    if timing == "record" or to is None or not situation.policy.has_edge(view.node_state.state, to):
        to, timing = view.node_state.state, "record"
    return Proposal(
        to=to,
        timing=timing,
        policy_path=f"faults.{name}",
        rule_name=name,
        causes=(make_fault_cause(known),),
        identity_keys=(known.id, known.severity),
        remedy=remedy,
        takes_out=timing != "record",
    )


def _merge_moves(moves: list[tuple[FaultRecord, Proposal]]) -> Proposal:
    """Return the worst fault's wish, citing every fault that wishes the node moved, so that one move answers all."""
    first = moves[0][1]
    because = tuple(cause for _, wish in moves for cause in wish.causes)
    keys = tuple(key for _, wish in moves for key in wish.identity_keys)
    return replace(first, causes=because, identity_keys=keys)


def _is_repair_under_way(situation: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether a repair is under way: what is seen meanwhile is its doing, or will be seen again after it."""
    begun = [standing for action, standing in list_entry_actions(situation, view) if action in REPAIR_ACTIONS]
    return any(standing not in ("verified", "failed") for standing in begun)
