"""The devices of a run as JAX's mesh, and programs that run on all of them at once; on several nodes if asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from assay.node.load.device_order import settle_order
from assay.node.load.engine import EngineFacts, LoadError
from assay.node.load.jax_arithmetic import AXIS, JaxArithmetic
from assay.node.load.jax_start import describe_jax, join_nodes, start_jax
from assay.node.load.planted_faults import HEALTHY, FaultWords
from assay.node.load.training_nodes import TrainingNodes


class JaxMesh:
    """Devices along one axis. `local_devices` are those of this node, in the order of digests."""

    facts: EngineFacts

    def __init__(
        self, cpu_devices: int, order: Sequence[int], uuids: Sequence[str], kind: str, group: TrainingNodes
    ) -> None:
        own_flags = os.environ.get("XLA_FLAGS", "")
        self.jax = start_jax(cpu_devices)
        import numpy
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        try:
            if group.nodes > 1:
                join_nodes(self.jax, group.coordinator, group.nodes, group.node)
            local = self.jax.local_devices()
        except (RuntimeError, ValueError) as error:
            raise LoadError(f"JAX finds no devices: {error}") from None
        order = settle_order(order, len(local))
        self.local_devices = [local[place] for place in order]
        self.facts = describe_jax(self.jax, local, order, uuids, kind, own_flags)
        self.devices = self.jax.devices() if group.nodes > 1 else self.local_devices
        self.numpy = numpy
        mesh = Mesh(numpy.array(self.devices), (AXIS,))
        self._mesh: Any = mesh
        self._along, self._same = PartitionSpec(AXIS), PartitionSpec()
        self.spread: Any = NamedSharding(mesh, self._along)
        self.arithmetic = JaxArithmetic(len(self.devices), has_tfloat32=self.facts.backend == "cuda")

    def put_words(self, faults: Sequence[FaultWords]) -> Any:
        """Return the planted faults of this node's devices as an argument: one row on each device."""
        own = dict(zip((device.id for device in self.local_devices), faults, strict=True))
        rows = self.numpy.array([own.get(device.id, HEALTHY) for device in self.devices], dtype=self.numpy.uint32)
        return self.jax.make_array_from_callback(rows.shape, self.spread, lambda index: rows[index])

    def map_devices(self, function: Callable[..., Any], in_specs: str, **options: Any) -> Any:
        """Return one program for all devices. `in_specs`: `d` for an argument along devices, `s` for the same one."""
        jax = self.jax
        named = {"d": self._along, "s": self._same}
        specs = {"in_specs": tuple(named[one] for one in in_specs), "out_specs": self._along}
        return jax.jit(jax.shard_map(function, mesh=self._mesh, check_vma=False, **specs), **options)

    def key_words(self, key: int) -> Any:
        """Return a key as an argument."""
        return self.numpy.array([key & 0xFFFFFFFF], dtype=self.numpy.uint32)
