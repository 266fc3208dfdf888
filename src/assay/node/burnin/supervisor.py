"""Carries out a plan: starts units of load, rests and swings them, watches the node, and writes down what it sees.

It judges nothing. Time is the node's monotonic time, or that of a lab, which runs faster and may jump ahead by hours.
A gap in which this process did not run counts for `MAX_GAP_S` at most, so that a frozen hour is no hour of load.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model.reading import parse_reading
from assay.node.burnin.journal import CLOCK, STOP, BurnInFolder, Journal
from assay.node.burnin.node_tasks import ForkedTask, NodeMachine, PhaseTime, find_phase

TICK_S = 1.0
LEAST_UNIT_S = 2.0
"""A shorter rest of a phase or a cycle gets no unit."""
QUICK_S = 1.0
"""A unit that ends sooner did nothing. The next one waits, so that a missing tool does not fill the journal."""


def time_with_load(now: PhaseTime, wall: float, shift: float) -> float:
    """Return for how many seconds the load may run from now on; 0 in the rest of a cycle. `wall`: the time of day."""
    cycles: Sequence[float] = now.phase.get("cycles") or ()
    if not cycles:
        return now.left_s
    on_s, off_s = cycles
    position = (wall + shift * (on_s + off_s)) % (on_s + off_s)
    return min(now.left_s, max(0.0, on_s - position))


def is_swung_low(seconds: float, hertz: float, duty: float, shift: float) -> bool:
    """Whether a swing is in its part without load. All nodes count `seconds` from the same moment."""
    return hertz > 0 and (seconds * hertz + shift) % 1.0 >= duty


def time_to_edge(seconds: float, hertz: float, duty: float, shift: float) -> float:
    """Return the seconds until a swing changes next."""
    position = (seconds * hertz + shift) % 1.0
    return ((duty if position < duty else 1.0) - position) / hertz


@dataclass
class RunningUnit:
    """A unit of one row: which part, since when, and how it swings."""

    part: str
    phase: str
    task: ForkedTask
    began_at: float
    began_t: float
    unit_s: float
    turn_s: float
    hertz: Sequence[float]
    duty: float
    is_low: bool = False

    def find_hertz(self, wall: float) -> float:
        """Return the swings per second now: one after the other, at the same time on all nodes."""
        return self.hertz[int(wall // self.turn_s) % len(self.hertz)] if self.hertz else 0.0


class Supervisor:
    """Works on one plan, from where it stands: as the clock file, the journal or the caller (`done_s`) say."""

    def __init__(self, folder: BurnInFolder, plan: Mapping[str, Any], machine: NodeMachine) -> None:
        self.folder = folder
        self.plan = plan
        self.machine = machine
        self.journal = Journal(folder, machine.now)
        self.t = max(folder.read_clock(), self.journal.last_t, float(plan.get("done_s", 0.0)))
        self.shift = float(plan.get("shift", 0.0))
        self.units: dict[int, RunningUnit] = {}
        self.next_part: dict[int, int] = {}
        self.free_at: dict[int, float] = {}
        self.watch: ForkedTask | None = None
        self.watch_at = 0.0
        self.phase = ""

    def run(self) -> None:
        """Work until the plan is done, somebody stops it, or the node has started again."""
        boot = self.machine.boot_id()
        if find_phase(self.plan, self.t) is None and self.journal.is_ended:
            return
        self.journal.add(self.t, self.phase, sync=True, run={"boot": boot, **self.machine.identify()})
        last = self.machine.now()
        while True:
            now = self.machine.now()
            self.t += min(max(now - last, 0.0), self.machine.most_gap_s)
            last = now
            with contextlib.suppress(OSError):  # a full disk stops no test; the journal's last line tells the time too
                self.folder.replace(CLOCK, f"{self.t:.2f}")
            if self.machine.boot_id() != boot:
                self._end_tasks()
                return
            if self.folder.exists(STOP):
                self._finish("stopped")
                return
            if not self._tick(now):
                self._finish("done")
                return
            self.machine.sleep(self._time_to_next_edge())

    def _tick(self, now: float) -> bool:
        """Do what is due; return whether anything is left."""
        self._collect_results(now)
        self._look(now)
        phase = find_phase(self.plan, self.t)
        if phase is None:
            return bool(self.units)
        if phase.name != self.phase:
            self.phase = phase.name
            self.journal.add(self.t, self.phase, sync=True, begins=phase.number)
        self._start_units(phase, now)
        self._swing()
        return True

    def _start_units(self, phase: PhaseTime, now: float) -> None:
        """Start a unit in each row that is free, if there is time for one."""
        allowed_s = time_with_load(phase, self.machine.wall(), self.shift)
        if allowed_s < LEAST_UNIT_S:
            return
        for row, parts in enumerate(phase.phase["rows"]):
            if row in self.units or now < self.free_at.get(row, 0.0):
                continue
            turn = self.next_part.get(row, 0)
            self.next_part[row] = turn + 1
            seconds = min(float(phase.phase["unit_s"]), allowed_s)
            part = parts[turn % len(parts)]
            task = self.machine.start_unit(part, max(1, int(seconds)), self.t)
            hertz, duty = phase.phase.get("hertz") or (), float(phase.phase.get("duty", 1.0))
            turn_s = float(phase.phase["unit_s"])
            self.units[row] = RunningUnit(part, phase.name, task, now, self.t, seconds, turn_s, hertz, duty)

    def _collect_results(self, now: float) -> None:
        for row, unit in list(self.units.items()):
            result = unit.task.poll()
            if result is None:
                continue
            del self.units[row]
            took = now - unit.began_at
            if took < QUICK_S or parse_reading(result) is not None:
                self.free_at[row] = unit.began_at + unit.unit_s
            self.journal.add(self.t, unit.phase, unit=unit.part, s=round(self.t - unit.began_t, 2), result=result)

    def _look(self, now: float) -> None:
        """Write down a reading of the node that is there, and start the next one when it is due."""
        if self.watch and (readings := self.watch.poll()) is not None:
            self.watch = None
            self.journal.add(self.t, self.phase, sync=True, watch={**readings, "loaded": bool(self.units)})
        if self.watch is None and now >= self.watch_at:
            self.watch = self.machine.start_watch()
            self.watch_at = now + float(self.plan["watch_s"])

    def _swing(self) -> None:
        wall = self.machine.wall()
        for unit in self.units.values():
            is_low = is_swung_low(wall, unit.find_hertz(wall), unit.duty, self.shift)
            if is_low != unit.is_low:
                unit.is_low = is_low
                if is_low:
                    unit.task.pause()
                else:
                    unit.task.resume()

    def _time_to_next_edge(self) -> float:
        wall = self.machine.wall()
        swings = [(unit.find_hertz(wall), unit.duty) for unit in self.units.values() if unit.hertz]
        edges = [time_to_edge(wall, hertz, duty, self.shift) for hertz, duty in swings]
        return max(0.005, min([TICK_S * self.machine.rate, *edges]))

    def _finish(self, how: str) -> None:
        self._end_tasks()
        self.journal.add(self.t, self.phase, sync=True, end=how)

    def _end_tasks(self) -> None:
        for task in [*(unit.task for unit in self.units.values()), *([self.watch] if self.watch else [])]:
            task.kill()
        self.units.clear()
        self.watch = None
