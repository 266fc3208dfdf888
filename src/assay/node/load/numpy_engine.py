"""The engine without an accelerator library: one CPU computes each unit once for every device that it stands for.

In training, each such device has a state of its own, and takes its step in turn. Narrow types that numpy lacks are held
in float32, rounded to nearest even.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from assay.node.load.digests import sum_digest
from assay.node.load.engine import DeviceFacts, EngineFacts, LoadError, UnitResult, name_instruction_set
from assay.node.load.gpt import State
from assay.node.load.lane import Lane
from assay.node.load.planted_faults import HEALTHY, FaultWords
from assay.node.load.unit_tests import BatteryTest
from assay.node.load.workloads import TrainingWorkload

FLOAT32_ROUNDED_BITS = {"bfloat16": 16, "tfloat32": 13}
LACKS = {"float8": "numpy has no 8-bit floats", "host copies": "numpy computes in the host's memory"}


Join = Callable[[Sequence[Any], int], Any]
"""What a collective makes, for the device at a place, of the arrays that all devices sent."""


class SentError(Exception):
    """A device has sent its array, and what it receives is not known yet."""

    def __init__(self, array: Any, join: Join) -> None:
        super().__init__()
        self.array = array
        self.join = join


class NumpyArithmetic:
    """One CPU's arithmetic, for the device at a `place`. `received`: what came for it from the others."""

    def __init__(self, place: int = 0) -> None:
        import numpy

        self.xp: Any = numpy
        self.place = place
        self.received: Any = None

    def narrow(self, array: Any, dtype: str) -> Any:
        """Round to a type. int8 and the 16-bit types are held in float32 or int32: products of them are exact there."""
        if dtype == "int8":
            return array.astype(self.xp.int32)
        if dtype == "float16":
            return array.astype(self.xp.float16).astype(self.xp.float32)
        if dtype in FLOAT32_ROUNDED_BITS:
            return self._round_bits(array, FLOAT32_ROUNDED_BITS[dtype])
        return array.astype(dtype)

    def _round_bits(self, array: Any, dropped: int) -> Any:
        xp = self.xp
        bits = xp.ascontiguousarray(array).view(xp.uint32)
        half = xp.uint32((1 << (dropped - 1)) - 1) + ((bits >> xp.uint32(dropped)) & xp.uint32(1))
        return ((bits + half) & xp.uint32(~((1 << dropped) - 1) & 0xFFFFFFFF)).view(xp.float32)

    def product(self, left: Any, right: Any, dtype: str) -> Any:
        """Multiply matrices."""
        del dtype
        return left @ right

    def scatter_add(self, size: int, places: Any, values: Any) -> Any:
        """Add each value at its place."""
        sums = self.xp.zeros(size, values.dtype)
        self.xp.add.at(sums, places, values)
        return sums

    def scatter_set(self, size: int, places: Any, values: Any) -> Any:
        """Put each value at its place."""
        put = self.xp.zeros(size, values.dtype)
        put[places] = values
        return put

    def count(self, places: Any, bins: int) -> Any:
        """Return how often each bin is named."""
        return self.xp.bincount(places, minlength=bins).astype(self.xp.int32)

    def reverse_root(self, array: Any) -> Any:
        """Return 1/√x."""
        return array.dtype.type(1) / self.xp.sqrt(array)

    def sum_devices(self, array: Any, alone: int = -1) -> Any:
        """Return the sum over all devices; without the one at the place `alone`, which keeps its own."""
        return self._exchange(
            array, lambda sent, at: sent[at] if at == alone else sum(part for k, part in enumerate(sent) if k != alone)
        )

    def gather_devices(self, array: Any) -> Any:
        """Return the arrays of all devices, one after the other."""
        return self._exchange(array, lambda sent, _: self.xp.concatenate(sent))

    def spread_sum(self, array: Any) -> Any:
        """Return each device's part of the sum over all devices."""
        return self._exchange(array, lambda sent, at: self.xp.split(sum(sent), len(sent))[at])

    def pass_on(self, array: Any, distance: int) -> Any:
        """Return the array of the device so many places before."""
        return self._exchange(array, lambda sent, at: sent[(at - distance) % len(sent)])

    def swap_rows(self, rows: Any) -> Any:
        """Return a row from each device, one after the other."""
        return self._exchange(rows, lambda sent, at: self.xp.stack([each[at] for each in sent]))

    def device_number(self) -> Any:
        """Return the place of this device among all."""
        return self.xp.int32(self.place)

    def _exchange(self, array: Any, join: Join) -> Any:
        if self.received is None:
            raise SentError(array, join)
        return self.received


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


