"""The engine on GPUs: one compiled program a test, for all devices of the node. On a CPU the same program runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from assay.node.load.battery_test import BatteryTest
from assay.node.load.digests import sum_digest
from assay.node.load.engine import UnitResult
from assay.node.load.jax_mesh import JaxMesh
from assay.node.load.jax_training import JaxTraining
from assay.node.load.lane import Lane
from assay.node.load.numpy_arithmetic import NumpyArithmetic
from assay.node.load.planted_faults import HEALTHY, FaultWords
from assay.node.load.shard_results import collect_digests
from assay.node.load.workloads import TrainingWorkload

HOST_COPIES = "host copies"
FIRST_WITH_FLOAT8 = 8.9  # compute capability


class JaxEngine:
    """Runs tests in JAX. `unit_s`: a device that gives nothing for so long has none."""

    def __init__(self, mesh: JaxMesh, unit_s: float = 60) -> None:
        self._mesh = mesh
        self.facts = mesh.facts
        self.device_count = len(mesh.devices)
        self._unit_s = unit_s
        self._programs: dict[str, list[Any]] = {}

    def find_lack(self, test: BatteryTest | TrainingWorkload) -> str:
        """Return why the test cannot run on these devices."""
        if "collectives" in test.needs and len(self._mesh.devices) < 2:
            return "there is one device"
        if "tfloat32" in test.needs and self.facts.backend != "cuda":
            return "a CPU has no TF32 units"
        capability = getattr(self._mesh.local_devices[0], "compute_capability", "")
        if "float8" in test.needs and capability and float(capability) < FIRST_WITH_FLOAT8:
            return f"compute capability {capability} has no 8-bit floats"
        return ""

    def prepare(self, test: BatteryTest) -> None:
        """Compile the test by running it once."""
        self.run_unit(test, 0, [HEALTHY] * len(self._mesh.local_devices))

    def run_unit(self, test: BatteryTest, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Run one unit on all devices at once."""
        begun = time.perf_counter()
        try:
            words = self._mesh.put_words(faults)
            result = self._start_copy(test, key, words) if HOST_COPIES in test.needs else self._start(test, key, words)
            return collect_digests(result, self._mesh.local_devices, begun, self._unit_s)
        except RuntimeError as error:  # JaxRuntimeError: the whole program is lost with one device
            reason = f"{test.name}: {str(error).splitlines()[0]}"
            return UnitResult(
                1e3 * (time.perf_counter() - begun), [None] * len(self._mesh.local_devices), reason=reason
            )

    def start_training(self, workload: TrainingWorkload, key: int) -> JaxTraining:
        """Return training with the state of a key."""
        return JaxTraining(self._mesh, workload, key, self._unit_s)

    def _start(self, test: BatteryTest, key: int, words: Any) -> Any:
        programs = self._programs.get(test.name) or self._build(test)
        self._programs[test.name] = programs
        keys = [self._mesh.key_words(key + block) for block in range(test.blocks)]
        held = [programs[0](one, words) for one in keys]
        for program in programs[1:]:
            held = [program(array, one, words) for array, one in zip(held, keys, strict=True)]
        total = held[0]
        for block, digest in enumerate(held[1:], 1):
            total = total + digest * self._mesh.numpy.uint32(2 * block + 1)
        return total

    def _build(self, test: BatteryTest) -> list[Any]:
        """Return the test's programs. With stages, each is a program of its own, so that memory lies between them."""

        def first(key: Any, words: Any) -> Any:
            made = test.first_stage(Lane(self._mesh.arithmetic, key, words[0]))
            return made if test.stages else self._digest(made)

        programs = [self._mesh.map_devices(first, "sd")]
        for place, stage in enumerate(test.stages):
            is_last = place == len(test.stages) - 1

            def later(array: Any, key: Any, words: Any, stage: Any = stage, is_last: bool = is_last) -> Any:
                made = stage(Lane(self._mesh.arithmetic, key, words[0]), array)
                return self._digest(made) if is_last else made

            programs.append(self._mesh.map_devices(later, "dsd", donate_argnums=() if is_last else (0,)))
        return programs

    def _digest(self, array: Any) -> Any:
        return sum_digest(self._mesh.arithmetic.xp, array).reshape(1)

    def _start_copy(self, test: BatteryTest, key: int, words: Any) -> Any:
        """Copy the host's array to each device, take its digest there, copy it back, and take it here."""
        program = self._programs.get(test.name)
        if program is None:

            def arrived(array: Any, faults: Any) -> Any:
                kept = Lane(self._mesh.arithmetic, None, faults[0]).spoil(array[0])
                return kept.reshape(1, -1), self._digest(kept)

            program = self._programs[test.name] = [self._mesh.map_devices(arrived, "dd")]
        xp = self._mesh.numpy
        made = test.compute(Lane(NumpyArithmetic(), self._mesh.key_words(key), xp.array(HEALTHY, dtype=xp.uint32)))
        sent = self._mesh.jax.device_put(
            xp.broadcast_to(made, (len(self._mesh.local_devices), made.size)), self._mesh.spread
        )
        kept, there = program[0](sent, words)
        back = [sum_digest(xp, row) for row in xp.asarray(kept)]
        return there * xp.uint32(3) + self._mesh.jax.device_put(xp.array(back, dtype=xp.uint32), self._mesh.spread)
