"""Read what burn-in tools print. Nothing here asks for an exit code: gpu_burn exits 0 on faulty GPUs."""

from __future__ import annotations

import json
import re
from typing import Any

from assay.model.reading import failed, value
from assay.probe.files import Tree

RANK = re.compile(r"^\[\d+,\d+\]<std(?:out|err)>: ?", re.MULTILINE)  # mpirun --tag-output
NCCL_ROW = re.compile(r"^\s*\d+\s+\d+\s+\w+\s+\w+\s+-?\d+((?:\s+\S+){8})\s*$", re.MULTILINE)
NCCL_AVERAGE = re.compile(r"^# Avg bus bandwidth\s*: (\d+(?:\.\d+)?)", re.MULTILINE)
NCCL_BAD = re.compile(r"^# Out of bounds values\s*: (\d+) (OK|FAILED)", re.MULTILINE)
BURN_VERDICT = re.compile(r"^\s*GPU (\d+): (OK|FAULTY)\s*$", re.MULTILINE)
BURN_PROGRESS = re.compile(r"proc'd:((?: (?:- )?-?\d+ \([\d.]+ Gflop/s\))+)")
BURN_GPU = re.compile(r"(-?\d+) \(([\d.]+) Gflop/s\)")
MEMORY_BITS = re.compile(r"vm: detected (\d+) bit errors?")
MEMORY_FAIL = re.compile(r"^stress-ng: fail:", re.MULTILINE)
MEMORY_END = re.compile(r"\b(un)?successful run completed in")


def all_reduce(text: str) -> Tree:
    """Read nccl-tests' table: average bus bandwidth in GB/s, and how many elements came out wrong.

    Columns of a row: size, count, type, redop, root, then time, algbw, busbw and #wrong out of place and in place.
    """
    text = RANK.sub("", text)
    return {"bus_bandwidth_gb_s": _average(text), "wrong": _wrong(text)}


def _average(text: str) -> Tree:
    found = NCCL_AVERAGE.search(text)
    return value(float(found[1])) if found else failed(f"no average bus bandwidth in the output{_ending(text)}")


def _wrong(text: str) -> Tree:
    rows = [columns.split() for columns in NCCL_ROW.findall(text)]
    summary = NCCL_BAD.search(text)
    if not rows or summary is None:
        return failed(f"no result rows and summary in the output{_ending(text)}")
    counts = [count for row in rows for count in (row[3], row[7])]
    if not all(count.isdecimal() for count in counts):
        return failed("the results were not checked (#wrong is N/A)")
    return value(max(sum(map(int, counts)), int(summary[1])))


def gpu_burn(text: str) -> Tree:
    """Read gpu_burn's verdicts and last progress line: each GPU's `ok` and `gflops`, by CUDA index.

    It says OK of a GPU that it could not even start on (wilicc/gpu-burn issues 14 and 124), so an OK counts
    only with operations done.
    """
    verdicts = BURN_VERDICT.findall(text)
    if not verdicts:
        return failed(f"gpu_burn gave no verdict{_ending(text)}")
    progress = BURN_PROGRESS.findall(text)
    done = BURN_GPU.findall(progress[-1]) if progress else []
    if len(done) != len(verdicts):
        return failed(f"gpu_burn judged {len(verdicts)} GPUs but reports work on {len(done)}")
    judged = zip(verdicts, done, strict=True)
    return {gpu: _burned(verdict, int(work), float(rate)) for (gpu, verdict), (work, rate) in judged}


def _burned(verdict: str, work: int, gflops: float) -> Tree:
    if verdict == "OK" and work <= 0:
        return failed("gpu_burn says OK but did no work on this GPU")
    return {"ok": value(verdict == "OK"), "gflops": value(gflops)}


def fio_read(text: str) -> Tree:
    """Read `fio --output-format=json` of one read job: MB/s (10^6 bytes). Warnings before the JSON are skipped."""
    try:
        job: Any = json.loads(text[text.index("{") :])["jobs"][0]
        error, bytes_per_s = int(job["error"]), float(job["read"]["bw_bytes"])
    except (ValueError, KeyError, IndexError, TypeError):
        return failed(f"fio printed no result{_ending(text)}")
    if error or bytes_per_s <= 0:
        return failed(f"fio could not read: error {error}" if error else "fio read nothing")
    return value(round(bytes_per_s / 1e6, 1))


def memory(text: str) -> Tree:
    """Read `stress-ng --vm N --verify`: bits that came back wrong; a failure that names no bits counts as one."""
    end = MEMORY_END.search(text)
    if end is None:
        return failed(f"stress-ng did not complete{_ending(text)}")
    bits = sum(map(int, MEMORY_BITS.findall(text)))
    failures = len(MEMORY_FAIL.findall(text))
    if end[1] and not failures:
        return failed(f"stress-ng completed unsuccessfully{_ending(text)}")
    return value(max(bits, failures))


def _ending(text: str) -> str:
    """Return the last line that says something, to go into a reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"; it ended with {lines[-1][:120]!r}" if lines else "; it printed nothing"
