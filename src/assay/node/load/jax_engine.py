"""The engine on GPUs: one compiled program a test, for all devices of the node. On a CPU the same program runs.

A program runs on all devices at once, along the axis `AXIS` of JAX's mesh; on several nodes if asked. JAX's flags are
set before it is imported, so that bits repeat, and they are part of what a run tells. In training the state stays on
the devices: one program makes it and one takes a step.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from assay.node.load.digests import sum_digest
from assay.node.load.engine import (
    DeviceFacts,
    EngineFacts,
    LoadError,
    UnitResult,
    find_gpus,
    list_made_devices,
    name_instruction_set,
    settle_order,
)
from assay.node.load.lane import Lane
from assay.node.load.numpy_engine import NumpyArithmetic
from assay.node.load.planted_faults import HEALTHY, FaultWords
from assay.node.load.run import TrainingNodes
from assay.node.load.run_lines import collect_digests, collect_numbers
from assay.node.load.unit_tests import BatteryTest
from assay.node.load.workloads import TrainingWorkload

AXIS = "device"
FLAGS = (
    "--xla_allow_excess_precision=false",  # else a cast to a narrow type and back is left out
    "--xla_gpu_deterministic_ops=true",
    "--xla_gpu_exclude_nondeterministic_ops=true",
    "--xla_gpu_autotune_level=0",  # it chooses kernels by the time that they take on this very card
    "--xla_gpu_enable_triton_gemm=false",
)
CACHE_FOLDER = "ASSAY_LOAD_CACHE"
DEFAULT_CACHE = "~/.cache/assay-load"
HOST_COPIES = "host copies"
FIRST_WITH_FLOAT8 = 8.9  # compute capability


class JaxArithmetic:
    """What a device computes with. `has_tfloat32`: whether products of that type are told apart from float32's."""

    def __init__(self, devices: int, *, has_tfloat32: bool) -> None:
        import jax.numpy
        from jax import lax

        self.xp: Any = jax.numpy
        self._lax: Any = lax
        self._devices = devices
        self._types: dict[str, Any] = {"float8": jax.numpy.float8_e4m3fn, "tfloat32": jax.numpy.float32}
        highest = lax.Precision.HIGHEST
        self._tfloat32 = lax.DotAlgorithmPreset.TF32_TF32_F32 if has_tfloat32 else highest
        self._highest = highest

    def narrow(self, array: Any, dtype: str) -> Any:
        """Round to a type; the result has this type, except for tfloat32."""
        return array.astype(self._types.get(dtype, dtype))

    def product(self, left: Any, right: Any, dtype: str) -> Any:
        """Multiply matrices, with sums in float64, int32 or float32."""
        xp = self.xp
        sums = {"float64": xp.float64, "int8": xp.int32}.get(dtype, xp.float32)
        precision = self._tfloat32 if dtype == "tfloat32" else self._highest
        return xp.matmul(left, right, precision=precision, preferred_element_type=sums)

    def scatter_add(self, size: int, places: Any, values: Any) -> Any:
        """Add each value at its place."""
        return self.xp.zeros(size, values.dtype).at[places].add(values)

    def scatter_set(self, size: int, places: Any, values: Any) -> Any:
        """Put each value at its place."""
        return self.xp.zeros(size, values.dtype).at[places].set(values)

    def count(self, places: Any, bins: int) -> Any:
        """Return how often each bin is named."""
        return self.xp.bincount(places, length=bins).astype(self.xp.int32)

    def reverse_root(self, array: Any) -> Any:
        """Return 1/√x."""
        return self._lax.rsqrt(array)

    def sum_devices(self, array: Any, alone: int = -1) -> Any:
        """Return the sum over all devices; without the one at the place `alone`, which keeps its own."""
        others = [place for place in range(self._devices) if place != alone]
        return self._lax.psum(array, AXIS, axis_index_groups=None if alone < 0 else [others, [alone]])

    def gather_devices(self, array: Any) -> Any:
        """Return the arrays of all devices, one after the other."""
        return self._lax.all_gather(array, AXIS, tiled=True)

    def spread_sum(self, array: Any) -> Any:
        """Return each device's part of the sum over all devices."""
        return self._lax.psum_scatter(array, AXIS, tiled=True)

    def pass_on(self, array: Any, distance: int) -> Any:
        """Return the array of the device so many places before."""
        ring = [(place, (place + distance) % self._devices) for place in range(self._devices)]
        return self._lax.ppermute(array, AXIS, ring)

    def swap_rows(self, rows: Any) -> Any:
        """Return a row from each device, one after the other."""
        return self._lax.all_to_all(rows, AXIS, 0, 0, tiled=True)

    def device_number(self) -> Any:
        """Return the place of this device among all."""
        return self._lax.axis_index(AXIS)


