"""What is known of the fleet at present, handed in whole: planning asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.lifecycle.limits import is_out
from assay.lifecycle.story import Story
from assay.model.backtest import Backtest, Took
from assay.model.fleet import Node
from assay.model.policy import LifecyclePolicy
from assay.plan.excuses import Recount


@dataclass(frozen=True, slots=True)
class Facts:
    """Each enrolled node's story, and how long actions and stays in states took. Empty where there is no ledger.

    `recounts`: what comes to count of the last outcomes, or counts no more.
    """

    stories: Mapping[str, Story] = field(default_factory=dict)
    actions: Mapping[str, Took] = field(default_factory=dict)
    stays: Mapping[str, Took] = field(default_factory=dict)
    backtest: Backtest | None = None
    recounts: tuple[Recount, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one node is: `state`, whether customers use it, whether automation has it out, who holds it."""

    state: str
    serves: bool
    out: bool
    held: str = ""


def standing(policy: LifecyclePolicy, facts: Facts, node: Node) -> Standing:
    """Return where a node is; one that was never enrolled is where the inventory starts it."""
    story = facts.stories.get(node.name)
    if story is None:
        state = str(node.variables.get("lifecycle_start", "onboard"))
        return Standing(state, _serves(policy, state), False)
    known = story.state in policy.states
    held = f"held by {story.held.who}: {story.held.reason}" if story.held else ""
    return Standing(story.state, _serves(policy, story.state), known and is_out(policy, story), held)


def _serves(policy: LifecyclePolicy, state: str) -> bool:
    return state in policy.states and policy.states[state].in_service
