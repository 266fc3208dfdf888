"""The circuit breakers of a replay: which are open, whom they hold, and when the checks look again."""

from __future__ import annotations

from datetime import datetime, timedelta

from assay.decide.moves import circuit_breaker
from assay.decide.replay.event_queue import EventQueue
from assay.decide.replay.replay_nodes import ReplayRules
from assay.decide.replay.replay_result import BreakerTrip
from assay.decide.replay.simulated_fleet import SimulatedFleet

ONE_SECOND = timedelta(seconds=1)


class BreakerWatch:
    """The open breakers by pool, with the nodes that each holds."""

    def __init__(self, rules: ReplayRules, stage: SimulatedFleet, agenda: EventQueue) -> None:
        self._rules, self._stage, self._agenda = rules, stage, agenda
        self._window = timedelta(minutes=rules.policy.breaker.window_minutes) + ONE_SECOND
        self._trips: list[tuple[datetime, str, str, list[str]]] = []
        self._open: dict[str, list[str]] = {}
        self._pools_to_check: set[str] = set()

    @property
    def trips(self) -> tuple[BreakerTrip, ...]:
        """Every breaker that opened so far, in order."""
        return tuple(BreakerTrip(at, pool, said, tuple(names)) for at, pool, said, names in self._trips)

    def hold(self, node: str, pool: str, because: str, now: datetime) -> None:
        """Remember a node that the breaker of a pool holds back."""
        if pool not in self._open:
            self._open[pool] = []
            self._trips.append((now, pool, because.removeprefix("breaker: "), self._open[pool]))
        self._open[pool].append(node)
        self.look_again_at(pool, now + self._window)

    def look_again_at(self, pool: str, at: datetime) -> None:
        """Let the checks look again at a pool whose breaker is open, unless they will before."""
        if pool in self._open and pool not in self._pools_to_check:
            self._pools_to_check.add(pool)
            self._agenda.add(at, "reset", pool)

    def close(self, pool: str, now: datetime) -> set[str]:
        """Let the checks look again at what the breaker holds, which closes once that is no wave any more.

        Return the nodes on which they find something then. What only a log told is not replayed.
        """
        self._pools_to_check.discard(pool)
        actors = self._stage.simulated_nodes
        found = {name for name, actor in actors.items() if actor.node.pool == pool and self._run_checks(name, now)}
        snapshot = self._stage.fleet_snapshot(now, found)
        finders = (circuit_breaker.find_new_waves, circuit_breaker.find_ongoing_waves, circuit_breaker.find_class_waves)
        if not any(pool in find(snapshot) for find in finders):
            del self._open[pool]
            return found
        disturbed = (actors[name].last_disturbed_at for name in self._open[pool])
        if any(now - at < self._window for at in disturbed):
            self.look_again_at(pool, now + self._window)
        return set()

    def _run_checks(self, name: str, now: datetime) -> bool:
        """Let the checks look at a node; return whether they find something."""
        actor, known = self._stage.simulated_nodes[name], self._rules.catalog.find_class
        here = [(fault, part) for fault, part in actor.present_faults if (rule := known(fault)) and rule.check]
        news = [actor.still_fails(*one, now, now - self._window) for one in here]
        if any(news):
            self._stage.invalidate(name)
        return bool(here)
