"""gpu_burn: multiplies matrices on all GPUs and compares the products. It exits 0 on faulty GPUs."""

from __future__ import annotations

import re

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.load_tools.tool_call import LoadOrder, call_tool, quote_ending
from assay.node.probe.gpu.gpu_list import DRIVER_LIST, count_gpus
from assay.node.probe.node_access import NodeRoot

BURN_VERDICT = re.compile(r"^\s*GPU (\d+): (OK|FAULTY)\s*$", re.MULTILINE)
BURN_PROGRESS = re.compile(r"proc'd:((?: (?:- )?-?\d+ \([\d.]+ Gflop/s\))+)")
BURN_GPU = re.compile(r"(-?\d+) \(([\d.]+) Gflop/s\)")


def run_gpu_burn(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Burn every GPU in FP32: on tensor cores (-tc) it would be about ten times as fast as the limits are for."""
    if count_gpus(root) == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    return call_tool(["gpu_burn", str(order.seconds)], order, lambda output: {"devices": parse_gpu_burn(output.text)})


def parse_gpu_burn(text: str) -> ReadingTree:
    """Parse gpu_burn's verdicts and last progress line: each GPU's `ok` and `gflops`, by CUDA index.

    gpu_burn reports OK for a GPU that it could not start on (wilicc/gpu-burn issues 14 and 124). So an OK counts only
    where operations were done.
    """
    verdicts = BURN_VERDICT.findall(text)
    if not verdicts:
        return failed(f"gpu_burn gave no verdict{quote_ending(text)}")
    progress = BURN_PROGRESS.findall(text)
    done = BURN_GPU.findall(progress[-1]) if progress else []
    if len(done) != len(verdicts):
        return failed(f"gpu_burn judged {len(verdicts)} GPUs but reports work on {len(done)}")
    judged = zip(verdicts, done, strict=True)
    return {gpu: _burned(verdict, int(work), float(rate)) for (gpu, verdict), (work, rate) in judged}


def _burned(verdict: str, work: int, gflops: float) -> ReadingTree:
    if verdict == "OK" and work <= 0:
        return failed("gpu_burn says OK but did no work on this GPU")
    return {"ok": value(verdict == "OK"), "gflops": value(gflops)}
