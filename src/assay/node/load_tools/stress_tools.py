"""gpu_burn: multiplies matrices on all GPUs and compares the products. It exits 0 on faulty GPUs.

gpu-fryer: bf16 products on all GPUs. It compares GPUs only with each other, so eight slow ones please it.

stress-ng writes and verifies most of the host's memory, with all of its patterns.

stressapptest: copies blocks of host memory with all processors, and compares them.
"""

from __future__ import annotations

import re
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.load_tools.tool_call import (
    LoadOrder,
    ToolOutput,
    call_tool,
    iterate_objects,
    quote_ending,
    quote_text,
    read_list,
    read_speed,
)
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


MEMORY_BITS = re.compile(r"vm: detected (\d+) bit errors?")
MEMORY_FAIL = re.compile(r"^stress-ng: fail:", re.MULTILINE)
MEMORY_END = re.compile(r"\b(un)?successful run completed in")


def run_memory(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Verify 60 % of the memory that is free."""
    del root
    load = ["--vm", "4", "--vm-bytes", "60%", "--vm-method", "all", "--verify"]
    words = ["stress-ng", *load, "--timeout", f"{order.seconds}s", "--metrics-brief"]
    return call_tool(words, order, lambda output: {"errors": parse_stress_ng(output.text)})


def parse_stress_ng(text: str) -> ReadingTree:
    """Parse `stress-ng --vm N --verify`: the number of wrong bits; a failure without a number counts as one."""
    end = MEMORY_END.search(text)
    if end is None:
        return failed(f"stress-ng did not complete{quote_ending(text)}")
    bits = sum(map(int, MEMORY_BITS.findall(text)))
    failures = len(MEMORY_FAIL.findall(text))
    if end[1] and not failures:
        return failed(f"stress-ng completed unsuccessfully{quote_ending(text)}")
    return value(max(bits, failures))


SHARE = 0.6  # of the memory that is free
MEMORY_FILE = "/proc/meminfo"
AVAILABLE = re.compile(r"^MemAvailable:\s+(\d+) kB", re.MULTILINE)
COMPLETED = re.compile(r"^Stats: Completed: .* with (\d+) hardware incidents, (\d+) errors\s*$", re.MULTILINE)
STATUS = re.compile(r"^Status: (PASS|FAIL)\b(.*)$", re.MULTILINE)
PROCESS_ERROR = re.compile(
    r"^(?:Process Error|Log: Process Error|Report Error).*procedural.*$|^Process Error.*$", re.MULTILINE
)


def run_stressapptest(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Test most of the free memory of the host."""
    try:
        found = AVAILABLE.search(root.read_text(MEMORY_FILE))
    except OSError as error:
        return failed(f"{MEMORY_FILE}: {error.strerror}")
    if found is None:
        return failed(f"{MEMORY_FILE} does not say how much memory is free")
    megabytes = int(int(found[1]) / 1024 * SHARE)
    words = ["stressapptest", "-W", "-s", str(order.seconds), "-M", str(megabytes)]
    return call_tool(words, order, parse_stressapptest)


def parse_stressapptest(output: ToolOutput) -> ReadingTree:
    """Parse the last lines: `errors`, the wrong blocks and hardware incidents that it counted.

    Without a status it was stopped. A failure without a count is a failure of the test, such as too little memory.
    """
    status, counts = STATUS.findall(output.stdout), COMPLETED.findall(output.stdout)
    if not status:
        return output.fail("stressapptest did not complete")
    if PROCESS_ERROR.search(output.stdout) or not counts:
        return output.fail(f"stressapptest could not test; exit code {output.exit_code}")
    errors = max(map(int, counts[-1]))
    has_failed = status[-1][0] == "FAIL" or output.exit_code != 0
    if has_failed and not errors:
        return output.fail(f"stressapptest failed without an error; exit code {output.exit_code}")
    return {"errors": value(errors)}
