"""The nodes of a replay with their stories: tells the situation at any moment, the quiet ones as a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime, timedelta

from assay.lifecycle import journal
from assay.lifecycle.classify import FaultSeen, faults_of, own
from assay.lifecycle.fold import Chronicle
from assay.lifecycle.racks import companions
from assay.lifecycle.sightings import Sighting
from assay.lifecycle.situation import NodeView, Place, Situation
from assay.lifecycle.story import Story
from assay.lifecycle.when import moment
from assay.model.entry import Entry
from assay.model.fleet import Node
from assay.model.subject import Subject
from assay.trends.replay.actor import Actor
from assay.trends.replay.cast import Cast
from assay.trends.replay.rules import Rules

HOUR = timedelta(hours=1)


class Stage:
    """Every node, by name. What is heard of one (an Entry, as in the ledger) is folded into its story at once."""

    def __init__(self, rules: Rules, cast: Cast, at: datetime) -> None:
        self._rules = rules
        self.actors = {node.name: _actor(rules, node) for node in cast.nodes.values()}
        self._chronicle = Chronicle()
        self._views: dict[str, NodeView] = {}
        self._awake: dict[str, None] = dict.fromkeys(self.actors)
        self._quiet: Counter[Place] = Counter({(pool, "", ""): count for pool, count in cast.unseen.items()})
        self._memory = max(HOUR, timedelta(minutes=rules.policy.breaker.window_minutes))
        for actor in self.actors.values():
            name, pool = actor.node.name, actor.node.pool
            self._chronicle.hear([journal.enrolled(name, pool, cast.starts.get(name, rules.home), at)])

    def hear(self, *entries: Entry) -> None:
        """Take in what happened."""
        self._chronicle.hear(entries)
        for entry in entries:
            self.changed(entry.node)

    def changed(self, name: str) -> None:
        """Note that a node's story or its far end changed: its use, or what its suites said."""
        self._views.pop(name, None)
        self.actors[name].settled.clear()

    def see(self, name: str, sighting: Sighting) -> list[FaultSeen]:
        """Take in one sighting; return what it adds. Echoes and what belongs to a repair add nothing.

        One that repeats a fault which was told in full is counted later, with others, before anybody looks.
        """
        actor = self.actors[name]
        key = (sighting.fault_class, sighting.part)
        if key in actor.settled:
            actor.again.append(sighting)
            return []
        seen = self._count(name, [sighting])
        catalog = self._rules.catalog
        actor.settled |= {key for one in seen if one.severity == catalog.treatment(one.fault_class).severity}
        return seen

    def _count(self, name: str, sightings: list[Sighting]) -> list[FaultSeen]:
        node, story, catalog = self.actors[name].node, self.story(name), self._rules.catalog
        seen = faults_of(catalog, node, story, own(catalog, node, story, sightings))
        self.hear(*(journal.fault(one, moment(one.last_seen)) for one in seen))
        return seen

    def view(self, name: str) -> NodeView:
        """Return what a decision may look at."""
        if self.actors[name].again:
            self._count_again(name)
        if name not in self._views:
            story = self._chronicle.story(name)
            assert story is not None, "every node was enrolled"
            self._views[name] = self.actors[name].view(story)
        return self._views[name]

    def _count_again(self, name: str) -> None:
        actor = self.actors[name]
        waiting, actor.again = actor.again, []
        settled = set(actor.settled)
        self._count(name, waiting)
        actor.settled |= settled

    def story(self, name: str) -> Story:
        """Return a node's story so far."""
        return self.view(name).story

    def situation(self, now: datetime, asked: Collection[str] = ()) -> Situation:
        """Return the fleet at a moment; `asked` are in it by name, whether quiet or not."""
        self._wake(asked)
        still = [name for name in self._awake if name not in asked and self._is_quiet(name, now)]
        needed = self.companions(self._awake.keys() - set(still))
        for name in still:
            if name not in needed:
                del self._awake[name]
                self._quiet[_place(self.actors[name].node)] += 1
        self._wake(needed)
        views = tuple(self.view(name) for name in self._awake)
        return Situation(now, self._rules.policy, views, self._rules.lines, quiet=self._quiet)

    def companions(self, names: Collection[str]) -> set[str]:
        """Return the nodes that share a rack which is one machine with any of these."""
        nodes = (actor.node for actor in self.actors.values())
        return companions(self._rules.policy, nodes, (self.actors[name].node for name in names))

    def _wake(self, names: Collection[str]) -> None:
        for name in sorted(set(names) - self._awake.keys()):
            self._awake[name] = None
            self._quiet[_place(self.actors[name].node)] -= 1

    def _is_quiet(self, name: str, now: datetime) -> bool:
        story, actor = self.view(name).story, self.actors[name]
        serves = self._rules.policy.states[story.state].in_service
        return serves and story.pending is None and not actor.fails and now - actor.stirred > self._memory


def _place(node: Node) -> Place:
    return (node.pool, node.site, node.rack)


def _actor(rules: Rules, node: Node) -> Actor:
    subject = Subject(node.pool, node.name)
    declared = tuple((check, subject) for check in rules.checks.values())
    return Actor(node, rules.profiles[node.profile], declared)
