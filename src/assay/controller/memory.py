"""What a controller knows of its fleet, kept warm: only what is new in the ledger is read, whoever wrote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime
from threading import RLock

from assay.controller.cablings import Cablings
from assay.controller.desk import Desk
from assay.controller.in_use import jobs_on
from assay.controller.newest import Newest
from assay.controller.quiet import rests_from
from assay.controller.traits import FleetTraits
from assay.harness.declared import Declared
from assay.lifecycle.fold import Chronicle
from assay.lifecycle.racks import companions
from assay.lifecycle.situation import NodeView, Place, Situation
from assay.lifecycle.story import Story
from assay.model.entry import Entry
from assay.model.fleet import Node


class Memory:
    """The stories of a ledger and what follows from them. For any thread; what it returns stays as it is."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._lock = RLock()
        self._chronicle = Chronicle()
        self._stories: dict[str, Story] = {}
        self._rests: dict[str, datetime | None] = {}
        self._unread: list[Entry] = []
        self._newest, self._declared = Newest(desk.ledger), Declared(desk.fleet)
        self.cablings = Cablings()

    def look_after(self, desk: Desk) -> None:
        """Go on with another reading of the fleet's specs, on the same ledger."""
        with self._lock:
            self.desk, self._declared = desk, Declared(desk.fleet)
            self._rests.clear()

    def catch_up(self) -> None:
        """Hear what the ledger has that was not heard yet."""
        with self._lock:
            if self.desk.ledger.head() <= self._chronicle.seq:
                return
            news = self.desk.ledger.entries(after=self._chronicle.seq)
            self._chronicle.hear(news)
            self._unread += news
            for name in {entry.node for entry in news}:
                if story := self._chronicle.story(name):
                    self._stories[name] = story
                    self._rests.pop(name, None)

    def news(self) -> list[Entry]:
        """Return what was heard since this was asked last, in order."""
        with self._lock:
            self.catch_up()
            news, self._unread = self._unread, []
            return news

    @property
    def heard(self) -> int:
        """The number of the last entry that was heard."""
        return self._chronicle.seq

    def stories(self) -> dict[str, Story]:
        """Return the story of every node that was ever enrolled, up to now."""
        with self._lock:
            self.catch_up()
            return dict(self._stories)

    def situation(self, names: Collection[str] = ()) -> Situation:
        """Return the fleet as it is known now: by name whoever there may be something to decide about, and `names`.

        The rest comes as a count. Nodes that the inventory no longer has are left out.
        """
        with self._lock:
            self.catch_up()
            stories, now = self._stories, self.desk.clock.now()
            awake = self._awake(now)
            chosen = [node for name, node in self._enrolled() if name in awake or name in names]
            quiet = Counter(_place(node) for name, node in self._enrolled() if name not in awake and name not in names)
            told = {node.name: stories[node.name] for node in chosen}
        latest = self._newest.of(told, keep=awake)
        jobs = jobs_on(chosen, self.desk.workloads, self.desk.progress)
        profile, declared = self.desk.fleet.profile_of, self._declared.of
        views = tuple(
            NodeView(node, profile(name), told[name], declared(name), latest[name], jobs[name])
            for name, node in ((node.name, node) for node in chosen)
        )
        return self._situation(now, views, quiet)

    def awake(self) -> list[Story]:
        """Return the stories of the nodes about which there may be something to decide or to do."""
        with self._lock:
            self.catch_up()
            return [self._stories[name] for name in self._awake(self.desk.clock.now())]

    def everybody(self) -> Situation:
        """Return the fleet with every node in it, for those who look at stories only: no outcomes, no jobs."""
        with self._lock:
            self.catch_up()
            profile, stories = self.desk.fleet.profile_of, self._stories
            views = tuple(NodeView(node, profile(name), stories[name], jobs=None) for name, node in self._enrolled())
            return self._situation(self.desk.clock.now(), views, Counter())

    def _situation(self, now: datetime, views: tuple[NodeView, ...], quiet: Counter[Place]) -> Situation:
        fleet = self.desk.fleet
        return Situation(
            now,
            self.desk.policy,
            views,
            fleet.lines,
            fleet.known_issues,
            fleet.observed_checks,
            quiet=quiet,
            traits=FleetTraits(self.desk),
        )

    def _enrolled(self) -> Iterator[tuple[str, Node]]:
        return ((name, node) for name, node in self.desk.fleet.nodes.items() if name in self._stories)

    def _awake(self, now: datetime) -> set[str]:
        """Return the nodes that must come to `decide` by name: those that do not rest, and who shares their rack."""
        nodes = dict(self._enrolled())
        awake = {name for name in nodes if not self._rests_at(name, now)}
        stirred = [nodes[name] for name in awake]
        return awake | companions(self.desk.policy, nodes.values(), stirred)

    def _rests_at(self, name: str, now: datetime) -> bool:
        if name not in self._rests:
            self._rests[name] = rests_from(self.desk.policy, self._stories[name])
        since = self._rests[name]
        return since is not None and since < now


def _place(node: Node) -> Place:
    return (node.pool, node.site, node.rack)
