"""The node itself for the supervisor: units of load and readings, each in a session of processes of its own.

Under load, few readings are taken: temperature, power, clock, and counters of errors.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from assay.model.reading import ReadingTree, failed
from assay.model.specs.load_parts import EVERY_TEST
from assay.node.burnin.journal import SESSIONS, BurnInFolder
from assay.node.load_tools.load_delivery import read_site_variables
from assay.node.load_tools.registry import run_load
from assay.node.load_tools.tool_call import LoadOrder, SiteSettings
from assay.node.probe.devices.memory_modules import read_memory
from assay.node.probe.devices.nvme import read_drives
from assay.node.probe.gpu.gpu_list import read_gpus
from assay.node.probe.isolated_reader import gather_isolated, kill_tree
from assay.node.probe.node_access import BOOT_ID_FILE, SERIAL_FILE, NodeRoot, TimedQuestion

TINY_S = 1e-6
MAX_GAP_S = 10.0
WATCH_S = 10.0
GPU_READINGS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "temperature": (("temperature", "gpu_c"),),
    "memory_temperature": (("temperature", "memory_c"),),
    "power": (("power", "draw_w"),),
    "clock": (("clocks", "sm_mhz"),),
    "corrected": (("ecc", "aggregate", "corrected"),),
    "uncorrected": (("ecc", "aggregate", "uncorrected"),),
    "remapped": (("remap", "correctable"), ("remap", "uncorrectable")),
    "links": (("nvlink", "up"),),
}
"""Reading → where it is below a GPU; several are added up."""
PR_SET_PDEATHSIG = 1
MEMORY_FILE = "/proc/self/fd/"
SESSIONS_KEPT = 8
POLL_S = 0.02


def read_passively(root: NodeRoot) -> ReadingTree:
    """Return `gpus` and `dimms`: subject → reading → number. What cannot be read is left out."""
    tree = _gather(root, gpu=read_gpus, memory=read_memory)
    gpus = {}
    for subject, device in _list_gpus(tree["gpu"]):
        numbers = {name: _add_up(device, paths) for name, paths in GPU_READINGS.items()}
        gpus[subject] = {name: number for name, number in numbers.items() if number is not None}
    dimms = {}
    for _, controller in _items(tree["memory"].get("edac", {})):
        for place, module in (controller.get("dimms") or {}).items():
            label = str(_value(module, "label") or place)
            counts = {name: _value(module, name) for name in ("corrected", "uncorrected")}
            dimms[label] = {name: count for name, count in counts.items() if isinstance(count, int)}
    return {"gpus": gpus, "dimms": dimms}


def _gather(root: NodeRoot, **areas: Callable[[NodeRoot], Any]) -> dict[str, Any]:
    questions = {name: TimedQuestion(WATCH_S, partial(read, root)) for name, read in areas.items()}
    tree: dict[str, Any] = gather_isolated(questions, WATCH_S)
    return tree


def _list_gpus(tree: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for _, device in _items(tree.get("devices", {})):
        index = _value(device, "index")
        if index is not None:
            yield f"gpu{index}", device


def _items(tree: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, below in tree.items() if isinstance(tree, Mapping) else ():
        if isinstance(below, Mapping):
            yield name, below


def _value(tree: Mapping[str, Any], *path: str) -> Any:
    """Return the value at a path, None if there is none."""
    below: Any = tree
    for name in path:
        below = below.get(name) if isinstance(below, Mapping) else None
    return below.get("value") if isinstance(below, Mapping) else None


def _add_up(device: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> float | None:
    """Return the sum of readings, None if one of them is no number."""
    numbers = [_value(device, *path) for path in paths]
    if all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
        return float(sum(numbers))
    return None


class ForkedTask:
    """A function in a child with a session of its own. The child ends with its parent, what it started with `kill`."""

    def __init__(self, work: Callable[[], ReadingTree]) -> None:
        self._memory = os.memfd_create("assay-burn-in")
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _run_child(work, self._memory, parent)
        self._result: ReadingTree | None = None

    def poll(self) -> ReadingTree | None:
        """Return the result, None while the child runs."""
        if self._result is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._result = self._read(status)
                _signal_session(self.pid, signal.SIGKILL)  # what a tool left behind
        return self._result

    def _read(self, status: int) -> ReadingTree:
        content = os.pread(self._memory, os.fstat(self._memory).st_size, 0)
        os.close(self._memory)
        try:
            branch: ReadingTree = json.loads(content)
        except ValueError:
            return failed(f"the process of this unit ended without a result (status {status})")
        return branch

    def pause(self) -> None:
        """Stop the session."""
        _signal_session(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let the session go on."""
        _signal_session(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the session, and wait for the child."""
        if self._result is None:
            kill_tree(self.pid)
            _signal_session(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)


def close_descriptors(*kept: int) -> None:
    """Close every descriptor but the standard ones, `kept`, and that of the packed probe, which modules come from.

    A child that inherits the lock would hold it after its parent's death.
    """
    packed = {int(place[len(MEMORY_FILE) :]) for place in sys.path if place.startswith(MEMORY_FILE)}
    for name in os.listdir(MEMORY_FILE):  # noqa: PTH208
        if int(name) > 2 and int(name) not in {*kept, *packed}:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _signal_session(session: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, number)


def _run_child(work: Callable[[], ReadingTree], memory: int, parent: int) -> None:
    """Run the child, and exit."""
    try:
        os.setsid()
        close_descriptors(memory)
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == parent:
            os.write(memory, json.dumps(work()).encode())
            os._exit(0)
    finally:
        os._exit(1)


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


class NodeMachine:
    """The node on which this runs. In a lab, time passes as the lab's clock says, and `rate` is above 1."""

    def __init__(self, folder: BurnInFolder, plan: Mapping[str, Any]) -> None:
        self.folder = folder
        self.root = folder.root
        self.plan = plan
        self.sessions: list[int] = []
        self.tasks: list[ForkedTask] = []
        self.clock = RehearsedClock(plan["clock"]) if plan.get("clock") else None

    @property
    def rate(self) -> float:
        """How many seconds of burn-in pass in a real second."""
        return self.clock.rate if self.clock else 1.0

    @property
    def most_gap_s(self) -> float:
        """How much of a gap counts. A lab's clock hands a jump out itself, when all that runs has its result."""
        return math.inf if self.clock else MAX_GAP_S

    def now(self) -> float:
        """Return the monotonic time."""
        return self.clock.now() if self.clock else time.monotonic()

    def wall(self) -> float:
        """Return the seconds since 1970."""
        return self.clock.now() if self.clock else time.time()

    def read_time(self) -> float:
        """Return the monotonic time to which `now` follows: that of a lab may have jumped ahead."""
        return self.clock.read() if self.clock else time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait. What is left of a jump of a lab's clock passes as soon as all that runs has its result."""
        if self.clock and self.clock.behind_s:
            for task in self.tasks:
                task.resume()
                while task.poll() is None:
                    time.sleep(POLL_S)
            self.clock.go_on(self._find_step())
        else:
            time.sleep(min(seconds, self.rate) / self.rate)
        self.tasks = [task for task in self.tasks if task.poll() is None]

    def _find_step(self) -> float:
        """Return how much of a jump passes at a time: each part of a phase runs twice or more, and each cycle rests."""
        now = find_phase(self.plan, self.folder.read_clock())
        if now is None:
            return MAX_GAP_S
        turns = max(len(row) for row in now.phase["rows"])
        cycles = now.phase.get("cycles") or [now.phase["seconds"]]
        return float(min(now.phase["seconds"] / (2 * turns), cycles[0] / 2))

    def boot_id(self) -> str:
        """Return the boot id, "" if it cannot be read."""
        return _read_boot_id(self.root)

    def start_unit(self, part: str, seconds: int, t: float) -> ForkedTask:
        """Start one unit. Each unit of the battery has other seeds: they begin after the second of the burn-in.

        The second is one at which a unit may begin, so that nodes with one plan compute the same, each a little later.
        """
        site = SiteSettings.parse(self.plan.get("load_tools", ""))
        variables = {**read_site_variables(self.plan.get("load", "")), **site.environment}
        now = find_phase(self.plan, t)
        begin = int(t - t % now.phase["unit_s"]) if now else int(t)
        order = LoadOrder(seconds, variables, after_unit=f"{begin}:{EVERY_TEST}", site=site)
        task = ForkedTask(lambda: run_load(self.root, [part], order)[part])
        self.tasks.append(task)
        self.sessions = [*self.sessions[-SESSIONS_KEPT:], task.pid]
        with contextlib.suppress(OSError):  # a full disk stops no test
            self.folder.replace(SESSIONS, " ".join([self.boot_id() or "-", *map(str, self.sessions)]))
        return task

    def start_watch(self) -> ForkedTask:
        """Start a reading."""
        task = ForkedTask(partial(read_passively, self.root))
        self.tasks.append(task)
        return task

    def identify(self) -> Mapping[str, Any]:
        """Return the serial numbers."""
        tree = _gather(self.root, gpu=read_gpus, nvme=read_drives, memory=read_memory)
        gpus = {
            subject: _value(device, "serial") or _value(device, "uuid") for subject, device in _list_gpus(tree["gpu"])
        }
        drives = {name: _value(drive, "serial") for name, drive in _items(tree["nvme"])}
        firmware = tree["memory"].get("firmware", {})
        dimms = {name: _value(module, "serial") for name, module in _items(firmware.get("dimms", {}))}
        parts = {**gpus, **drives, **dimms}
        machine = self.root.read_leaf(SERIAL_FILE).get("value", "")
        return {"serials": {name: str(serial) for name, serial in parts.items() if serial}, "machine": machine}


def _read_boot_id(root: NodeRoot) -> str:
    try:
        return root.read_text(BOOT_ID_FILE)
    except OSError:
        return ""


def end_leftovers(folder: BurnInFolder) -> None:
    """End what a supervisor that was killed in this boot left running.

    A session's number is not given again while one of its processes lives. Ours have lost their first process, which
    died with its parent; a session with a first process is somebody else's, with a number that was given again.
    """
    boot, *sessions = folder.read_text(SESSIONS).split() or [""]
    if boot != (_read_boot_id(folder.root) or "-"):
        return
    for session in map(int, sessions):
        processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
        is_leader_alive = _session_of(session) == session  # ours died with its parent
        if any(_session_of(pid) == session for pid in processes) and not is_leader_alive:
            _signal_session(session, signal.SIGKILL)


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1
