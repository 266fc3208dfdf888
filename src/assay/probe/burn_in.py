"""Loads the node with burn-in tools, one after the other, and parses what they print.

Runs only on request. The tools are the node's own, found in its PATH. Exit codes are ignored: gpu_burn exits 0 on
faulty GPUs.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, parse_reading, value
from assay.probe.devices.nvme import NVME_CLASS, list_namespaces
from assay.probe.gpu.gpu_list import DRIVER_LIST
from assay.probe.isolated_reader import gather_isolated
from assay.probe.nccl_tests import parse_all_reduce, parse_report, quote_ending
from assay.probe.node_access import NodeRoot, TimedQuestion, leaf_for_error, run_tool

TOOL_GRACE_S = 120  # to start, allocate and print
NVME_READ_S = 5
USAGE_S = 20
CUDA_SETTINGS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # so that CUDA's index is NVML's

BurnInPart = Callable[[NodeRoot, int], ReadingTree]
"""(node, seconds of load) → branch."""

BURN_VERDICT = re.compile(r"^\s*GPU (\d+): (OK|FAULTY)\s*$", re.MULTILINE)
BURN_PROGRESS = re.compile(r"proc'd:((?: (?:- )?-?\d+ \([\d.]+ Gflop/s\))+)")
BURN_GPU = re.compile(r"(-?\d+) \(([\d.]+) Gflop/s\)")
MEMORY_BITS = re.compile(r"vm: detected (\d+) bit errors?")
MEMORY_FAIL = re.compile(r"^stress-ng: fail:", re.MULTILINE)
MEMORY_END = re.compile(r"\b(un)?successful run completed in")


def run_burn_in(root: NodeRoot, parts: Sequence[str], seconds: int, at: str = "") -> ReadingTree:
    """Run `parts` in order, each for about `seconds`, and return the `active` tree.

    Each part has `started_at`, counted from `at` (the caller's time, ISO 8601) where given: a node's clock may be off.
    """
    now = datetime.now(timezone.utc)  # noqa: UP017  # Python 3.10 has no datetime.UTC
    start, start_time = time.monotonic(), datetime.fromisoformat(at) if at else now
    tree: ReadingTree = {}
    for part in parts:
        started = start_time + timedelta(seconds=time.monotonic() - start)
        branch = _run_part(root, part, seconds)
        is_leaf = parse_reading(branch) is not None
        tree[part] = branch if is_leaf else {"started_at": value(started.isoformat()), **branch}
    return tree


def _run_part(root: NodeRoot, part: str, seconds: int) -> ReadingTree:
    if part not in BURN_IN_PARTS:
        return failed(f"no active part is called {part!r}; there are {', '.join(BURN_IN_PARTS)}")
    limit_s = seconds + 2.0 * TOOL_GRACE_S
    branch: ReadingTree = gather_isolated(
        {part: TimedQuestion(limit_s, partial(BURN_IN_PARTS[part], root, seconds))}, limit_s
    )[part]
    return branch


def _run_all_reduce(root: NodeRoot, seconds: int) -> ReadingTree:
    del seconds  # nccl-tests counts iterations, not time
    gpus = _gpu_count(root)
    if gpus == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    arguments = ["-b", "1G", "-e", "8G", "-f", "2", "-g", str(gpus), "-c", "1"]
    if not _writes_reports():
        return _run("all_reduce_perf", arguments, TOOL_GRACE_S, parse_all_reduce)
    with tempfile.TemporaryDirectory(prefix="assay-nccl-") as folder:  # -J never overwrites: it would write FILE.0
        report = Path(folder, "report.json")
        arguments += ["-J", str(report)]
        return _run("all_reduce_perf", arguments, TOOL_GRACE_S, lambda text: _read_report(report, text))


def _writes_reports() -> bool:
    """Whether this all_reduce_perf knows `-J FILE`: older versions refuse it."""
    usage = run_tool(["all_reduce_perf", "-h"], USAGE_S, value)
    return "--output_file" in str(usage.get("value", ""))


def _read_report(report: Path, text: str) -> ReadingTree:
    """Return the readings of the report, or of the table where the tool ended before it wrote a whole one."""
    try:
        return parse_report(report.read_text(errors="replace"))
    except (OSError, ValueError):
        return parse_all_reduce(text)


def _gpu_count(root: NodeRoot) -> int:
    try:
        return len(root.list_names(DRIVER_LIST))
    except OSError:
        return 0


def _run_gpu_burn(root: NodeRoot, seconds: int) -> ReadingTree:
    if _gpu_count(root) == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    # Without -tc: on tensor cores, cuBLAS is about ten times as fast as in FP32, which the limits are for.
    return _run("gpu_burn", [str(seconds)], seconds, lambda text: {"devices": parse_gpu_burn(text)})


def _run_nvme_read(root: NodeRoot, seconds: int) -> ReadingTree:
    try:
        drives = root.list_names(NVME_CLASS)
    except OSError as error:
        return leaf_for_error(NVME_CLASS, error)
    each_s = min(seconds, NVME_READ_S)
    return {"drives": {drive: _read_drive(root, drive, each_s) for drive in drives}}


def _read_drive(root: NodeRoot, drive: str, seconds: int) -> ReadingTree:
    try:
        (namespace, *_) = list_namespaces(root, drive)
    except (OSError, ValueError):
        return absent(f"{NVME_CLASS}/{drive} has no namespace")
    job = [f"--name={drive}", f"--filename=/dev/{namespace}", "--readonly", "--rw=read", "--bs=1M"]
    how = ["--ioengine=libaio", "--iodepth=32", "--direct=1", f"--runtime={seconds}", "--time_based"]
    arguments = [*job, *how, "--output-format=json"]
    return _run("fio", arguments, seconds, lambda text: {"mb_s": parse_fio_read(text)})


def _run_stress_ng(root: NodeRoot, seconds: int) -> ReadingTree:
    del root
    load = ["--vm", "4", "--vm-bytes", "60%", "--vm-method", "all", "--verify"]
    return _run(
        "stress-ng",
        [*load, "--timeout", f"{seconds}s", "--metrics-brief"],
        seconds,
        lambda text: {"errors": parse_stress_ng(text)},
    )


BURN_IN_PARTS: dict[str, BurnInPart] = {
    "all_reduce": _run_all_reduce,
    "gpu_burn": _run_gpu_burn,
    "nvme_read": _run_nvme_read,
    "memory": _run_stress_ng,
}


def _run(tool: str, arguments: Sequence[str], seconds: int, parse: Callable[[str], ReadingTree]) -> ReadingTree:
    return run_tool([tool, *arguments], seconds + TOOL_GRACE_S, parse, CUDA_SETTINGS)


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


def parse_fio_read(text: str) -> ReadingTree:
    """Parse `fio --output-format=json` of one read job: MB/s (10^6 bytes). Warnings before the JSON are skipped."""
    try:
        job: Any = json.loads(text[text.index("{") :])["jobs"][0]
        error, bytes_per_s = int(job["error"]), float(job["read"]["bw_bytes"])
    except (ValueError, KeyError, IndexError, TypeError):
        return failed(f"fio printed no result{quote_ending(text)}")
    if error or bytes_per_s <= 0:
        return failed(f"fio could not read: error {error}" if error else "fio read nothing")
    return value(round(bytes_per_s / 1e6, 1))


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
