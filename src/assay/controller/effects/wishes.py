"""Which effects of a node can be carried on now: the next that it is owed, and what an earlier decision left open."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from assay.actions.action import Intent
from assay.actions.catalogue import IN_ONE_GO
from assay.controller.desk import Desk
from assay.controller.effects import journal
from assay.lifecycle.owed import Owed, owed
from assay.lifecycle.story import Story


@dataclass(frozen=True, slots=True)
class Wish:
    """One effect, and what the ledger has of it. One that nobody waits for any more is only looked at."""

    intent: Intent
    before: journal.Effect | None
    overtaken: bool = False

    @property
    def in_one_go(self) -> bool:
        """Whether it is carried with others, without a workflow of its own."""
        return self.intent.action in IN_ONE_GO and not self.overtaken

    @property
    def ended(self) -> bool:
        """Whether a reading of the world has settled it."""
        return bool(self.before and self.before.ended)

    @property
    def due_at(self) -> str:
        """When its next attempt may be made, "" for any time."""
        return self.before.again_at if self.before and self.before.standing == "tried" else ""

    @property
    def asks_for_a_look(self) -> bool:
        """Whether only the world can tell what is to be done about it: its last attempt may have worked."""
        if self.before is None or self.ended:
            return False
        return self.overtaken or self.before.standing in ("done", "unknown")


def wishes(desk: Desk, story: Story) -> Iterator[Wish]:
    """Yield what can be carried on a node, whenever its time is."""
    known = _known(desk, story)
    waiting = owed(desk.policy, story)
    for effect in _overtaken(known, waiting):
        yield Wish(effect.intent, effect, overtaken=True)
    if waiting:
        intent = _intent(story.node, waiting[0])
        before = known.get(intent.effect)
        yield Wish(before.intent if before else intent, before)


def _known(desk: Desk, story: Story) -> Mapping[str, journal.Effect]:
    if not story.in_flight:
        return {}
    return journal.effects_in(desk.ledger.entries(story.node, journal.KINDS))


def _overtaken(known: Mapping[str, journal.Effect], waiting: Collection[Owed]) -> Iterator[journal.Effect]:
    awaited = {journal.effect_id(one.decision, one.action) for one in waiting}
    return (effect for effect in known.values() if not effect.ended and effect.intent.effect not in awaited)


def _intent(node: str, one: Owed) -> Intent:
    return Intent(journal.effect_id(one.decision, one.action), one.action, node, one.decision, one.reason)
