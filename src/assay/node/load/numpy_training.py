"""Training in numpy: each device that the CPU stands for has a state of its own, and takes its step in turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from assay.node.load.engine import UnitResult
from assay.node.load.gpt_step import State
from assay.node.load.lane import Lane
from assay.node.load.numpy_arithmetic import NumpyArithmetic
from assay.node.load.planted_faults import HEALTHY, FaultWords
from assay.node.load.workloads import TrainingWorkload


class NumpyTraining:
    """The steps of one run."""

    def __init__(self, workload: TrainingWorkload, key: int, devices: int) -> None:
        self._workload = workload
        self._arithmetic = NumpyArithmetic()
        self._states: list[State] = [workload.make_state(self._lane(key, HEALTHY))] * devices

    def run_step(self, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Take one step on each device in turn."""
        result = UnitResult(0, [])
        for place, fault in enumerate(faults):
            begun = time.perf_counter()
            with self._arithmetic.xp.errstate(all="ignore"):
                done = self._workload.step(self._lane(key, fault), self._states[place])
            self._states[place] = done.state
            result.device_ms.append(1e3 * (time.perf_counter() - begun))
            result.digests.append(int(done.digest))
            result.own.append(int(done.own))
            result.losses.append(float(done.loss))
        result.ms = max(result.device_ms)
        return result

    def _lane(self, key: int, fault: FaultWords) -> Lane:
        xp: Any = self._arithmetic.xp
        words = xp.array(fault, dtype=xp.uint32)
        return Lane(self._arithmetic, xp.array([key & 0xFFFFFFFF], dtype=xp.uint32), words)