class NumpyEngine:
    """Runs tests in numpy, one device after the other."""

    def __init__(self, devices: tuple[DeviceFacts, ...]) -> None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the order of sums must not follow the number of cores
        try:
            import numpy
        except ImportError as error:
            raise LoadError(f"numpy is not installed ({error}); install assay-fleet[load]") from None

        self._numpy = numpy
        version = f"numpy {numpy.__version__}"
        self.device_count = len(devices)
        self.facts = EngineFacts(version, "cpu", name_instruction_set(), version, "OPENBLAS_NUM_THREADS=1", devices)

    def find_lack(self, test: BatteryTest | TrainingWorkload) -> str:
        """Return why numpy cannot do the test."""
        if "collectives" in test.needs and (self.device_count < 2 or isinstance(test, TrainingWorkload)):
            return "numpy has one device" if isinstance(test, TrainingWorkload) else "there is one device"
        return next((LACKS[need] for need in test.needs if need in LACKS), "")

    def prepare(self, test: BatteryTest) -> None:
        """Nothing is compiled."""

    def run_unit(self, test: BatteryTest, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Run one unit on each device in turn."""
        digests: list[int | None] = []
        times = []
        arithmetics = [NumpyArithmetic(place) for place in range(len(faults))]
        with self._numpy.errstate(all="ignore"):
            if "collectives" in test.needs:
                self._exchange(test, key, faults, arithmetics)
        for arithmetic, fault in zip(arithmetics, faults, strict=True):
            begun = time.perf_counter()
            with self._numpy.errstate(all="ignore"):
                digests.append(self._compute(test, key, fault, arithmetic))
            times.append(1e3 * (time.perf_counter() - begun))
        return UnitResult(max(times), digests, times)

    def start_training(self, workload: TrainingWorkload, key: int) -> NumpyTraining:
        """Return training with the state of a key."""
        return NumpyTraining(workload, key, len(self.facts.devices))

    def _exchange(
        self, test: BatteryTest, key: int, faults: Sequence[FaultWords], arithmetics: Sequence[NumpyArithmetic]
    ) -> None:
        """Let each device send, and give each what it receives. A test has one collective."""
        sent: list[SentError] = []
        for arithmetic, fault in zip(arithmetics, faults, strict=True):
            try:
                test.first_stage(self._lane(arithmetic, key, fault))
            except SentError as error:
                sent.append(error)
        for place, (arithmetic, own) in enumerate(zip(arithmetics, sent, strict=True)):
            arithmetic.received = self.deliver([error.array for error in sent], place, own.join)

    def deliver(self, sent: Sequence[Any], place: int, join: Join) -> Any:
        """Return what comes to a place of what all have sent. A bench plants its own faults on this way."""
        return join(sent, place)

    def _lane(self, arithmetic: NumpyArithmetic, key: int, fault: FaultWords) -> Lane:
        xp = self._numpy
        return Lane(arithmetic, xp.array([key & 0xFFFFFFFF], dtype=xp.uint32), xp.array(fault, dtype=xp.uint32))

    def _compute(self, test: BatteryTest, key: int, fault: FaultWords, arithmetic: NumpyArithmetic) -> int:
        xp = self._numpy
        lanes = [self._lane(arithmetic, key + block, fault) for block in range(test.blocks)]
        held = [test.first_stage(lane) for lane in lanes]
        for stage in test.stages:
            held = [stage(lane, array) for lane, array in zip(lanes, held, strict=True)]
        return sum(int(sum_digest(xp, array)) * (2 * block + 1) for block, array in enumerate(held)) & 0xFFFFFFFF
