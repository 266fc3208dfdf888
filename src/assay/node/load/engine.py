"""What an engine does: it runs units on all devices of a node and says what it is.

The devices of a run are found here too: which GPUs CUDA shows, what decides about a CPU's bits, and in what order they
compute. GPUs are as nvidia-smi names them: index, serial-like UUID and driver, in the order of the PCI bus.
"""

from __future__ import annotations

import platform
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from assay.node.load.planted_faults import FaultWords
from assay.node.load.unit_tests import BatteryTest
from assay.node.load.workloads import TrainingWorkload

QUERY_S = 30
FIELDS = "index,uuid,driver_version"
SHUFFLED = (-1,)
"""Another order in each run: then a wrong result follows its GPU, and not its place in the run."""
VECTOR_UNITS = ("avx512f", "avx2", "avx", "asimd")


class LoadError(Exception):
    """The run cannot start, for the reason that the text says."""


@dataclass(frozen=True)
class DeviceFacts:
    """A device of the run. `index` is its place on the node, whatever the order of the run."""

    index: int
    uuid: str
    kind: str


@dataclass(frozen=True)
class EngineFacts:
    """What decides about bits: a golden digest is good for one such set. `devices` in the order of digests."""

    engine: str
    backend: str
    driver: str
    runtime: str
    flags: str
    devices: tuple[DeviceFacts, ...]

    @property
    def indexes(self) -> list[int]:
        """The places of the devices on the node."""
        return [device.index for device in self.devices]


@dataclass
class UnitResult:
    """What a unit gave: each device's digest, None for a device that gave none within the unit's deadline.

    A step of training adds each device's loss, and `own`: digests of what is that device's alone, to be compared with
    another run only.
    """

    ms: float
    digests: list[int | None]
    device_ms: list[float] = field(default_factory=list)
    reason: str = ""
    losses: list[float | None] = field(default_factory=list)
    own: list[int | None] = field(default_factory=list)


class TrainingSteps(Protocol):
    """Training that has begun: its state is on the devices."""

    def run_step(self, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Take one step on all devices, on the batch of a key. The result has losses."""


class Engine(Protocol):
    """Runs tests on all its devices. Devices are in the run's order."""

    facts: EngineFacts
    device_count: int
    """All devices of the run, with those of other nodes."""

    def find_lack(self, test: BatteryTest | TrainingWorkload) -> str:
        """Return why this engine cannot do the test here, "" if it can."""

    def prepare(self, test: BatteryTest) -> None:
        """Compile the test, so that the first unit takes no longer than the others."""

    def run_unit(self, test: BatteryTest, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Run one unit on all devices, each with its fault's words."""

    def start_training(self, workload: TrainingWorkload, key: int) -> TrainingSteps:
        """Compile the workload and make its first state."""


@dataclass(frozen=True)
class GpuFacts:
    """One GPU. `index` is NVML's."""

    index: int
    uuid: str
    driver: str


def find_gpus(visible: str) -> list[GpuFacts]:
    """Return the GPUs in CUDA's order. `visible`: CUDA_VISIBLE_DEVICES, "" for all. Empty without nvidia-smi."""
    command = ["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=QUERY_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return choose_visible(parse_gpus(done.stdout), visible)


def parse_gpus(text: str) -> list[GpuFacts]:
    """Parse the rows of nvidia-smi; rows that are none are left out."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    return [GpuFacts(int(row[0]), row[1], row[2]) for row in rows if len(row) == 3 and row[0].isdecimal()]


def choose_visible(gpus: list[GpuFacts], visible: str) -> list[GpuFacts]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES names, by index or by the beginning of the UUID, in its order."""
    names = [name.strip() for name in visible.split(",") if name.strip()]
    if not names:
        return gpus
    chosen = []
    for name in names:
        named = [gpu for gpu in gpus if str(gpu.index) == name or gpu.uuid.startswith(name)]
        if len(named) != 1:
            break  # CUDA hides all that follow an unknown name
        chosen += named
    return chosen


def parse_order(text: str) -> Sequence[int]:
    """Return the order that `3,1,0,2` or `shuffled` says; empty for "". Raises ValueError for anything else."""
    if text == "shuffled":
        return SHUFFLED
    try:
        return [int(place) for place in text.split(",")] if text else []
    except ValueError:
        raise ValueError(f"--order {text}: write places, such as 3,1,0,2, or shuffled") from None


def settle_order(order: Sequence[int], count: int) -> list[int]:
    """Return the places of all devices in the order of the run. Raises ValueError if the order is none of them."""
    if tuple(order) == SHUFFLED:
        return random.SystemRandom().sample(range(count), count)
    if order and sorted(order) != list(range(count)):
        raise ValueError(f"--order {','.join(map(str, order))}: name each of the devices 0 to {count - 1} once")
    return list(order) or list(range(count))


def name_instruction_set() -> str:
    """Return such as `x86_64 avx512f`: libraries choose other kernels, and so other last bits, by these."""
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        words = set()
    vector_unit = next((unit for unit in VECTOR_UNITS if unit in words), "")
    return f"{platform.machine()} {vector_unit}".strip()


def list_made_devices(count: int, order: Sequence[int], uuids: Sequence[str], kind: str) -> tuple[DeviceFacts, ...]:
    """Return `count` devices in `order` that stand for GPUs on a CPU. Raises LoadError or ValueError."""
    chosen = settle_order(order, count)
    if uuids and len(uuids) != count:
        raise LoadError(f"--uuids names {len(uuids)} devices, and there are {count}")
    return tuple(DeviceFacts(index, uuids[index] if uuids else f"CPU-{index}", kind or "cpu") for index in chosen)
