"""Chaos while changes roll out: commits are merged and reverted, nodes refuse them, people accept what failed."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout, RolloutHistory
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.decide.state.node_projection import project_node_states
from assay.decide.state.node_state import NodeState
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from tests.integration.chaos.chaos import Chaos
from tests.integration.chaos.chaos_controller import ORIGIN
from tests.integration.chaos.chaos_settling import HANDS, Bench, Look, approve_late_orders
from tests.integration.chaos.rolling_repository import FIRST, RollingRepository
from tests.integration.chaos.rolling_world import FAILURES, LoggingScheduler, RollingWorld
from tests.integration.chaos.rollout_judge import RolloutStory, find_wrongs

MORE_KILLS = 5


class RollingChaos(Chaos):
    """A story in which one rollout follows the other. The second takes over the first, the third reverts it."""

    program = "tests.integration.chaos.rolling_controller"
    once = ()  # a node may have the change before its effect begins; the judge of rollouts holds effects to the world
    world: RollingWorld
    merges = 3
    """So many changes are merged, however many more kills that takes."""

    def __post_init__(self) -> None:
        self.repository = RollingRepository(self.root, self.nodes)
        self.repository.lay_out()
        self.prepare()
        self.world.install(self.names, FIRST)
        with closing(Ledger.open(self.place)) as ledger:
            at = datetime.fromisoformat(ORIGIN)
            for name, node in self.fleet.nodes.items():
                ledger.append(make_enrolled_entry(name, node.pool, "production", at, node.serial))

    def make_world(self) -> None:
        self.fleet, self.world = load_fleet(self.root), RollingWorld(self.root)

    @property
    def scheduler(self) -> LoggingScheduler:
        return LoggingScheduler(self.world)

    def rage(self, kills: int, of_postgres: int = 0, most_s: float = 2.0, **how: Any) -> None:
        """Let controllers be killed until the last change rolls out; on a busy machine, let them live longer then."""
        super().rage(kills, of_postgres, most_s, **how)
        while not self._has_last_begun():
            most_s *= 1.2
            super().rage(MORE_KILLS, 0, most_s, **how)

    def _has_last_begun(self) -> bool:
        """Whether a node is proven to have the last change."""
        with closing(Ledger.open(self.place)) as ledger:
            newest = list(ROLLOUTS.fold(ledger.entries()).rollouts.values())[-1:]
        is_last = len(self.repository.versions) > self.merges
        return is_last and any(
            one.commit == self.repository.head and len(one.unproven) < len(one.members) for one in newest
        )

    def _something_happens(self) -> None:
        node, dice = self.chance.choice(self.names), self.chance.random()
        if dice < 0.07:
            self.world.use(node, f"j{self.chance.randrange(1000)}")
        elif dice < 0.5:
            self.world.use(node, "")
        elif dice < 0.55:
            self._people()
        elif dice < 0.555:
            self.world.plant(node, self.chance.choice(FAILURES), self.chance.randint(1, 4))
        elif dice < 0.56:
            self.scheduler.close_by_hand(node, "ann swaps a disk")
        elif dice < 0.68:
            self.scheduler.open_by_hand(node)

    def _people(self) -> None:
        """People merge what comes next, mend what waits for them, hold nodes, and resume what failures paused."""
        with suppress(AssayError), closing(Ledger.open(self.place, patience_s=2)) as ledger:  # when busy: another time
            entries = ledger.entries()
            history = ROLLOUTS.fold(entries)
            self._merge(history)
            words = [word for story in project_node_states(entries).values() for word in self._words(story)]
            ledger.append(*words, *self._resume(history))

    def _merge(self, history: RolloutHistory) -> None:
        """Merge the next change when the last one has ended; the second one when the first one is half done."""
        if not history.adopted or history.adopted.body["commit"] != self.repository.head:
            return
        active, number = history.find_active(), len(self.repository.versions)
        if number == 3 and active is None:
            self.repository.revert()
        elif active is None or (number == 2 and _is_half_done(active)):
            part = "bmc" if number % 2 else "bios"
            self.repository.merge(self.repository.versions[self.repository.head] | {part: str(number + 1)})

    def _words(self, story: NodeState) -> list[LedgerEntry]:
        if story.state in HANDS and not story.pending and not story.certified and self.chance.random() < 0.5:
            self.world.repair(story.node, self.repository.versions[self.repository.head])
            return [self._word("certified", story.node)]
        if story.trust.outlived:
            return list(approve_late_orders(story, self._word)) if self.chance.random() < 0.5 else []
        if story.hold:
            return [self._word("release", story.node)] if self.chance.random() < 0.5 else []
        return [self._word("hold", story.node)] if self.chance.random() < 0.01 else []

    def _resume(self, history: RolloutHistory) -> list[LedgerEntry]:
        rollout = history.find_active()
        if rollout is None or rollout.pause is None or rollout.pause.rule != "failures":
            return []
        word = self._word("rollout.resumed", "")
        return [replace(word, body={**word.body, "rollout": rollout.id})]

    def settle(self) -> None:
        """Let nothing happen any more. All administrators have opened their nodes."""
        for name in self.names:
            self.world.plant(name, "", 0)
            self.world.use(name, "")
            self.scheduler.open_by_hand(name)
        super().settle()

    def _look(self, bench: Bench) -> Look:
        with suppress(AssayError), closing(Ledger.open(self.place, patience_s=2)) as ledger:
            entries = ledger.entries()
            for story in project_node_states(entries).values():
                if story.state in HANDS:
                    self.world.repair(story.node, self.repository.versions[self.repository.head])
            ledger.append(*self._resume(ROLLOUTS.fold(entries)))
        return super()._look(bench)

    def wrongs(self) -> list[str]:
        """Return everything that must not be, also of the rollouts."""
        with closing(Ledger.open(self.place)) as ledger:
            entries = ledger.entries()
        told = RolloutStory(self.fleet, self.repository.versions, entries, self.world.events())
        return [*super().wrongs(), *find_wrongs(told)]


def _is_half_done(rollout: Rollout) -> bool:
    members = rollout.members.values()
    proven = sum(bool(one.proof) for one in members)
    return proven * 3 >= len(members) and any(one.order and not one.proof for one in members)
