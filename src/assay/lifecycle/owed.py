"""What decisions ask for and history does not show as settled: the effects that are owed to a node."""

from __future__ import annotations

from dataclasses import dataclass

from assay.lifecycle.story import Story
from assay.model.policy import LifecyclePolicy


@dataclass(frozen=True, slots=True)
class Owed:
    """One effect to bring about or to settle. Its id is `derived_id(decision, action)`."""

    decision: str
    action: str
    reason: str
    begun: bool


def owed(policy: LifecyclePolicy, story: Story) -> list[Owed]:
    """Return the effects that a node is owed, in their order; tickets are paperwork and not among them.

    Nothing after an action that failed, since each rests on the one before. A held node is owed only what was begun.
    """
    if story.pending:
        asked = [(story.pending.decision, action, _reason(story)) for action in _meanwhile(policy, story)]
    else:
        asked = [(story.decision, action, story.because) for action in policy.states[story.state].entry]
    found: list[Owed] = []
    for decision, action, reason in asked if story.decision or story.pending else []:
        effect = story.effect_of(decision, action)
        if effect and effect.standing == "failed":
            break
        if action != "ticket" and not (effect and effect.standing == "verified") and (effect or not story.held):
            found.append(Owed(decision, action, reason, effect is not None))
    return found


def _meanwhile(policy: LifecyclePolicy, story: Story) -> list[str]:
    name = story.pending.rule.rpartition(" ")[2] if story.pending else ""
    return [*policy.faults[name].while_pending] if name in policy.faults else []


def _reason(story: Story) -> str:
    return "; ".join(cause.text for cause in story.pending.because) if story.pending else story.because
