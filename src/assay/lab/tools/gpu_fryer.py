"""gpu-fryer --json on a virtual node: a line of results, and one of GPUs that are 10 % slower than the best."""

from __future__ import annotations

import json
import sys

from assay.lab.tools.state_reader import load_node_state, print_lines, working_gpus

TOLERANCE = 0.9


def main() -> None:
    """Print the lines; exit with 1 if a GPU has a problem."""
    state = load_node_state()
    gpus = working_gpus(state)
    if not gpus:
        sys.stderr.write('{"message":"No GPUs detected"}\n')
        sys.exit(1)
    rates = [1e9 * state["load"]["tensor_gflops"][gpu["index"]] for gpu in gpus]
    results = [
        {"burn_result": {"gpu_idx": index, "flops_max": round(rate), "flops_min": round(rate)}, "flops_avg": rate}
        for index, rate in enumerate(rates)
    ]
    slow = [index for index, rate in enumerate(rates) if rate < TOLERANCE * max(rates)]
    problems = [{"gpu_idx": index, "reason": "LowFlops"} for index in slow]
    lines = [{"type": "results", "gpus": results}, {"type": "problems", "problems": problems}]
    print_lines(json.dumps(line) for line in lines)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
