"""What an engine does: it runs units on all devices of a node and says what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from assay.load.battery.battery_test import BatteryTest
from assay.load.planted_faults import FaultWords


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


@dataclass
class UnitResult:
    """What a unit gave: each device's digest, None for a device that gave none within the unit's deadline."""

    ms: float
    digests: list[int | None]
    device_ms: list[float] = field(default_factory=list)
    reason: str = ""


class Engine(Protocol):
    """Runs tests on all its devices. Devices are in the run's order."""

    facts: EngineFacts

    def find_lack(self, test: BatteryTest) -> str:
        """Return why this engine cannot do the test here, "" if it can."""

    def prepare(self, test: BatteryTest) -> None:
        """Compile the test, so that the first unit takes no longer than the others."""

    def run_unit(self, test: BatteryTest, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Run one unit on all devices, each with its fault's words."""
