"""The second half of a pass: what was decided is brought about, many nodes at once, on each node in its order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

from assay.actions.catalogue import action
from assay.controller.desk import Desk
from assay.controller.effects import effect as steps
from assay.controller.effects.batch import carry_many
from assay.controller.effects.keep import kept
from assay.controller.effects.queues import paces
from assay.controller.effects.wishes import Wish, wishes
from assay.ledger.url import is_shared
from assay.lifecycle.fold import fold
from assay.lifecycle.owed import owed
from assay.lifecycle.story import Story

AT_ONCE = 16


def act(
    desk: Desk,
    names: Collection[str] | None = None,
    stories: Mapping[str, Story] | None = None,
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
    told = fold(desk.ledger.entries()) if stories is None else stories
    mine = [story for story in told.values() if story.node in desk.fleet.nodes and _has_work(desk, story, names)]
    return _Acting(desk, {story.node: story for story in mine}).go(wait=wait or kept() is None) if mine else ""


def _has_work(desk: Desk, story: Story, names: Collection[str] | None) -> bool:
    if names is None or story.node in names:
        return bool(story.in_flight) or bool(owed(desk.policy, story))
    return bool(story.in_flight) and not is_shared(desk.ledger)


class _Acting:
    """One call of `act`, in which each effect is carried once."""

    def __init__(self, desk: Desk, stories: Mapping[str, Story]) -> None:
        self._desk, self._ctx = desk, desk.context()
        self._stories = dict(stories)
        self._carried: set[str] = set()
        self._due: set[str] = set()
        self._under_way: dict[str, str] = {}

    def go(self, *, wait: bool) -> str:
        """Carry on until nothing is left to do now; return when something is due again."""
        news: Collection[str] = list(self._stories)
        with ExitStack() as stack:
            while news or (wait and self._under_way):
                todo = [wish for node in news for wish in wishes(self._desk, self._stories[node]) if self._now(wish)]
                news = self._in_one_go(todo) | self._each(stack, [wish for wish in todo if not wish.in_one_go])
                if wait and self._under_way and not news:
                    news = self._ended()
                self._hear(news)
        return min(self._due, default="")

    def _now(self, wish: Wish) -> bool:
        """Say whether it is an effect's turn, and note when else."""
        if wish.due_at > self._desk.now:
            self._due.add(wish.due_at)
            return False
        fresh = wish.intent.effect not in self._carried
        self._carried.add(wish.intent.effect)
        return fresh

    def _in_one_go(self, todo: Sequence[Wish]) -> set[str]:
        """Carry what is done to many nodes at once; return these nodes."""
        many = [(wish.intent, wish.before) for wish in todo if wish.in_one_go]
        if many:
            carry_many(self._ctx, many)
        return {intent.node for intent, _ in many}

    def _each(self, stack: ExitStack, todo: Sequence[Wish]) -> set[str]:
        """Queue what needs a workflow of its own; return the nodes of what a look has ended."""
        if not todo:
            return set()
        from assay.controller.effects import durable

        stack.enter_context(durable.durable(self._ctx, paces(self._desk.fleet, self._desk.policy)))
        going_on = {wish.intent.effect: durable.under_way(wish.intent.effect) for wish in todo}
        idle = [self._newest(wish) for wish in todo if not going_on[wish.intent.effect]]
        seen = self._look_at([wish for wish in idle if wish.asks_for_a_look])
        for wish in idle:
            if not wish.ended and not wish.overtaken and seen.get(wish.intent.effect, "tried") == "tried":
                going_on[wish.intent.effect] = durable.carry(self._ctx, wish.intent)
        nodes = {wish.intent.effect: wish.intent.node for wish in todo}
        self._under_way |= {workflow: nodes[effect] for effect, workflow in going_on.items() if workflow}
        settled = {wish.intent.effect for wish in idle if wish.ended}
        settled |= {effect for effect, standing in seen.items() if standing in ("verified", "failed")}
        return {nodes[effect] for effect in settled}

    def _newest(self, wish: Wish) -> Wish:
        """Return a wish with what the ledger has by now: its workflow may have ended since the story was read."""
        before = steps.recorded(self._ctx, wish.intent)
        return replace(wish, intent=before.intent, before=before) if before else wish

    def _look_at(self, todo: Sequence[Wish]) -> dict[str, str]:
        """Let the world tell of effects; return how each stands now."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return dict(zip([wish.intent.effect for wish in todo], threads.map(self._look, todo), strict=True))

    def _look(self, wish: Wish) -> str:
        assert wish.before  # only what was begun asks for a look
        return steps.look_again(self._ctx, action(wish.intent.action), wish.before)

    def _ended(self) -> set[str]:
        """Wait for the next workflow to end; return its node, and those of others that have ended."""
        from assay.controller.effects import durable

        ended = durable.wait_for_any(self._ctx, self._under_way)
        return {self._under_way.pop(workflow) for workflow in ended}

    def _hear(self, nodes: Collection[str]) -> None:
        for node in nodes:
            self._stories[node] = fold(self._desk.ledger.entries(node))[node]
