"""What the check asks of a machine with a GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.node.load.jax_engine import FLAGS
from tools.gpu_check.child_runs import kill_in_the_middle, run_battery, run_module

SPEEDS = "tools.gpu_check.speeds"
TRITON = "--xla_gpu_enable_triton_gemm="
AUTOTUNING = "--xla_gpu_autotune_level="
REFERENCE_BFLOAT16 = 788  # TFLOP/s of an H200 by PyTorch at 8192³ on random data, measured by us before
PROCESSES = 3


@dataclass(frozen=True)
class CheckSizes:
    """Edge of products, words of a memory block, and the size of the battery."""

    edge: int = 8192
    block: int = 1 << 28
    battery: str = "full"


Question = Callable[[CheckSizes], Any]


def ask_speeds(sizes: CheckSizes) -> Any:
    """Measure products, digests and memory, with our flags, with autotuning, and with neither of our limits."""
    plain = [flag for flag in FLAGS if not flag.startswith((TRITON, AUTOTUNING))]
    variants = {"ours": list(FLAGS), "autotuned": [*plain, f"{TRITON}false"], "with Triton": plain, "XLA's own": []}
    found = {}
    for name, flags in variants.items():
        settings = {"XLA_FLAGS": " ".join(flags), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        lines, _ = run_module(SPEEDS, [str(sizes.edge), str(sizes.block)], settings)
        found[name] = lines[-1]
    return {"variants": found, "reference_bfloat16_tflops": REFERENCE_BFLOAT16}


def ask_repeats(sizes: CheckSizes) -> Any:
    """Compare digests of fresh processes, each on a GPU that is hot from the one before, and once with Triton."""
    runs = [run_battery(["--seeds", "1", "--size", sizes.battery], {}) for _ in range(PROCESSES)]
    first = runs[0][1]
    differing = sorted({unit for _, units, _ in runs[1:] for unit in first if units.get(unit) != first[unit]})
    uneven = sorted(unit for unit, digests in first.items() if len(set(digests)) > 1)
    triton = run_battery(["--seeds", "1", "--size", sizes.battery], {"XLA_FLAGS": f"{TRITON}true"})[1]
    return {
        "processes": PROCESSES,
        "units": len(first),
        "differ_between_runs": differing,
        "differ_between_gpus": uneven,
        "differ_with_triton": sorted(unit for unit in first if triton.get(unit) != first[unit]),
    }


def ask_golden(sizes: CheckSizes) -> Any:
    """Record the digests of the first seed, to be compared with another card."""
    run, units, _ = run_battery(["--seeds", "1", "--size", sizes.battery], {})
    return {"run": run, "digests": units}


def ask_compiling(sizes: CheckSizes) -> Any:
    """Time a run with an empty compilation cache, and again with a full one."""
    words = ["--seeds", "1", "--size", sizes.battery]
    with tempfile.TemporaryDirectory(prefix="assay-gpu-check-") as cache:
        cold, warm = (run_battery(words, {"ASSAY_LOAD_CACHE": cache})[2] for _ in range(2))
    return {"cold_s": round(cold, 1), "cached_s": round(warm, 1)}


def ask_planted_bit(sizes: CheckSizes) -> Any:
    """Flip the lowest bit of one result on the first GPU, by the code that a healthy GPU runs too."""
    words = ["--seeds", "1", "--size", sizes.battery, "--tests", "gemm.float32.ones", "step.train"]
    healthy = run_battery(words, {})[1]
    spoilt = run_battery([*words, "--plant", "device=0,test=gemm.float32.ones,bit=0"], {})[1]
    return {"seen_in": sorted(unit for unit in healthy if spoilt[unit] != healthy[unit])}


def ask_training(sizes: CheckSizes) -> Any:
    """Train some steps, and say how fast each GPU was."""
    words = ["train", "gpt", "--engine", "jax", "--steps", "20", "--size", sizes.battery]
    lines, _ = run_module("assay.node.load", words, {})
    steps = [line for line in lines if "step" in line]
    last = steps[-1]
    speeds = [round(1e3 * last["tokens"] / ms) for ms in last["device_ms"]]
    return {"steps": len(steps), "loss": last["loss"], "tokens_per_s": speeds}


def ask_kill(sizes: CheckSizes) -> Any:
    """Kill a run in the middle; say when the GPU is free, and how much it held without preallocation."""
    return kill_in_the_middle(["--size", sizes.battery], {})


QUESTIONS: dict[str, Question] = {
    "speeds": ask_speeds,
    "repeats": ask_repeats,
    "compiling": ask_compiling,
    "planted_bit": ask_planted_bit,
    "training": ask_training,
    "kill": ask_kill,
    "golden": ask_golden,
}
