"""ubergemm on a virtual node: the rate of the one GPU that $CUDA_VISIBLE_DEVICES names."""

from __future__ import annotations

import os
import sys

from assay.lab.tools.state_reader import load_node_state, print_lines, working_gpus


def main() -> None:
    """Print the line with the rate; without such a GPU, an error."""
    state, index = load_node_state(), int(os.environ.get("CUDA_VISIBLE_DEVICES") or 0)
    gpus = working_gpus(state)
    if index >= len(gpus):
        sys.exit("cudaGetDeviceCount: no CUDA-capable device is detected")
    rate = state["load"]["tensor_gflops"][gpus[index]["index"]]
    print_lines([f"GFlops:{rate:.5e} GFlops"])


if __name__ == "__main__":
    main()
