"""What an engine does: it runs units on all devices of a node and says what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from assay.node.load.planted_faults import FaultWords
from assay.node.load.unit_tests import BatteryTest
from assay.node.load.workloads import TrainingWorkload


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