def start_jax(cpu_devices: int) -> Any:
    """Import JAX and return it. On a CPU it shows `cpu_devices` devices. Raises LoadError if it is not installed."""
    made = f"--xla_force_host_platform_device_count={cpu_devices}"
    os.environ["XLA_FLAGS"] = " ".join([*FLAGS, made, os.environ.get("XLA_FLAGS", "")]).strip()  # the last wins
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        import jax
    except ImportError as error:
        raise LoadError(f"JAX is not installed ({error}); install assay-fleet[load], or say --engine numpy") from None
    jax.config.update("jax_enable_x64", True)
    cache = Path(os.environ.get(CACHE_FOLDER, DEFAULT_CACHE)).expanduser()
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    return jax


def join_nodes(jax: Any, coordinator: str, nodes: int, node: int) -> None:
    """Join the nodes of a run. A process joins once: another run is another process. Raises RuntimeError."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(coordinator_address=coordinator, num_processes=nodes, process_id=node)


def describe_jax(
    jax: Any, devices: Sequence[Any], order: Sequence[int], uuids: Sequence[str], kind: str, own_flags: str
) -> EngineFacts:
    """Return what this JAX runs on. `devices`: this node's, in JAX's order. `own_flags`: the caller's."""
    first = devices[0]
    chosen = list(order) or list(range(len(devices)))
    flags = " ".join(filter(None, [*FLAGS, own_flags]))
    runtime = " ".join(str(first.client.platform_version).split())
    engine = f"jax {jax.__version__}"
    if first.platform == "cpu":
        made = list_made_devices(len(devices), chosen, uuids, kind)
        return EngineFacts(engine, "cpu", name_instruction_set(), f"jaxlib {jax.lib.__version__}", flags, made)
    backend = "cuda" if "cuda" in runtime.lower() or first.platform in ("gpu", "cuda") else first.platform
    gpus = find_gpus(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    facts = []
    for place in chosen:
        gpu = gpus[place] if place < len(gpus) else None
        uuid = gpu.uuid if gpu else f"unknown-{place}"
        facts.append(DeviceFacts(gpu.index if gpu else place, uuid, str(devices[place].device_kind)))
    driver = gpus[0].driver if gpus else "unknown"
    return EngineFacts(engine, backend, driver, runtime, flags, tuple(facts))


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
        self._along = PartitionSpec(AXIS)
        self._same = PartitionSpec()
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
        specs = {"in_specs": tuple(named[letter] for letter in in_specs), "out_specs": self._along}
        return jax.jit(jax.shard_map(function, mesh=self._mesh, check_vma=False, **specs), **options)

    def key_words(self, key: int) -> Any:
        """Return a key as an argument."""
        return self.numpy.array([key & 0xFFFFFFFF], dtype=self.numpy.uint32)


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
        numbers = done.loss.reshape(1), done.digest.reshape(1), done.own.reshape(1)
        return tree_map(lambda array: array[None], done.state), numbers

    def run_step(self, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Take one step on all devices."""
        mesh = self._mesh
        begun = time.perf_counter()
        try:
            self._state, numbers = self._programs[1](self._state, mesh.key_words(key), mesh.put_words(faults))
            losses, digests, own_digests = numbers
            result = collect_digests(digests, mesh.local_devices, begun, self._unit_s)
            result.losses = collect_numbers(losses, mesh.local_devices)
            result.own = collect_digests(own_digests, mesh.local_devices, begun, self._unit_s).digests
            return result
        except RuntimeError as error:  # JaxRuntimeError
            reason = f"{self._workload.test}: {str(error).splitlines()[0]}"
            count = len(mesh.local_devices)
            return UnitResult(1e3 * (time.perf_counter() - begun), [None] * count, reason=reason, losses=[None] * count)


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
        held = [programs[0](block_key, words) for block_key in keys]
        for program in programs[1:]:
            held = [program(array, block_key, words) for array, block_key in zip(held, keys, strict=True)]
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
        home = self._mesh.jax.device_put(xp.array(back, dtype=xp.uint32), self._mesh.spread)
        return there * xp.uint32(3) - home * xp.uint32(2)  # if both are right, the digest of the payload
