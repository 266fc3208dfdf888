"""Where a person asks automation to bring a node: along an edge of the policy, once in a stay."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.holding import is_over, until_when
from assay.cli.word import Speaker, Word
from assay.lifecycle.by_hand import step_towards
from assay.lifecycle.when import moment
from assay.model.entry import derived_id
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.cli.desk import Desk
    from assay.lifecycle.story import Story
    from assay.model.policy import LifecyclePolicy

MOVES = ("move", "zap.asked")

Now = Annotated[bool, typer.Option("--now", help="Do not wait until the customers' jobs on it have ended.")]


def asked(desk: Desk, said: Speaker, story: Story, to: str, kind: str, *, now: bool = False) -> Word:
    """Return the word that asks for a node to go `to` a state. Raises Trouble where it may not, with where it may.

    To ask for the state that it is in takes back what was asked before.
    """
    node, before = story.node, story.asked
    if story.state == to and not before:
        return Word(node, f"{node} is in {to} already: {story.because}")
    _allow(desk, said, story, to)
    if before and (before.to, before.now) == (to, now):
        told = f"{node} is asked to go to {to} already, by {before.who}: {before.reason}"
        return Word(node, f"{told}; `assay explain {node}` says what it waits for")
    ident = derived_id(kind, node, story.stay, to, _last(desk, story))
    entry = said.entry(ident, kind, node, to=to, **({"now": True} if now else {}))
    if before and to == story.state:
        return Word(node, f"{node} stays in {to}; that it go to {before.to} is no longer asked", entry)
    waits = policy_of(desk, story).states[story.state].in_service
    when = " at once" if now else " when no job is on it" if waits else ""
    return Word(node, f"{node} is asked to go from {story.state} to {to}{when}, by {said.who}: {said.reason}", entry)


def policy_of(desk: Desk, story: Story) -> LifecyclePolicy:
    """Return the policy that knows the state of a node. Raises Trouble where none does."""
    found = next((one for one in desk.fleet.policies.values() if story.state in one.states), None)
    if found is None:
        raise Trouble(f"{story.node} is in {story.state}, which no lifecycle policy has", fix="assay check")
    return found


def ways_from(policy: LifecyclePolicy, state: str) -> str:
    """Return where the policy lets a node go from a state, for people."""
    ways = [name for name in policy.states if name != state and step_towards(policy, state, name)]
    return f"from {state} it may go to {', '.join(ways)}" if ways else f"there is no way out of {state}"


def _allow(desk: Desk, said: Speaker, story: Story, to: str) -> None:
    policy, held = policy_of(desk, story), story.held
    if held and not is_over(held, moment(said.at)):
        told = f"{story.node} is held by {held.who} {until_when(held.until, moment(said.at))}: {held.reason}"
        raise Trouble(told, fix=f"assay release {story.node} --reason …")
    if to not in policy.states:
        near = get_close_matches(to, policy.states, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise Trouble(f"the policy has no state {to!r}", fix=hint + ways_from(policy, story.state))
    if to != story.state and not step_towards(policy, story.state, to):
        told = f"the policy draws no way for {story.node} from {story.state} to {to}"
        raise Trouble(told, fix=ways_from(policy, story.state))


def _last(desk: Desk, story: Story) -> str:
    """Return the id of what was last asked of the node, "" where nothing was: the next word follows it only once."""
    words = desk.ledger.entries(story.node, kinds=MOVES)
    return words[-1].id if words else ""
