"""all_reduce_perf of nccl-tests on a virtual node: its table, with the node's bandwidth and wrong elements."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from assay.lab.tools.state_reader import State, load_node_state, print_lines, working_gpus

SIZES = [2**30 * step for step in (1, 2, 4, 8)]
FLOAT = 4
HALF = "     time   algbw   busbw #wrong"
UNITS = "     (us)  (GB/s)  (GB/s)       "
HEADER = (
    f"#{'out-of-place':>74}{'in-place':>31}",
    f"#       size         count      type   redop    root{HALF}{HALF}",
    f"#        (B)    (elements)                          {UNITS}{UNITS}",
)


def format_bandwidth_table(state: State, requested: int) -> Iterator[str]:
    """Yield the output of a run over `requested` GPUs. NCCL fails if CUDA sees fewer."""
    gpus = working_gpus(state)
    if requested > len(gpus):
        counts = f"asked for {requested} GPUs, {len(gpus)} visible"
        yield f"Test NCCL failure common.cu:1015 'invalid device ordinal': {counts}"
        return
    bandwidth, wrong = float(state["active"]["bus_bandwidth_gb_s"]), int(state["active"]["wrong"])
    sizes = f"minBytes {SIZES[0]} maxBytes {SIZES[-1]}"
    yield f"# nThread 1 nGpus {requested} {sizes} step: 2(factor) iters: 20 validation: 1"
    yield "#"
    yield "# Using devices"
    for rank, gpu in enumerate(gpus):
        bus = gpu["pci"].split(":")[1]
        yield f"#  Rank  {rank} Group  0 Pid  4242 on {state['name']:>10} device  {rank} [0x{bus}] {gpu['name']}"
    yield "#"
    yield from HEADER
    for size in SIZES:
        yield _row(size, requested, bandwidth, wrong if size == SIZES[0] else 0)
    yield f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"
    yield f"# Avg bus bandwidth    : {bandwidth:g}"
    yield "#"


def _row(size: int, gpus: int, bandwidth: float, wrong: int) -> str:
    algorithm = bandwidth / max(1.0, 2 * (gpus - 1) / gpus)
    half = f"{size / max(algorithm, 1e-9) / 1e3:8.1f} {algorithm:7.2f} {bandwidth:7.2f}"
    return f"{size:12} {size // FLOAT:13}     float     sum      -1 {half} {wrong:6} {half} {0:6}"


def main() -> None:
    """Print the table for the number of GPUs after `-g`."""
    words = sys.argv[1:]
    requested = int(words[words.index("-g") + 1]) if "-g" in words else 1
    print_lines(format_bandwidth_table(load_node_state(), requested))


if __name__ == "__main__":
    main()
