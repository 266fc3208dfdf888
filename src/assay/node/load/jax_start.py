"""Starts JAX so that bits repeat: its flags are set before it is imported, and they are part of what a run tells."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.node.load.cpu_facts import list_made_devices, name_instruction_set
from assay.node.load.engine import DeviceFacts, EngineFacts, LoadError
from assay.node.load.gpu_facts import find_gpus

FLAGS = (
    "--xla_allow_excess_precision=false",  # else a cast to a narrow type and back is left out
    "--xla_gpu_deterministic_ops=true",
    "--xla_gpu_exclude_nondeterministic_ops=true",
    "--xla_gpu_autotune_level=0",  # it chooses kernels by the time that they take on this very card
    "--xla_gpu_enable_triton_gemm=false",
)
CACHE_FOLDER = "ASSAY_LOAD_CACHE"
DEFAULT_CACHE = "~/.cache/assay-load"


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
    first, chosen = devices[0], list(order) or list(range(len(devices)))
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
