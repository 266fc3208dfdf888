"""Respects what others closed: assay restarts, flashes and drains no node that somebody else drained or cordoned.

A person may stand at the node. The policy names the reasons that assay may overrule. A person's order may go on, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase

from assay.decide.moves.proposals import Proposal
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.model.decision import PERSON_RULE, REPAIR_ACTIONS, ActionName, DecisionCause
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_duration, hours, parse_time

FOREIGN_CAUSE = "foreign"
"""The kind of the cause that says that others closed the node."""
FOREIGN_NOTE = "closed by others"
"""How the text of such a cause begins."""
DISTURBING_ACTIONS: frozenset[ActionName] = REPAIR_ACTIONS | {"drain-now", "wipe"}
"""Actions that disturb who works on the node. A cordon does not, and an uncordon leaves others' cordons as they are."""


def find_respected_cordon(policy: LifecyclePolicy, foreign_cordon: str) -> str:
    """Return the reason of others' cordon that assay must respect, "" for none. Each taint must be overruled itself."""
    patterns, parts = policy.cordons.overrule, re.split("; (?=tainted )", foreign_cordon)
    return "; ".join(part for part in parts if not any(fnmatchcase(part, pattern) for pattern in patterns))


def list_disturbing_actions(actions: Collection[str]) -> list[str]:
    """Return those of the actions that disturb who works on the node."""
    return [action for action in actions if action in DISTURBING_ACTIONS]


def is_ordered_stay(node_state: NodeState) -> bool:
    """Whether a person ordered the node into its present state."""
    return any(move.is_order for move in node_state.transitions[-1:])


def find_foreign_hold(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal) -> DecisionCause | None:
    """Return why a move waits for those who closed the node, None if it need not. It is told again by the policy."""
    entry = snapshot.policy.states[proposal.to].entry if proposal.to != view.node_state.state else []
    actions = list_disturbing_actions(entry)
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
