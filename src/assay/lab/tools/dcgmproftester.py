"""dcgmproftester13 -t 1004 on a virtual node: the lines of one worker a GPU."""

from __future__ import annotations

from assay.lab.tools.state_reader import load_node_state, print_lines, working_gpus

REPORTS = 3


def main() -> None:
    """Print the lines."""
    state = load_node_state()
    rates = [state["load"]["tensor_gflops"][gpu["index"]] for gpu in working_gpus(state)]
    workers = [(index, rate) for _ in range(REPORTS) for index, rate in enumerate(rates)]
    lines = (
        f"Worker {index}:0[1004]: TensorEngineActive:  generated ???, dcgm 0.983 ({rate:#.3} gflops)."
        for index, rate in workers
    )
    print_lines(lines if rates else ["Unable to find any GPU"])


if __name__ == "__main__":
    main()
