"""Load the node with the usual burn-in tools, one after the other, and read what they print.

Only ever on request. The tools are the node's own, found in its PATH.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial

from assay.model.reading import absent, as_reading, failed, value
from assay.probe import tool_output
from assay.probe.apart import gather
from assay.probe.files import Root, Tree, unread
from assay.probe.gpu import DRIVER_LIST
from assay.probe.lazy import Timed
from assay.probe.nvme import CLASS as NVME
from assay.probe.nvme import namespaces
from assay.probe.tools import read_tool

GRACE_S = 120  # to start, to allocate, to print
NVME_READ_S = 5
CUDA = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # so that CUDA's index is NVML's

Part = Callable[[Root, int], Tree]


def run_active(root: Root, parts: Sequence[str], seconds: int, at: str = "") -> Tree:
    """Run `parts` in order, each loading the node for about `seconds`; return the `active` tree.

    `started_at` is counted from `at` (the asker's time, ISO 8601) where given: node clocks drift.
    """
    now = datetime.now(timezone.utc)  # noqa: UP017  # Python 3.10 has no datetime.UTC
    begun, asked_at = time.monotonic(), datetime.fromisoformat(at) if at else now
    tree: Tree = {}
    for part in parts:
        started = asked_at + timedelta(seconds=time.monotonic() - begun)
        branch = _run_part(root, part, seconds)
        is_leaf = as_reading(branch) is not None
        tree[part] = branch if is_leaf else {"started_at": value(started.isoformat()), **branch}
    return tree


def _run_part(root: Root, part: str, seconds: int) -> Tree:
    if part not in PARTS:
        return failed(f"no active part is called {part!r}; there are {', '.join(PARTS)}")
    limit_s = seconds + 2.0 * GRACE_S
    branch: Tree = gather({part: Timed(limit_s, partial(PARTS[part], root, seconds))}, limit_s)[part]
    return branch


def _all_reduce(root: Root, seconds: int) -> Tree:
    del seconds  # nccl-tests counts iterations, not time
    gpus = _gpu_count(root)
    if gpus == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    sizes = ["-b", "1G", "-e", "8G", "-f", "2"]
    return _read("all_reduce_perf", [*sizes, "-g", str(gpus), "-c", "1"], GRACE_S, tool_output.all_reduce)


def _gpu_count(root: Root) -> int:
    try:
        return len(root.names(DRIVER_LIST))
    except OSError:
        return 0


def _gpu_burn(root: Root, seconds: int) -> Tree:
    if _gpu_count(root) == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    return _read("gpu_burn", ["-tc", str(seconds)], seconds, lambda text: {"devices": tool_output.gpu_burn(text)})


def _nvme_read(root: Root, seconds: int) -> Tree:
    try:
        drives = root.names(NVME)
    except OSError as error:
        return unread(NVME, error)
    each_s = min(seconds, NVME_READ_S)
    return {"drives": {drive: _read_drive(root, drive, each_s) for drive in drives}}


def _read_drive(root: Root, drive: str, seconds: int) -> Tree:
    try:
        (namespace, *_) = namespaces(root, drive)
    except (OSError, ValueError):
        return absent(f"{NVME}/{drive} has no namespace")
    job = [f"--name={drive}", f"--filename=/dev/{namespace}", "--readonly", "--rw=read", "--bs=1M"]
    how = ["--ioengine=libaio", "--iodepth=32", "--direct=1", f"--runtime={seconds}", "--time_based"]
    arguments = [*job, *how, "--output-format=json"]
    return _read("fio", arguments, seconds, lambda text: {"mb_s": tool_output.fio_read(text)})


def _memory(root: Root, seconds: int) -> Tree:
    del root
    load = ["--vm", "4", "--vm-bytes", "60%", "--vm-method", "all", "--verify"]
    return _read(
        "stress-ng",
        [*load, "--timeout", f"{seconds}s", "--metrics-brief"],
        seconds,
        lambda text: {"errors": tool_output.memory(text)},
    )


PARTS: dict[str, Part] = {
    "all_reduce": _all_reduce,
    "gpu_burn": _gpu_burn,
    "nvme_read": _nvme_read,
    "memory": _memory,
}


def _read(tool: str, arguments: Sequence[str], seconds: int, understand: Callable[[str], Tree]) -> Tree:
    return read_tool([tool, *arguments], seconds + GRACE_S, understand, CUDA)
