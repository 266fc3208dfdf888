"""Training in JAX: the state stays on the devices, one program makes it and one takes a step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from assay.node.load.engine import UnitResult
from assay.node.load.lane import Lane
from assay.node.load.planted_faults import HEALTHY, FaultWords
from assay.node.load.shard_results import collect_digests, collect_numbers
from assay.node.load.workloads import TrainingWorkload

if TYPE_CHECKING:
    from assay.node.load.jax_mesh import JaxMesh


class JaxTraining:
    """The steps of one run."""

    def __init__(self, mesh: JaxMesh, workload: TrainingWorkload, key: int, unit_s: float) -> None:
        self._mesh = mesh
        self._workload = workload
        self._unit_s = unit_s
        self._programs = mesh.map_devices(self._first, "s"), mesh.map_devices(self._step, "dsd", donate_argnums=0)
        self._key = key
        self._state = self._programs[0](mesh.key_words(key))
        self.run_step(0, [HEALTHY] * len(mesh.local_devices))  # compiles; then begin anew
        self._state = self._programs[0](mesh.key_words(key))

    def _first(self, key: Any) -> Any:
        lane = Lane(self._mesh.arithmetic, key, self._mesh.arithmetic.xp.array(HEALTHY, dtype="uint32"))
        return self._mesh.jax.tree.map(lambda array: array[None], self._workload.make_state(lane))

    def _step(self, state: Any, key: Any, words: Any) -> Any:
        tree_map = self._mesh.jax.tree.map
        done = self._workload.step(Lane(self._mesh.arithmetic, key, words[0]), tree_map(lambda array: array[0], state))
        told = done.loss.reshape(1), done.digest.reshape(1), done.own.reshape(1)
        return tree_map(lambda array: array[None], done.state), told

    def run_step(self, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Take one step on all devices."""
        mesh, begun = self._mesh, time.perf_counter()
        try:
            self._state, told = self._programs[1](self._state, mesh.key_words(key), mesh.put_words(faults))
            result = collect_digests(told[1], mesh.local_devices, begun, self._unit_s)
            result.losses = collect_numbers(told[0], mesh.local_devices)
            result.own = collect_digests(told[2], mesh.local_devices, begun, self._unit_s).digests
            return result
        except RuntimeError as error:  # JaxRuntimeError
            reason = f"{self._workload.test}: {str(error).splitlines()[0]}"
            count = len(mesh.local_devices)
            return UnitResult(1e3 * (time.perf_counter() - begun), [None] * count, reason=reason, losses=[None] * count)
