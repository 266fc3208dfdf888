"""A proposal for a node, and the decision that grants or refuses it.

The id of a decision follows from its reasons. The same reasons give the same id, until a pending decision is withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.decision import Decision, DecisionCause, DecisionTiming
from assay.model.ledger_entry import derive_id


@dataclass(frozen=True, slots=True)
class Proposal:
    """What should happen to a node, before limits, profile and people have their say.

    `policy_path` and `rule_name` name the part of the policy that proposes it. `identity_keys` distinguish it from the
    next proposal of the same rule in the same stay. `takes_out` marks a proposal because of a fault: limits and breaker
    may hold it back. `is_deadline` marks a proposal because of a deadline only. `blockers` are what it waits for
    besides jobs.
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
    snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal, blockers: Iterable[str] = ()
) -> Decision:
    """Return the decision that grants a proposal; `blockers` are what a pending decision waits for."""
    return Decision(
        id=_derive_decision_id(view, proposal.timing, proposal),
        node=view.name,
        from_state=view.node_state.state,
        to_state=proposal.to,
        timing=proposal.timing,
        rule=snapshot.format_rule(proposal.policy_path, proposal.rule_name),
        remedy=proposal.remedy,
        causes=proposal.causes,
        blockers=tuple(blockers),
    )


def refuse_proposal(
    snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal, refusal: DecisionCause
) -> Decision:
    """Return the record that a proposal was held back, and why. There is one record per kind of reason."""
    return Decision(
        id=_derive_decision_id(view, "record", proposal, refusal.kind, refusal.id),
        node=view.name,
        from_state=view.node_state.state,
        to_state=proposal.to,
        timing="record",
        rule=snapshot.format_rule(proposal.policy_path, proposal.rule_name),
        remedy="wait",
        causes=(refusal, *proposal.causes),
        blockers=(refusal.text,),
    )


def _derive_decision_id(view: NodeSnapshot, timing: str, proposal: Proposal, *more: str) -> str:
    reasons = (
        view.name,
        view.node_state.stay_id,
        proposal.to,
        timing,
        proposal.rule_name,
        proposal.remedy,
        *sorted(proposal.identity_keys),
        *more,
    )
    withdrawn = view.node_state.withdrawn
    return derive_id("decision", *reasons, *([f"after {withdrawn.decision}"] if withdrawn else []))
