"""What a controller knows of its fleet, kept warm: only what is new in the ledger is read, whoever wrote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime
from threading import RLock

from assay.controller.desk import Desk
from assay.controller.known.cablings import Cablings
from assay.controller.known.in_use import cordon_of, jobs_of, standings_of
from assay.controller.known.newest import Newest
from assay.controller.known.quiet import rests_from
from assay.controller.known.roster import Roster
from assay.controller.known.stories import Ear, stories_in
from assay.controller.known.traits import FleetTraits
from assay.harness.declared import Declared
from assay.lifecycle.racks import companions
from assay.lifecycle.situation import NodeView, Place, Situation
from assay.lifecycle.story import Story
from assay.lifecycle.when import NEVER
from assay.model.entry import Entry


class Memory:
    """The stories of a ledger and what follows from them. For any thread; what it returns stays as it is."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._lock = RLock()
        self._ear: Ear | None = None
        self._stories: dict[str, Story] = {}
        self._roster: Roster | None = None
        self._stirring: set[str] = set()
        self._as_of = NEVER
        self._unread: list[Entry] = []
        self._newest, self._declared = Newest(desk.ledger), Declared(desk.fleet)
        self.cablings = Cablings()

    def look_after(self, desk: Desk) -> None:
        """Go on with another reading of the fleet's specs, on the same ledger."""
        with self._lock:
            self.desk, self._declared = desk, Declared(desk.fleet)
            self._roster = None

    def catch_up(self) -> None:
        """Hear what the ledger has that was not heard yet."""
        with self._lock:
            if self._ear is None:
                self._ear = stories_in(self.desk.ledger).ear()
                self._stories = self._ear.stories
            before, news = len(self._stories), self._ear.hear()
            self._unread += news
            self._stirring |= {entry.node for entry in news}
            self._roster = self._roster if len(self._stories) == before else None

    def news(self) -> list[Entry]:
        """Return what was heard since this was asked last, in order; what was there at the beginning is no news."""
        with self._lock:
            self.catch_up()
            news, self._unread = self._unread, []
            return news

    @property
    def heard(self) -> int:
        """The number of the last entry that was heard."""
        return self._ear.seq if self._ear else 0

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
            now = self.desk.clock.now()
            awake, roster = self._awake(now), self._enrolled()
            chosen = roster.some({*awake, *names})
            told = {node.name: self._stories[node.name] for node in chosen}
        latest = self._newest.of(told, keep=awake)
        stands = standings_of(chosen, self.desk.workloads, self.desk.progress)
        profile, declared = self.desk.fleet.profile_of, self._declared.of
        views = tuple(
            NodeView(node, profile(name), told[name], declared(name), latest[name], jobs_of(one), cordon_of(one))
            for name, node, one in ((node.name, node, stands.get(node.name)) for node in chosen)
        )
        return self._situation(now, views, roster.without(chosen))

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
            nodes = self._enrolled().nodes
            views = tuple(NodeView(node, profile(name), stories[name], jobs=None) for name, node in nodes.items())
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

    def _enrolled(self) -> Roster:
        if self._roster is None:
            self._roster = Roster(self.desk.fleet.nodes, self._stories)
            self._stirring = set(self._roster.nodes)
        return self._roster

    def _awake(self, now: datetime) -> set[str]:
        """Return the nodes that must come to `decide` by name: those that do not rest, and who shares their rack.

        Who rests goes on to, until something is heard of it, or the clock is put back.
        """
        nodes = self._enrolled().nodes
        self._stirring = set(nodes) if now < self._as_of else self._stirring & nodes.keys()
        self._as_of = now
        self._stirring = {name for name in self._stirring if not self._rests(name, now)}
        stirred = [nodes[name] for name in self._stirring]
        return self._stirring | companions(self.desk.policy, nodes.values(), stirred)

    def _rests(self, name: str, now: datetime) -> bool:
        since = rests_from(self.desk.policy, self._stories[name])
        return since is not None and since < now
