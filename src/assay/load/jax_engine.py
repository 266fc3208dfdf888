"""The engine on GPUs: one compiled program a test, for all devices of the node. On a CPU the same program runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from assay.load.battery.battery_test import BatteryTest
from assay.load.digests import sum_digest
from assay.load.engine import LoadError, UnitResult
from assay.load.jax_arithmetic import AXIS, JaxArithmetic
from assay.load.jax_start import choose_devices, describe_jax, start_jax
from assay.load.lane import Lane
from assay.load.numpy_arithmetic import NumpyArithmetic
from assay.load.planted_faults import HEALTHY, FaultWords
from assay.load.shard_results import collect_digests

HOST_COPIES = "host copies"
FIRST_WITH_FLOAT8 = 8.9  # compute capability


class JaxEngine:
    """Runs tests in JAX. `unit_s`: a device that gives nothing for so long has none."""

    def __init__(
        self, cpu_devices: int, order: Sequence[int], uuids: Sequence[str], kind: str, unit_s: float = 60
    ) -> None:
        own_flags = os.environ.get("XLA_FLAGS", "")
        self.jax = start_jax(cpu_devices)
        import numpy
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        try:
            self.devices = choose_devices(self.jax.local_devices(), order)
        except RuntimeError as error:
            raise LoadError(f"JAX finds no device: {error}") from None
        self.facts = describe_jax(self.jax, self.devices, uuids, kind, own_flags)
        self.unit_s = unit_s
        self._numpy = numpy
        self._mesh = Mesh(numpy.array(self.devices), (AXIS,))
        self._along, self._same = PartitionSpec(AXIS), PartitionSpec()
        self._spread = NamedSharding(self._mesh, self._along)
        is_cuda = self.facts.backend == "cuda"
        self.arithmetic = JaxArithmetic(len(self.devices), has_tfloat32=is_cuda)
        self._programs: dict[str, list[Any]] = {}

    def find_lack(self, test: BatteryTest) -> str:
        """Return why the test cannot run on these devices."""
        if "collectives" in test.needs and len(self.devices) < 2:
            return "there is one device"
        if "tfloat32" in test.needs and self.facts.backend != "cuda":
            return "a CPU has no TF32 units"
        capability = getattr(self.devices[0], "compute_capability", "")
        if "float8" in test.needs and capability and float(capability) < FIRST_WITH_FLOAT8:
            return f"compute capability {capability} has no 8-bit floats"
        return ""

    def prepare(self, test: BatteryTest) -> None:
        """Compile the test by running it once."""
        self.run_unit(test, 0, [HEALTHY] * len(self.devices))

    def run_unit(self, test: BatteryTest, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Run one unit on all devices at once."""
        begun = time.perf_counter()
        try:
            words = self.put_words(faults)
            result = self._start_copy(test, key, words) if HOST_COPIES in test.needs else self._start(test, key, words)
            return collect_digests(result, self.devices, begun, self.unit_s)
        except RuntimeError as error:  # JaxRuntimeError: the whole program is lost with one device
            reason = f"{test.name}: {str(error).splitlines()[0]}"
            return UnitResult(1e3 * (time.perf_counter() - begun), [None] * len(self.devices), reason=reason)

    def put_words(self, faults: Sequence[FaultWords]) -> Any:
        """Return the planted faults as an argument: one row on each device."""
        return self.jax.device_put(self._numpy.array(faults, dtype=self._numpy.uint32), self._spread)

    def map_devices(self, function: Callable[..., Any], in_specs: str, out_specs: Any = None, **options: Any) -> Any:
        """Return one program for all devices. `in_specs`: `d` for an argument along devices, `s` for the same one."""
        jax = self.jax
        named = {"d": self._along, "s": self._same}
        mapped = {"mesh": self._mesh, "in_specs": tuple(named[one] for one in in_specs)}
        outs = self._along if out_specs is None else out_specs
        return jax.jit(jax.shard_map(function, out_specs=outs, check_vma=False, **mapped), **options)

    def key_words(self, key: int) -> Any:
        """Return a key as an argument."""
        return self._numpy.array([key & 0xFFFFFFFF], dtype=self._numpy.uint32)

    def _start(self, test: BatteryTest, key: int, words: Any) -> Any:
        programs = self._programs.get(test.name) or self._build(test)
        self._programs[test.name] = programs
        keys = [self.key_words(key + block) for block in range(test.blocks)]
        held = [programs[0](one, words) for one in keys]
        for program in programs[1:]:
            held = [program(array, one, words) for array, one in zip(held, keys, strict=True)]
        total = held[0]
        for block, digest in enumerate(held[1:], 1):
            total = total + digest * self._numpy.uint32(2 * block + 1)
        return total

    def _build(self, test: BatteryTest) -> list[Any]:
        """Return the test's programs. With stages, each is a program of its own, so that memory lies between them."""

        def first(key: Any, words: Any) -> Any:
            made = test.first_stage(Lane(self.arithmetic, key, words[0]))
            return made if test.stages else self._digest(made)

        programs = [self.map_devices(first, "sd")]
        for place, stage in enumerate(test.stages):
            is_last = place == len(test.stages) - 1

            def later(array: Any, key: Any, words: Any, stage: Any = stage, is_last: bool = is_last) -> Any:
                made = stage(Lane(self.arithmetic, key, words[0]), array)
                return self._digest(made) if is_last else made

            programs.append(self.map_devices(later, "dsd", donate_argnums=() if is_last else (0,)))
        return programs

    def _digest(self, array: Any) -> Any:
        return sum_digest(self.arithmetic.xp, array).reshape(1)

    def _start_copy(self, test: BatteryTest, key: int, words: Any) -> Any:
        """Copy the host's array to each device, take its digest there, copy it back, and take it here."""
        program = self._programs.get(test.name)
        if program is None:

            def arrived(array: Any, faults: Any) -> Any:
                kept = Lane(self.arithmetic, None, faults[0]).spoil(array[0])
                return kept.reshape(1, -1), self._digest(kept)

            program = self._programs[test.name] = [self.map_devices(arrived, "dd", (self._along, self._along))]
        xp = self._numpy
        made = test.compute(Lane(NumpyArithmetic(), self.key_words(key), xp.array(HEALTHY, dtype=xp.uint32)))
        sent = self.jax.device_put(xp.broadcast_to(made, (len(self.devices), made.size)), self._spread)
        kept, there = program[0](sent, words)
        back = [sum_digest(xp, row) for row in xp.asarray(kept)]
        return there * xp.uint32(3) + self.jax.device_put(xp.array(back, dtype=xp.uint32), self._spread)
