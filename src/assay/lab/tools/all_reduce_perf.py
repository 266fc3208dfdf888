"""all_reduce_perf of nccl-tests on a virtual node: its table, with the node's bandwidth and wrong elements.

With `-J FILE`, it also writes its report, which holds the whole environment, as the real one does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def build_report(state: State) -> dict[str, Any]:
    """Return the document of `-J`. Its truth values are text, as in the real one."""
    bandwidth, wrong = float(state["active"]["bus_bandwidth_gb_s"]), int(state["active"]["wrong"])
    halves = [{"bus_bw": bandwidth, "nwrong": float(wrong if size == SIZES[0] else 0)} for size in SIZES]
    rows = [
        {"size": size, "out_of_place": half, "in_place": {**half, "nwrong": 0.0}}
        for size, half in zip(SIZES, halves, strict=True)
    ]
    return {
        "version": 3,
        "env": [f"{name}={value}" for name, value in os.environ.items()],
        "results": rows,
        "out_of_bounds": {"count": wrong, "okay": "false" if wrong else "true"},
        "average_bus_bandwidth": {"bandwidth": bandwidth, "okay": "unchecked"},
    }


def main() -> None:
    """Print the table for the number of GPUs after `-g`; `-h` prints the usage."""
    words = sys.argv[1:]
    if "-h" in words:
        print_lines(["USAGE: all_reduce_perf", "\t[-g,--ngpus <gpus per thread>]", "\t[-J,--output_file <file>]"])
        return
    requested, state = (int(words[words.index("-g") + 1]) if "-g" in words else 1), load_node_state()
    if "-J" in words and requested <= len(working_gpus(state)):
        Path(words[words.index("-J") + 1]).write_text(json.dumps(build_report(state)))
    print_lines(format_bandwidth_table(state, requested))


if __name__ == "__main__":
    main()
