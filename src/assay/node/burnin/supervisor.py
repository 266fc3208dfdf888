"""Carries out a plan: starts units of load, rests and swings them, watches the node, and writes down what it sees.

It judges nothing. Time is the node's monotonic time, or that of a lab, which runs faster and may jump ahead by hours.
A gap in which this process did not run counts for `MAX_GAP_S` at most, so that a frozen hour is no hour of load.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from assay.model.reading import ReadingTree, parse_reading
from assay.node.burnin.journal import CLOCK, STOP, BurnInFolder, Journal

TINY_S = 1e-6
TICK_S = 1.0
MAX_GAP_S = 10.0
LEAST_UNIT_S = 2.0
"""A shorter rest of a phase or a cycle gets no unit."""
QUICK_S = 1.0
"""A unit that ends sooner did nothing. The next one waits, so that a missing tool does not fill the journal."""


@dataclass(frozen=True)
class PhaseTime:
    """A time in a phase: `done_s` of it are over, `left_s` are left. `number` is its place in the plan."""

    phase: Mapping[str, Any]
    number: int
    done_s: float
    left_s: float

    @property
    def name(self) -> str:
        """The name of the phase."""
        return str(self.phase["name"])


def find_phase(plan: Mapping[str, Any], t: float) -> PhaseTime | None:
    """Return the phase at `t` seconds of burn-in, None after the last."""
    start = 0.0
    for number, phase in enumerate(plan["phases"]):
        end = start + phase["seconds"]
        if t < end - TINY_S:
            return PhaseTime(phase, number, t - start, end - t)
        start = end
    return None


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


class RunningTask(Protocol):
    """A unit of load, or a reading of the node, in processes of its own."""

    def poll(self) -> ReadingTree | None:
        """Return the result, None while it runs."""

    def pause(self) -> None:
        """Stop its processes where they are."""

    def resume(self) -> None:
        """Let its processes go on."""

    def kill(self) -> None:
        """End all its processes."""


class Machine(Protocol):
    """The node, as the supervisor sees it."""

    @property
    def rate(self) -> float:
        """Seconds of burn-in in a real second: 1, but more in a lab."""

    @property
    def most_gap_s(self) -> float:
        """How much of the time between two looks counts, in seconds of burn-in."""

    def now(self) -> float:
        """Return the monotonic time, in seconds of burn-in."""

    def wall(self) -> float:
        """Return the seconds since 1970: what nodes with one time do by it, they do in step."""

    def sleep(self, seconds: float) -> None:
        """Wait for seconds of burn-in."""

    def boot_id(self) -> str:
        """Return the id of the boot that runs now."""

    def start_unit(self, part: str, seconds: int, t: float) -> RunningTask:
        """Start one unit of load."""

    def start_watch(self) -> RunningTask:
        """Start a reading of temperature, power, clock and errors."""

    def identify(self) -> Mapping[str, Any]:
        """Return the serial numbers of the node's parts."""


@dataclass
class RunningUnit:
    """A unit of one row: which part, since when, and how it swings."""

    part: str
    phase: str
    task: RunningTask
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

    def __init__(self, folder: BurnInFolder, plan: Mapping[str, Any], machine: Machine) -> None:
        self.folder = folder
        self.plan = plan
        self.machine = machine
        self.journal = Journal(folder, machine.now)
        self.t = max(folder.read_clock(), self.journal.last_t, float(plan.get("done_s", 0.0)))
        self.shift = float(plan.get("shift", 0.0))
        self.units: dict[int, RunningUnit] = {}
        self.next_part: dict[int, int] = {}
        self.free_at: dict[int, float] = {}
        self.watch: RunningTask | None = None
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


class RehearsedClock:
    """Follows the clock in a lab's file. A jump is handed out in steps, so that load can run in each of them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rate = 1.0
        self._at = self.read()

    @property
    def behind_s(self) -> float:
        """How many seconds of a jump, or of a time in which this process could not run, are left."""
        behind = self.read() - self._at
        return behind if behind > MAX_GAP_S * self.rate else 0.0

    def now(self) -> float:
        """Return the lab's time in seconds. It stands still while there is a rest of a jump."""
        if not self.behind_s:
            self._at = max(self._at, self.read())
        return self._at

    def go_on(self, most_s: float) -> None:
        """Let as many seconds of a jump pass, at most."""
        self._at += min(self.behind_s, most_s)

    def read(self) -> float:
        """Return the lab's time, with a jump in it."""
        with open(self.file, encoding="utf-8") as file:  # noqa: PTH123  # pathlib costs 10 ms to import
            known: dict[str, Any] = json.load(file)
        self.rate = float(known["rate"])
        return datetime.fromisoformat(known["origin"]).timestamp() + (time.time() - float(known["anchor"])) * self.rate
