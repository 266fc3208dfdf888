"""gpu-fryer: bf16 products on all GPUs. It compares GPUs only with each other, so eight slow ones please it."""

from __future__ import annotations

from typing import Any

from assay.model.reading import ReadingTree, value
from assay.node.load_tools.json_output import iterate_objects, read_list, read_speed
from assay.node.load_tools.tool_call import LoadOrder, ToolOutput, call_tool, quote_text
from assay.node.probe.node_access import NodeRoot

LEAST_S = 10  # it refuses less


def run_gpu_fryer(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Fry all GPUs."""
    del root
    seconds = max(order.seconds, LEAST_S)
    return call_tool(["gpu-fryer", "--json", str(seconds)], LoadOrder(seconds, order.env), parse_gpu_fryer)


def parse_gpu_fryer(output: ToolOutput) -> ReadingTree:
    """Parse the lines `results` and `problems`: each GPU's `gflops`, and its `problem`, "" for none."""
    results: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] | None = None
    for line in iterate_objects(output.stdout):
        if line.get("type") == "results":
            results = read_list(line, "gpus")
        elif line.get("type") == "problems":
            problems = read_list(line, "problems")
    if not results or problems is None or (output.exit_code and not problems):
        return output.fail(f"gpu-fryer gave no result; exit code {output.exit_code}")
    named = {quote_text(one.get("gpu_idx")): quote_text(one.get("reason", "a problem")) for one in problems}
    return {"devices": {_index(one): _read_gpu(one, named.get(_index(one), "")) for one in results}}


def _index(one: dict[str, Any]) -> str:
    burned = one.get("burn_result")
    return quote_text(burned.get("gpu_idx") if isinstance(burned, dict) else None)


def _read_gpu(one: dict[str, Any], problem: str) -> ReadingTree:
    return {"gflops": read_speed(one.get("flops_avg"), 1e-9), "problem": value(problem)}
