"""Holds back the effects that would disturb who works on a node: somebody closed it after the decision was made.

It asks before an effect enters its queue, and again before each attempt: an effect may wait long in its queue, or for
its next attempt. A node whose scheduler cannot be read may have been closed, or may have jobs: it waits too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from assay.act.actions.action import ActionContext, EffectIntent
from assay.act.effects.effect_journal import JournaledEffect
from assay.act.loop.node_state_and_outcome_cache import read_node_states
from assay.adapters.status_readings import group_by_scheduler
from assay.decide.moves.foreign_cordons import DISTURBING_ACTIONS, find_respected_cordon, is_ordered_stay
from assay.decide.state.node_state import NodeState


class StartableEffect(Protocol):
    """An effect that can run now, and what the ledger has of it."""

    @property
    def intent(self) -> EffectIntent:
        """What is to be done."""

    @property
    def recorded(self) -> JournaledEffect | None:
        """What the ledger has of it, None before it starts."""

    @property
    def is_superseded(self) -> bool:
        """Whether it is only verified, and not attempted again."""


E = TypeVar("E", bound=StartableEffect)


def select_undisturbing(context: ActionContext, node_states: Mapping[str, NodeState], pending: Sequence[E]) -> list[E]:
    """Return the effects that may go on: attempts under way, what disturbs nobody, and what a person ordered.

    The schedulers are asked only about effects that would disturb somebody and whose next attempt has not begun.
    """
    disturbing = {
        effect.intent.node
        for effect in pending
        if begins_attempt(effect) and _may_disturb(effect.intent, node_states.get(effect.intent.node))
    }
    waiting = _find_waiting_nodes(context, disturbing)
    return [effect for effect in pending if not (begins_attempt(effect) and effect.intent.node in waiting)]


def must_attempt_wait(context: ActionContext, intent: EffectIntent) -> bool:
    """Whether an attempt that would begin now must wait for those who closed the node, or for its scheduler."""
    if intent.action not in DISTURBING_ACTIONS:
        return False
    node_state = read_node_states(context.ledger).get(intent.node)
    return _may_disturb(intent, node_state) and bool(_find_waiting_nodes(context, [intent.node]))


def begins_attempt(effect: StartableEffect) -> bool:
    """Whether the next thing to do is an attempt, and not the proof of one."""
    return not effect.is_superseded and (effect.recorded is None or effect.recorded.status == "tried")


def _may_disturb(intent: EffectIntent, node_state: NodeState | None) -> bool:
    is_ordered = node_state is not None and is_ordered_stay(node_state)
    return intent.action in DISTURBING_ACTIONS and not is_ordered


def _find_waiting_nodes(context: ActionContext, names: Iterable[str]) -> set[str]:
    """Return which of these nodes others keep closed, or have a scheduler that does not answer; show why."""
    nodes = [context.fleet.nodes[name] for name in sorted(names)]
    readings = group_by_scheduler(nodes, context.workloads).read_statuses()
    for line in readings.describe_errors():
        context.progress(f"{line}; assay waits")
    waiting = set(readings.errors)
    for name, status in readings.statuses.items():
        foreign = status.foreign_cordon
        if foreign and (reason := find_respected_cordon(context.fleet.policy, foreign)):
            context.progress(f"{name}: closed by others ({reason}), so assay waits")
            waiting.add(name)
    return waiting
