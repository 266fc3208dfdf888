"""A proposal for a node, the decision that grants or refuses it, and what others closed, which assay respects.

The id of a decision follows from its reasons. The same reasons give the same id, until a pending decision is withdrawn.

assay restarts, flashes and drains no node that somebody else drained or cordoned: a person may stand at the node. The
policy names the reasons that assay may overrule. A person's order may go on, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.model.decision import (
    DISTURBING_ACTIONS,
    HAND_OVER,
    PERSON_RULE,
    Decision,
    DecisionCause,
    DecisionTiming,
    ReplacedNode,
)
from assay.model.facts import frozen
from assay.model.ledger_entry import derive_id
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_duration, hours, parse_time


@frozen
class Proposal:
    """What should happen to a node, before limits, profile and people have their say.

    `policy_path` and `rule_name` name the part of the policy that proposes it. `identity_keys` distinguish it from the
    next proposal of the same rule in the same stay. `takes_out` marks a proposal because of a fault: limits and breaker
    may hold it back. `is_deadline` marks a proposal because of a deadline only. `blockers` are what it waits for
    besides jobs. `replaces`: the node whose place a spare takes.
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
    replaces: ReplacedNode | None = None


def grant_proposal(
    snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal, blockers: Iterable[str] = ()
) -> Decision:
    """Return the decision that grants a proposal; `blockers` are what a pending decision waits for."""
    is_noted = proposal.timing == "record" and proposal.rule_name == HAND_OVER
    is_opened = is_noted or (proposal.timing == "immediate" and snapshot.policy.is_in_service(proposal.to))
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
        replaces=proposal.replaces,
        customer=view.node.settings.customer if is_opened else "",
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


FOREIGN_CAUSE = "foreign"
"""The kind of the cause that says that others closed the node."""
FOREIGN_NOTE = "closed by others"
"""How the text of such a cause begins."""


def find_respected_cordon(policy: LifecyclePolicy, foreign_cordon: str) -> str:
    """Return the reason of others' cordon that assay must respect, "" for none. Each taint must be overruled itself."""
    patterns, parts = policy.cordons.overrule, re.split("; (?=tainted )", foreign_cordon)
    return "; ".join(part for part in parts if not any(fnmatchcase(part, pattern) for pattern in patterns))


def list_disturbing_actions(actions: Collection[str]) -> list[str]:
    """Return those of the actions that disturb who works on the node."""
    return [action for action in actions if action in DISTURBING_ACTIONS]


def list_arrival_actions(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal) -> Sequence[str]:
    """Return what is done where a proposal sends the node; a move into the state where it is does all anew."""
    is_move = proposal.timing == "immediate" or proposal.to != view.node_state.state
    return snapshot.policy.states[proposal.to].entry if is_move else []


def is_ordered_stay(node_state: NodeState) -> bool:
    """Whether a person ordered the node into its present state."""
    return any(move.is_order for move in node_state.transitions[-1:])


def find_foreign_hold(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal) -> DecisionCause | None:
    """Return why a move waits for those who closed the node, None if it need not. It is told again by the policy."""
    actions = list_disturbing_actions(list_arrival_actions(snapshot, view, proposal))
    reason = find_respected_cordon(snapshot.policy, view.foreign_cordon)
    if not reason or not actions or proposal.timing == "pending" or proposal.rule_name == PERSON_RULE:
        return None
    # It waits since its oldest fault, or since the node's stay began.
    causes = {ident for cause in proposal.causes for ident in cause.fault_ids}
    seen = [fault.first_seen for fault in view.node_state.faults if fault.id in causes]
    waited = snapshot.now - parse_time(max(view.node_state.since, min(seen, default="")))
    times = int(waited / hours(snapshot.policy.waiting.remind_hours))
    since = f" for {format_duration(waited)}" if times else ""
    text = f"{FOREIGN_NOTE} ({reason}): assay waits{since}, and would go to {proposal.to}: {', '.join(actions)}"
    return DecisionCause(FOREIGN_CAUSE, f"{reason}/{times}", text)
