"""Tells a replay from recorded jobs which nodes are in use, and looks again when these jobs end."""

from __future__ import annotations

from datetime import datetime

from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.trends.replay.event_queue import EventQueue
from assay.trends.replay.exposure import ExposureMeter
from assay.trends.replay.jobs_hit import JobLoad
from assay.trends.replay.simulated_fleet import SimulatedFleet


class JobWatch:
    """The jobs on nodes to which something happens; nobody asks for those of quiet nodes."""

    def __init__(
        self,
        jobs: JobLoad | None,
        policy: LifecyclePolicy,
        stage: SimulatedFleet,
        agenda: EventQueue,
        exposure: ExposureMeter,
    ) -> None:
        self._jobs = jobs if jobs and jobs.says_use else None
        self._policy, self._stage, self._agenda, self._exposure = policy, stage, agenda, exposure
        self._next_looks: dict[str, datetime] = {}

    @property
    def says_use(self) -> bool:
        """Whether the jobs say when nodes are in use. Else the history's events do."""
        return self._jobs is not None

    def note_event(self, name: str, in_use: bool | None, now: datetime) -> bool:
        """Note whether a node is in use at an event that says `in_use`; return whether that changes."""
        return self._set_use(name, now) if self._jobs else self._stage.set_use(name, in_use)

    def look_again(self, name: str, now: datetime) -> None:
        """Look at the jobs of a node that has a fault, or waits to be idle."""
        waits = self._stage.node_state(name).pending or self._stage.simulated_nodes[name].present_faults
        if self._jobs and waits:
            self._set_use(name, now)

    def _set_use(self, name: str, now: datetime) -> bool:
        serves = self._policy.states[self._stage.node_state(name).state].in_service
        if self._jobs is None or not serves:
            return False
        end = self._jobs.find_end(self._exposure.find_opening(name, now), now)
        if end and self._next_looks.get(name) != end:
            self._next_looks[name] = end
            self._agenda.add(end, "look", name)
        return self._stage.set_use(name, end is not None)
