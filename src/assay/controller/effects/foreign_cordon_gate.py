"""Holds back the effects that would disturb who works on a node: somebody closed it after the decision was made.

A node whose scheduler cannot be read may have been closed, or may have jobs: it waits too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from assay.actions.action import EffectIntent
from assay.controller.context import ControllerContext
from assay.controller.effects.effect_journal import JournaledEffect
from assay.lifecycle.decisions.foreign_cordons import DISTURBING_ACTIONS, find_respected_cordon, is_ordered_stay
from assay.lifecycle.node_state import NodeState
from assay.schedulers.status_readings import group_by_scheduler


class StartableEffect(Protocol):
    """An effect that can run now, and what the ledger has of it."""

    @property
    def intent(self) -> EffectIntent:
        """What is to be done."""

    @property
    def recorded(self) -> JournaledEffect | None:
        """What the ledger has of it, None before it starts."""


E = TypeVar("E", bound=StartableEffect)


def select_undisturbing(
    context: ControllerContext, node_states: Mapping[str, NodeState], pending: Sequence[E]
) -> list[E]:
    """Return the effects that may go on. What has begun goes on, and so does what a person ordered.

    The schedulers are asked only about effects that would disturb somebody and have not begun.
    """
    disturbing = {
        effect.intent.node
        for effect in pending
        if effect.recorded is None
        and effect.intent.action in DISTURBING_ACTIONS
        and not is_ordered_stay(node_states[effect.intent.node])
    }
    if not disturbing:
        return list(pending)
    nodes = [context.fleet.nodes[name] for name in sorted(disturbing)]
    readings = group_by_scheduler(nodes, context.workloads).read_statuses()
    for line in readings.describe_errors():
        context.progress(f"{line}; assay waits")
    closed = {
        name: reason
        for name, status in readings.statuses.items()
        if name in disturbing and (reason := find_respected_cordon(context.policy, status.foreign_cordon))
    }
    for name, reason in closed.items():
        context.progress(f"{name}: closed by others ({reason}), so assay waits")
    waiting = disturbing & (closed.keys() | readings.errors.keys())
    return [effect for effect in pending if effect.intent.node not in waiting]
