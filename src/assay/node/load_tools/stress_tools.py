"""Tools that keep all GPUs or most of the host's memory busy, and compare what comes out.

- gpu_burn multiplies matrices and compares the products. It exits 0 on faulty GPUs.
- gpu-fryer multiplies in bf16. It compares GPUs only with each other, so eight slow ones please it.
- stress-ng writes and verifies the memory with its patterns, stressapptest copies its blocks.
"""

from __future__ import annotations

import os
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
BURN_ERRORS = re.compile(r"errors: ((?:-?\d+ *(?:\((?:WARNING|DIED)!\))?[ -]*)+)")
BURN_COUNT = re.compile(r"(?<!\d)-?\d+")
LEAST_S = 10  # it refuses less
MEMORY_BITS = re.compile(r"vm: detected (\d+) bit errors?")
MEMORY_FAIL = re.compile(r"^stress-ng: fail:", re.MULTILINE)
MEMORY_END = re.compile(r"\b(un)?successful run completed in")
MEMORY_SKIPPED = re.compile(r"^stress-ng: .*\bskipp(?:ed|ing)\b(?!: 0\b).*$", re.MULTILINE)
MEMORY_TIME = re.compile(r"run completed in (?:(\d+) min(?:s|utes?)?, )?([\d.]+)")
MEMORY_WORK = re.compile(r"^stress-ng: (?:metrc|info): +\[\d+\] vm +(\d+) ", re.MULTILINE)
WORKER_MIB_S = 64
"""How much memory one process of stress-ng gets for each second of its unit, so that it can write all of it.

Our own measurement: on two busy cores, this much did 57,000 operations in 10 s, and five times as much did none.
"""
SHARE = 0.6  # of the memory that is free
MEMORY_FILE = "/proc/meminfo"
AVAILABLE = re.compile(r"^MemAvailable:\s+(\d+) kB", re.MULTILINE)
COMPLETED = re.compile(r"^Stats: Completed: .* with (\d+) hardware incidents, (\d+) errors\s*$", re.MULTILINE)
COPIED = re.compile(r"^Stats: Completed: ([\d.]+)M\b", re.MULTILINE)
STATUS = re.compile(r"^Status: (PASS|FAIL)\b(.*)$", re.MULTILINE)
PROCESS_ERROR = re.compile(
    r"^(?:Process Error|Log: Process Error|Report Error).*procedural.*$|^Process Error.*$", re.MULTILINE
)


def run_gpu_burn(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Burn every GPU in FP32: on tensor cores (-tc) it would be about ten times as fast as the limits are for."""
    if count_gpus(root) == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    return call_tool(["gpu_burn", str(order.seconds)], order, lambda output: {"devices": parse_gpu_burn(output)})


def parse_gpu_burn(output: ToolOutput) -> ReadingTree:
    """Parse gpu_burn's verdicts, counts of errors and last progress line: each GPU's `ok` and `gflops`, by CUDA index.

    gpu_burn reports OK for a GPU that it could not start on (wilicc/gpu-burn issues 14 and 124). So an OK counts only
    where operations were done, no errors were counted, and gpu_burn ended well.
    """
    text = output.text
    verdicts = BURN_VERDICT.findall(text)
    if not verdicts:
        return failed(f"gpu_burn gave no verdict{quote_ending(text)}")
    progress = BURN_PROGRESS.findall(text)
    done = BURN_GPU.findall(progress[-1]) if progress else []
    if len(done) != len(verdicts):
        return failed(f"gpu_burn judged {len(verdicts)} GPUs but reports work on {len(done)}")
    counts = [list(map(int, BURN_COUNT.findall(line))) for line in BURN_ERRORS.findall(text)]
    if not counts or any(len(line) != len(verdicts) for line in counts):
        return output.fail(f"gpu_burn judged {len(verdicts)} GPUs but counts the errors of other ones")
    readings: ReadingTree = {}
    for place, ((gpu, verdict), (work, rate)) in enumerate(zip(verdicts, done, strict=True)):
        is_right = verdict == "OK" and not any(line[place] for line in counts)
        if is_right and output.exit_code:
            readings[gpu] = output.fail(f"gpu_burn says OK but ended with exit code {output.exit_code}")
        elif is_right and int(work) <= 0:
            readings[gpu] = failed("gpu_burn says OK but did no work on this GPU")
        else:
            readings[gpu] = {"ok": value(is_right), "gflops": value(float(rate))}
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
    if not results or problems is None or output.exit_code not in ((0, 1) if problems else (0,)):
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
    """Verify up to 60 % of the memory that is free: as much as half of the processors can write within the unit."""
    megabytes = _measure_free_share(root)
    if not isinstance(megabytes, int):
        return megabytes
    workers = max(1, len(os.sched_getaffinity(0)) // 2)
    size = min(megabytes, workers * order.seconds * WORKER_MIB_S)
    load = ["--vm", str(workers), "--vm-bytes", f"{size}m", "--vm-keep", "--vm-method", "all", "--verify"]
    words = ["stress-ng", *load, "--timeout", f"{order.seconds}s", "--metrics-brief"]
    return call_tool(words, order, lambda output: parse_stress_ng(output, order.seconds))


def parse_stress_ng(output: ToolOutput, seconds: float = 0.0) -> ReadingTree:
    """Parse `stress-ng --vm N --verify`: the number of wrong bits; a failure without a number counts as one.

    It calls a run successful that verified nothing for want of time or of memory, that skipped some of its processes,
    or that somebody ended before its `seconds`: that is no result.
    """
    text = output.text
    end = MEMORY_END.search(text)
    if end is None:
        return output.fail(f"stress-ng did not complete; exit code {output.exit_code}")
    bits = sum(map(int, MEMORY_BITS.findall(text)))
    failures = len(MEMORY_FAIL.findall(text))
    if failures:
        return {"errors": value(max(bits, failures))}
    if end[1] or output.exit_code:
        return output.fail(f"stress-ng completed unsuccessfully; exit code {output.exit_code}")
    if not sum(map(int, MEMORY_WORK.findall(text))):
        return output.fail("stress-ng verified nothing: 0 operations")
    if skipped := MEMORY_SKIPPED.search(text):
        return failed(f"stress-ng skipped a part: {quote_text(skipped[0])}")
    took = MEMORY_TIME.search(text)
    if took is None or 60 * int(took[1] or 0) + float(took[2]) < 0.95 * seconds:
        return output.fail(f"stress-ng ended before its {seconds:g} s were over")
    return {"errors": value(bits)}


def _measure_free_share(root: NodeRoot) -> int | ReadingTree:
    """Return how many MiB of memory to test, or why that is not known."""
    try:
        available = AVAILABLE.search(root.read_text(MEMORY_FILE))
    except OSError as error:
        return failed(f"{MEMORY_FILE}: {error.strerror}")
    if available is None:
        return failed(f"{MEMORY_FILE} does not say how much memory is free")
    return int(int(available[1]) / 1024 * SHARE)


def run_stressapptest(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Test most of the free memory of the host."""
    megabytes = _measure_free_share(root)
    if not isinstance(megabytes, int):
        return megabytes
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
    if not errors and not any(float(size) for size in COPIED.findall(output.stdout)):
        return output.fail("stressapptest copied nothing")
    return {"errors": value(errors)}
