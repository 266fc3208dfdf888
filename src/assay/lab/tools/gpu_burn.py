"""gpu-burn on a virtual node: a GPU with `burn_ok` false computes wrongly. Like the real one, it always exits 0."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from assay.lab.tools.state_reader import State, load_node_state, print_lines, working_gpus

ITERATIONS = 28_000
TENSOR_CORE_FACTOR = 10  # with -tc; roughly, as half precision is to FP32 on an H100


def format_burn_report(state: State, factor: int = 1) -> Iterator[str]:
    """Yield the output of a run over every GPU that CUDA sees, `factor` times as fast as in FP32."""
    gpus = working_gpus(state)
    if not gpus:
        yield 'Couldn\'t init a GPU test: Error in "init": CUDA_ERROR_NO_DEVICE'
        return
    yield "Using compare file: compare.ptx"
    for index, gpu in enumerate(gpus):
        yield f"GPU {index}: {gpu['name']} (UUID: {gpu['uuid']})"
    rates = [factor * (gpu["burn_gflops"] - 40 * index) for index, gpu in enumerate(gpus)]
    work = " - ".join(f"{ITERATIONS} ({rate} Gflop/s)" for rate in rates)
    errors = " - ".join("0" if gpu["burn_ok"] else "312  (WARNING!)" for gpu in gpus)
    heat = " - ".join(f"{gpu['temperature_c'] + 30} C" for gpu in gpus)
    yield f"100.0%  proc'd: {work}   errors: {errors}   temps: {heat} "
    yield "Killing processes with SIGTERM (soft kill)"
    yield "done"
    yield ""
    yield f"Tested {len(gpus)} GPUs:"
    for index, gpu in enumerate(gpus):
        yield f"\tGPU {index}: {'OK' if gpu['burn_ok'] else 'FAULTY'}"


def main() -> None:
    """Print the report, after the faults that the load provokes."""
    state = load_node_state()
    if state.get("provoked"):
        subprocess.run([sys.executable, "-m", "assay.lab.tools.provoked_faults"], check=True)
    print_lines(format_burn_report(load_node_state(), TENSOR_CORE_FACTOR if "-tc" in sys.argv else 1))


if __name__ == "__main__":
    main()
