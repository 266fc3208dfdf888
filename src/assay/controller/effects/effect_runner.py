"""The second half of a pass: what was decided is brought about, many nodes at once, on each node in its order.

Which effects of a node can be carried on now: the next that it is owed, and what an earlier decision left open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from assay.actions.action import BATCHED_ACTIONS, EffectIntent, load_action
from assay.controller.context import ControllerContext
from assay.controller.effects import effect_journal
from assay.controller.effects import effect_steps as steps
from assay.controller.effects.cordon_batch import run_cordon_batch
from assay.controller.effects.workflow_queues import find_engine_stack, list_queue_limits
from assay.ledger.store import is_shared
from assay.lifecycle.node_state import NodeState
from assay.lifecycle.node_state_projection import project_node_states
from assay.lifecycle.outstanding_effects import OutstandingEffect, list_outstanding_effects


@dataclass(frozen=True, slots=True)
class PendingEffect:
    """One effect, and what the ledger has of it. One that nobody waits for any more is only looked at."""

    intent: EffectIntent
    recorded: effect_journal.JournaledEffect | None
    is_superseded: bool = False

    @property
    def is_batched(self) -> bool:
        """Whether it is carried with others, without a workflow of its own."""
        return self.intent.action in BATCHED_ACTIONS and not self.is_superseded

    @property
    def has_ended(self) -> bool:
        """Whether a reading of the world has settled it."""
        return bool(self.recorded and self.recorded.has_ended)

    @property
    def due_at(self) -> str:
        """When its next attempt may be made, "" for any time."""
        return self.recorded.retry_at if self.recorded and self.recorded.status == "tried" else ""

    @property
    def needs_verification(self) -> bool:
        """Whether only the world can tell what is to be done about it: its last attempt may have worked."""
        if self.recorded is None or self.has_ended:
            return False
        return self.is_superseded or self.recorded.status in ("done", "unknown")


def list_pending_effects(desk: ControllerContext, story: NodeState) -> Iterator[PendingEffect]:
    """Yield what can be carried on a node, whenever its time is."""
    known = _recorded_effects(desk, story)
    waiting = list_outstanding_effects(desk.policy, story)
    for effect in _superseded_effects(known, waiting):
        yield PendingEffect(effect.intent, effect, is_superseded=True)
    if waiting:
        intent = _make_intent(story.node, waiting[0])
        before = known.get(intent.effect)
        yield PendingEffect(before.intent if before else intent, before)


def _recorded_effects(desk: ControllerContext, story: NodeState) -> Mapping[str, effect_journal.JournaledEffect]:
    if not story.unsettled_effects:
        return {}
    return effect_journal.parse_effects(desk.ledger.entries(story.node, effect_journal.EFFECT_KINDS))


def _superseded_effects(
    known: Mapping[str, effect_journal.JournaledEffect], waiting: Collection[OutstandingEffect]
) -> Iterator[effect_journal.JournaledEffect]:
    awaited = {effect_journal.derive_effect_id(one.decision, one.action) for one in waiting}
    return (effect for effect in known.values() if not effect.has_ended and effect.intent.effect not in awaited)


def _make_intent(node: str, one: OutstandingEffect) -> EffectIntent:
    return EffectIntent(
        effect_journal.derive_effect_id(one.decision, one.action), one.action, node, one.decision, one.reason
    )


MAX_VERIFICATIONS_AT_ONCE = 16


def run_effects(
    desk: ControllerContext,
    names: Collection[str] | None = None,
    stories: Mapping[str, NodeState] | None = None,
    *,
    wait: bool = True,
) -> str:
    """Bring about what is owed to the nodes (all of them by default), and settle what was left open.

    What a killed process left on other nodes is finished too, but for a ledger that controllers share, where each node
    is somebody's. `stories` are read from the ledger where they are not given. Waits until everything has ended or
    waits for something that is not ours to hurry; with `wait` off, inside `shared`, what takes long goes on meanwhile,
    and its end in the ledger is the time to call again.

    Returns when the next attempt of something that went wrong is due (ISO 8601), "" where there is none.
    """
    told = project_node_states(desk.ledger.entries()) if stories is None else stories
    mine = [
        story for story in told.values() if story.node in desk.fleet.nodes and _has_open_effects(desk, story, names)
    ]
    return (
        _EffectRun(desk, {story.node: story for story in mine}).run(wait=wait or find_engine_stack() is None)
        if mine
        else ""
    )


def _has_open_effects(desk: ControllerContext, story: NodeState, names: Collection[str] | None) -> bool:
    if names is None or story.node in names:
        return bool(story.unsettled_effects) or bool(list_outstanding_effects(desk.policy, story))
    return bool(story.unsettled_effects) and not is_shared(desk.ledger)


class _EffectRun:
    """One call of `run_effects`, in which each effect is carried once."""

    def __init__(self, desk: ControllerContext, stories: Mapping[str, NodeState]) -> None:
        self._desk, self._ctx = desk, desk.make_action_context()
        self._stories = dict(stories)
        self._handled: set[str] = set()
        self._retry_times: set[str] = set()
        self._running: dict[str, str] = {}

    def run(self, *, wait: bool) -> str:
        """Carry on until nothing is left to do now; return when something is due again."""
        news: Collection[str] = list(self._stories)
        with ExitStack() as stack:
            while news or (wait and self._running):
                todo = [
                    wish
                    for node in news
                    for wish in list_pending_effects(self._desk, self._stories[node])
                    if self._is_due(wish)
                ]
                news = self._run_batched(todo) | self._enqueue_workflows(
                    stack, [wish for wish in todo if not wish.is_batched]
                )
                if wait and self._running and not news:
                    news = self._wait_for_workflow()
                self._reread_states(news)
        return min(self._retry_times, default="")

    def _is_due(self, wish: PendingEffect) -> bool:
        """Say whether it is an effect's turn, and note when else."""
        if wish.due_at > self._desk.now:
            self._retry_times.add(wish.due_at)
            return False
        fresh = wish.intent.effect not in self._handled
        self._handled.add(wish.intent.effect)
        return fresh

    def _run_batched(self, todo: Sequence[PendingEffect]) -> set[str]:
        """Carry what is done to many nodes at once; return these nodes."""
        many = [(wish.intent, wish.recorded) for wish in todo if wish.is_batched]
        if many:
            run_cordon_batch(self._ctx, many)
        return {intent.node for intent, _ in many}

    def _enqueue_workflows(self, stack: ExitStack, todo: Sequence[PendingEffect]) -> set[str]:
        """Queue what needs a workflow of its own; return the nodes of what a look has ended."""
        if not todo:
            return set()
        from assay.controller.effects import dbos_workflows

        stack.enter_context(
            dbos_workflows.hold_engine(self._ctx, list_queue_limits(self._desk.fleet, self._desk.policy))
        )
        going_on = {wish.intent.effect: dbos_workflows.find_running_workflow(wish.intent.effect) for wish in todo}
        idle = [self._refresh(wish) for wish in todo if not going_on[wish.intent.effect]]
        seen = self._reverify_all([wish for wish in idle if wish.needs_verification])
        for wish in idle:
            if not wish.has_ended and not wish.is_superseded and seen.get(wish.intent.effect, "tried") == "tried":
                going_on[wish.intent.effect] = dbos_workflows.enqueue_effect(self._ctx, wish.intent)
        nodes = {wish.intent.effect: wish.intent.node for wish in todo}
        self._running |= {workflow: nodes[effect] for effect, workflow in going_on.items() if workflow}
        settled = {wish.intent.effect for wish in idle if wish.has_ended}
        settled |= {effect for effect, standing in seen.items() if standing in ("verified", "failed")}
        return {nodes[effect] for effect in settled}

    def _refresh(self, wish: PendingEffect) -> PendingEffect:
        """Return a wish with what the ledger has by now: its workflow may have ended since the story was read."""
        before = steps.find_journaled_effect(self._ctx, wish.intent)
        return replace(wish, intent=before.intent, recorded=before) if before else wish

    def _reverify_all(self, todo: Sequence[PendingEffect]) -> dict[str, str]:
        """Let the world tell of effects; return how each stands now."""
        with ThreadPoolExecutor(MAX_VERIFICATIONS_AT_ONCE) as threads:
            return dict(zip([wish.intent.effect for wish in todo], threads.map(self._reverify, todo), strict=True))

    def _reverify(self, wish: PendingEffect) -> str:
        assert wish.recorded  # only what was begun asks for a look
        return steps.reverify_effect(self._ctx, load_action(wish.intent.action), wish.recorded)

    def _wait_for_workflow(self) -> set[str]:
        """Wait for the next workflow to end; return its node, and those of others that have ended."""
        from assay.controller.effects import dbos_workflows

        ended = dbos_workflows.wait_for_any_workflow(self._ctx, self._running)
        return {self._running.pop(workflow) for workflow in ended}

    def _reread_states(self, nodes: Collection[str]) -> None:
        for node in nodes:
            self._stories[node] = project_node_states(self._desk.ledger.entries(node))[node]
