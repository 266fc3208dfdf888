"""How a decision is made out of its reasons: the same reasons give the same id, until what waited was withdrawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.decision import Decision, DecisionCause, DecisionTiming
from assay.model.ledger_entry import derive_id


@dataclass(frozen=True, slots=True)
class Proposal:
    """What should happen to a node, before anybody has asked whether it may.

    `path` and `name` say which part of the policy wishes it. `keys` tell this wish from the next one of the same rule
    during the same stay; `takes_out` marks one that a fault is behind, which limits and breaker may stop; `late` one
    that only a deadline is behind. `blockers` are what it waits for besides the node's jobs.
    """

    to: str
    timing: DecisionTiming
    policy_path: str
    rule_name: str
    causes: tuple[DecisionCause, ...]
    identity_keys: tuple[str, ...] = ()
    remedy: str = ""
    takes_out: bool = False
    is_deadline: bool = False
    blockers: tuple[str, ...] = ()


def grant_proposal(
    situation: FleetSnapshot, view: NodeSnapshot, wish: Proposal, blockers: Iterable[str] = ()
) -> Decision:
    """Return the decision that grants a wish."""
    return Decision(
        id=_id(view, wish.timing, wish),
        node=view.name,
        from_state=view.node_state.state,
        to_state=wish.to,
        timing=wish.timing,
        rule=situation.format_rule(wish.policy_path, wish.rule_name),
        remedy=wish.remedy,
        causes=wish.causes,
        blockers=tuple(blockers),
    )


def refuse_proposal(situation: FleetSnapshot, view: NodeSnapshot, wish: Proposal, why: DecisionCause) -> Decision:
    """Return the record that a wish was not granted, and why. It says so once for each kind of reason."""
    return Decision(
        id=_id(view, "record", wish, why.kind, why.id),
        node=view.name,
        from_state=view.node_state.state,
        to_state=wish.to,
        timing="record",
        rule=situation.format_rule(wish.policy_path, wish.rule_name),
        remedy="wait",
        causes=(why, *wish.causes),
        blockers=(why.text,),
    )


def _id(view: NodeSnapshot, timing: str, wish: Proposal, *more: str) -> str:
    reasons = (
        view.name,
        view.node_state.stay_id,
        wish.to,
        timing,
        wish.rule_name,
        wish.remedy,
        *sorted(wish.identity_keys),
        *more,
    )
    withdrawn = view.node_state.withdrawn
    return derive_id("decision", *reasons, *([f"after {withdrawn.decision}"] if withdrawn else []))
