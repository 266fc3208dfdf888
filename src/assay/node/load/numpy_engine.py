"""The engine without an accelerator library: one CPU computes each unit once for every device that it stands for."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from assay.node.load.battery_test import BatteryTest
from assay.node.load.cpu_facts import name_instruction_set
from assay.node.load.digests import sum_digest
from assay.node.load.engine import DeviceFacts, EngineFacts, LoadError, UnitResult
from assay.node.load.lane import Lane
from assay.node.load.numpy_training import NumpyTraining
from assay.node.load.planted_faults import FaultWords
from assay.node.load.workloads import TrainingWorkload

LACKS = {
    "float8": "numpy has no 8-bit floats",
    "collectives": "numpy has one device",
    "host copies": "numpy computes in the host's memory",
}


class NumpyEngine:
    """Runs tests in numpy, one device after the other."""

    def __init__(self, devices: tuple[DeviceFacts, ...]) -> None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the order of sums must not follow the number of cores
        try:
            import numpy
        except ImportError as error:
            raise LoadError(f"numpy is not installed ({error}); install assay-fleet[load]") from None
        from assay.node.load.numpy_arithmetic import NumpyArithmetic

        self._numpy = numpy
        self._arithmetic = NumpyArithmetic()
        version = f"numpy {numpy.__version__}"
        self.device_count = len(devices)
        self.facts = EngineFacts(version, "cpu", name_instruction_set(), version, "OPENBLAS_NUM_THREADS=1", devices)

    def find_lack(self, test: BatteryTest | TrainingWorkload) -> str:
        """Return why numpy cannot do the test."""
        return next((LACKS[need] for need in test.needs if need in LACKS), "")

    def prepare(self, test: BatteryTest) -> None:
        """Nothing is compiled."""

    def run_unit(self, test: BatteryTest, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Run one unit on each device in turn."""
        digests: list[int | None] = []
        times = []
        for fault in faults:
            begun = time.perf_counter()
            with self._numpy.errstate(all="ignore"):
                digests.append(self._compute(test, key, fault))
            times.append(1e3 * (time.perf_counter() - begun))
        return UnitResult(max(times), digests, times)

    def start_training(self, workload: TrainingWorkload, key: int) -> NumpyTraining:
        """Return training with the state of a key."""
        return NumpyTraining(workload, key, len(self.facts.devices))

    def _compute(self, test: BatteryTest, key: int, fault: FaultWords) -> int:
        xp = self._numpy
        words = xp.array(fault, dtype=xp.uint32)
        lanes = [
            Lane(self._arithmetic, xp.array([key + block & 0xFFFFFFFF], dtype=xp.uint32), words)
            for block in range(test.blocks)
        ]
        held = [test.first_stage(lane) for lane in lanes]
        for stage in test.stages:
            held = [stage(lane, array) for lane, array in zip(lanes, held, strict=True)]
        return sum(int(sum_digest(xp, array)) * (2 * block + 1) for block, array in enumerate(held)) & 0xFFFFFFFF
