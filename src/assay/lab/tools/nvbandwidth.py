"""nvbandwidth -j on a virtual node. Like the real one, it exits 0 for a test that it does not know."""

from __future__ import annotations

import json
import sys
from typing import Any

from assay.lab.tools.state_reader import State, load_node_state, print_lines, working_gpus


def make_testcase(state: State, name: str) -> dict[str, Any]:
    """Return the entry of one test."""
    slots, load = [gpu["index"] for gpu in working_gpus(state)], state["load"]
    if name in ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce"):
        matrix = [[f"{load['host_copy_gb_s'][slot]:g}" for slot in slots]]
    elif name == "device_to_device_memcpy_read_ce":
        peer = load["peer_copy_gb_s"]
        matrix = [["N/A" if a == b else f"{min(peer[a], peer[b]):g}" for b in slots] for a in slots]
    else:
        return {"name": name, "status": "Not Found"}
    total = sum(float(cell) for row in matrix for cell in row if cell != "N/A")
    words = f"memcpy CE {name} bandwidth (GB/s)"
    return {"name": name, "status": "Passed", "bandwidth_description": words, "bandwidth_matrix": matrix, "sum": total}


def main() -> None:
    """Print the document for the tests after each `-t`."""
    state, words = load_node_state(), sys.argv[1:]
    tests = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "-t"]
    about = {"CUDA Runtime Version": 13000, "Driver Version": state["driver"], "git_version": "v0.8", "version": "0.8"}
    document = {**about, "testcases": [make_testcase(state, test) for test in tests]}
    if not working_gpus(state):
        document = {**about, "error": "[CUDA_ERROR_NO_DEVICE] no CUDA-capable device is detected"}
    print_lines([json.dumps({"nvbandwidth": document}, indent=1)])


if __name__ == "__main__":
    main()
