"""What decisions ask for and history does not show as settled: the effects that are owed to a node."""

from __future__ import annotations

from dataclasses import dataclass

from assay.lifecycle.decisions.lost_cordons import list_recordon_effects
from assay.lifecycle.node_state import NodeState
from assay.model.specs.lifecycle_policy import LifecyclePolicy


@dataclass(frozen=True, slots=True)
class OutstandingEffect:
    """One effect to bring about or to settle. Its id is `derived_id(decision, action)`."""

    decision: str
    action: str
    reason: str
    is_started: bool


def list_outstanding_effects(policy: LifecyclePolicy, story: NodeState) -> list[OutstandingEffect]:
    """Return the effects that a node is owed, in their order; tickets are paperwork and not among them.

    Nothing after an action that failed, since each rests on the one before; a person who certifies the node after that
    has it tried again. A held node is owed only what was begun.
    """
    found: list[OutstandingEffect] = []
    for asked_by, action, reason in _list_requested_effects(policy, story):
        decision = _find_current_request(story, asked_by, action)
        effect = story.find_effect(decision, action)
        if effect and effect.standing == "failed":
            break
        if action != "ticket" and not (effect and effect.standing == "verified") and (effect or not story.hold):
            found.append(OutstandingEffect(decision, action, reason, effect is not None))
    return found


def _find_current_request(story: NodeState, decision: str, action: str) -> str:
    """Return by what an action is asked for now: a person's certification, where that came after it had failed."""
    effect, word = story.find_effect(decision, action), story.certified
    again = effect and word and effect.standing == "failed" and word.at > effect.at
    return word.id if word and again else decision


def _list_requested_effects(policy: LifecyclePolicy, story: NodeState) -> list[tuple[str, str, str]]:
    """Return what was asked for: decision, action and reason.

    A cordon of what was withdrawn is undone first; one that was lifted is made again first.
    """
    pending = story.pending
    reason = "; ".join(cause.text for cause in pending.because) if pending else story.reason
    again = list_recordon_effects(policy, story, reason)
    if pending:
        return [*again, *((pending.decision, action, reason) for action in policy.actions_while_pending(pending.rule))]
    undone = story.withdrawn if story.withdrawn and story.withdrawn.cordoned else None
    undo = [(undone.by, "uncordon", undone.reason)] if undone else []
    entry = policy.states[story.state].entry if story.decision else []
    return [*undo, *again, *((story.decision, action, reason) for action in entry)]
