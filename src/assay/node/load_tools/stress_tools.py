"""Tools that keep all GPUs or most of the host's memory busy, and compare what comes out.

- gpu_burn multiplies matrices and compares the products. It exits 0 on faulty GPUs.
- gpu-fryer multiplies in bf16. It compares GPUs only with each other, so eight slow ones please it.
- stress-ng writes and verifies the memory with all of its patterns, stressapptest copies its blocks.
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
LEAST_S = 10  # it refuses less
MEMORY_BITS = re.compile(r"vm: detected (\d+) bit errors?")
MEMORY_FAIL = re.compile(r"^stress-ng: fail:", re.MULTILINE)
MEMORY_END = re.compile(r"\b(un)?successful run completed in")
SHARE = 0.6  # of the memory that is free
MEMORY_FILE = "/proc/meminfo"
AVAILABLE = re.compile(r"^MemAvailable:\s+(\d+) kB", re.MULTILINE)
COMPLETED = re.compile(r"^Stats: Completed: .* with (\d+) hardware incidents, (\d+) errors\s*$", re.MULTILINE)
STATUS = re.compile(r"^Status: (PASS|FAIL)\b(.*)$", re.MULTILINE)
PROCESS_ERROR = re.compile(
    r"^(?:Process Error|Log: Process Error|Report Error).*procedural.*$|^Process Error.*$", re.MULTILINE
)


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
    readings: ReadingTree = {}
    for (gpu, verdict), (work, rate) in zip(verdicts, done, strict=True):
        if verdict == "OK" and int(work) <= 0:
            readings[gpu] = failed("gpu_burn says OK but did no work on this GPU")
        else:
            readings[gpu] = {"ok": value(verdict == "OK"), "gflops": value(float(rate))}
    return readings


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
    reasons = {quote_text(entry.get("gpu_idx")): quote_text(entry.get("reason", "a problem")) for entry in problems}
    devices: ReadingTree = {}
    for result in results:
        burned = result.get("burn_result")
        index = quote_text(burned.get("gpu_idx") if isinstance(burned, dict) else None)
        speed = read_speed(result.get("flops_avg"), 1e-9)
        devices[index] = {"gflops": speed, "problem": value(reasons.get(index, ""))}
    return {"devices": devices}


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


def run_stressapptest(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Test most of the free memory of the host."""
    try:
        available = AVAILABLE.search(root.read_text(MEMORY_FILE))
    except OSError as error:
        return failed(f"{MEMORY_FILE}: {error.strerror}")
    if available is None:
        return failed(f"{MEMORY_FILE} does not say how much memory is free")
    megabytes = int(int(available[1]) / 1024 * SHARE)
    words = ["stressapptest", "-W", "-s", str(order.seconds), "-M", str(megabytes)]
    return call_tool(words, order, parse_stressapptest)


def parse_stressapptest(output: ToolOutput) -> ReadingTree:
    """Parse the last lines: `errors`, the wrong blocks and hardware incidents that it counted.

    Without a status it was stopped. A failure without a count is a failure of the test, such as too little memory.
    """
    status = STATUS.findall(output.stdout)
    counts = COMPLETED.findall(output.stdout)
    if not status:
        return output.fail("stressapptest did not complete")
    if PROCESS_ERROR.search(output.stdout) or not counts:
        return output.fail(f"stressapptest could not test; exit code {output.exit_code}")
    errors = max(map(int, counts[-1]))
    has_failed = status[-1][0] == "FAIL" or output.exit_code != 0
    if has_failed and not errors:
        return output.fail(f"stressapptest failed without an error; exit code {output.exit_code}")
    return {"errors": value(errors)}
