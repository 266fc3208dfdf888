"""The second half of a pass: what was decided is brought about, node by node at once, each effect in its order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

from assay.actions.action import Context, Intent
from assay.actions.catalogue import action
from assay.controller import effect as steps
from assay.controller import journal
from assay.controller.desk import Desk
from assay.lifecycle.fold import fold
from assay.lifecycle.owed import Owed, owed
from assay.lifecycle.story import Story

AT_ONCE = 16
ATTEMPTS = 3


def act(desk: Desk, names: Collection[str] | None = None) -> None:
    """Bring about what is owed to the nodes (all of them by default), and settle what was left open.

    What a killed process left is finished first, whatever `names` says. Waits until everything has ended or waits
    for something that is not ours to hurry.
    """
    stories = fold(desk.ledger.entries())
    busy = [story for story in stories.values() if story.node in desk.fleet.nodes and _has_work(desk, story, names)]
    if not busy:
        return
    from assay.controller.durable import durable, wait_for

    with durable(desk.context()) as left:
        for workflow in left:
            wait_for(workflow)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for done in [threads.submit(_settle, desk, story.node) for story in busy]:
                done.result()


def _has_work(desk: Desk, story: Story, names: Collection[str] | None) -> bool:
    mine = names is None or story.node in names
    return bool(story.in_flight) or (mine and bool(owed(desk.policy, story)))


def _settle(desk: Desk, node: str) -> None:
    story = fold(desk.ledger.entries(node))[node]
    waiting = owed(desk.policy, story)
    _look_at_overtaken(desk.context(), story, waiting)
    for one in waiting:
        if not _bring_about(desk.context(), node, one):
            return


def _look_at_overtaken(ctx: Context, story: Story, waiting: Sequence[Owed]) -> None:
    """Settle by a look what an earlier decision began and nobody waits for any more."""
    awaited = {journal.effect_id(one.decision, one.action) for one in waiting}
    known = journal.effects_in(ctx.ledger.entries(story.node, journal.KINDS))
    for effect in story.in_flight:
        if effect.id not in awaited:
            steps.look_again(ctx, action(effect.action), known[effect.id])


def _bring_about(ctx: Context, node: str, one: Owed) -> bool:
    """Carry one effect as far as it goes; return whether it is verified, so that the next may begin.

    One whose end is unknown is only looked at: no second deed before the world says that the first was not done.
    """
    from assay.controller.durable import attempts, carry

    intent = Intent(journal.effect_id(one.decision, one.action), one.action, node, one.decision, one.reason)
    before = steps.recorded(ctx, intent)
    so_far = attempts(intent.effect)
    if before and before.standing == "unknown":
        seen = steps.ask(ctx, action(one.action), before.intent)
        if seen.done is not False or so_far >= ATTEMPTS:
            return bool(steps.look_again(ctx, action(one.action), before).done)
    carry(intent, so_far + 1)
    after = steps.recorded(ctx, intent)
    return after is not None and after.standing == "verified"
