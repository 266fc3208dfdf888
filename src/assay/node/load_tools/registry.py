"""Every part of a load, by its name: who runs it, and how much longer than its load it may take.

`run_load` loads the node with one tool after the other and reads what they say, only on request. The tools are the
node's own, found in its PATH.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial

from assay.model.reading import ReadingTree, failed, parse_reading, value
from assay.model.specs.load_parts import LoadPart
from assay.node.load_tools.assay_load import read_cut_battery, read_cut_training, run_battery, run_training
from assay.node.load_tools.dcgm import (
    LEVEL_SECONDS,
    MNDIAG_S,
    run_dcgm_diag,
    run_dcgm_mndiag,
    run_dcgmproftester,
    run_ubergemm,
)
from assay.node.load_tools.fio import run_fio_verify, run_nvme_read, run_shared_storage
from assay.node.load_tools.nccl import run_all_reduce
from assay.node.load_tools.network import run_front_end, run_ib_write_bw, run_ib_write_bw_gpu
from assay.node.load_tools.nvbandwidth import COPIES, COPIES_S, run_nvbandwidth
from assay.node.load_tools.site_commands import HPL_S, SITE_TRAINING_S, run_hpl, run_site_training
from assay.node.load_tools.stress_tools import run_gpu_burn, run_gpu_fryer, run_memory, run_stressapptest
from assay.node.load_tools.tool_call import TOOL_GRACE_S, LoadOrder, Salvage
from assay.node.probe.gpu.gpu_list import count_gpus
from assay.node.probe.isolated_reader import gather_isolated
from assay.node.probe.node_access import NodeRoot, TimedQuestion

ADAPTERS_S = 600.0  # one after the other
LONG_S = 1000.0
GPU_BRANCHES = ("devices", *COPIES)
"""Where the answer of a part has a branch for each GPU: a GPU of the node that its tool leaves out has failed there."""
NUMBERED_BY_CUDA = ("gpu_burn", "dcgmproftester", "gpu_fryer", "nvbandwidth")
"""Their tools number what CUDA sees: a GPU that it does not see shifts the numbers of those behind it."""


@dataclass(frozen=True, slots=True)
class LoadTool:
    """One part. `run` returns its branch; `beyond_s` is what it may take in all beyond the seconds of its load.

    `read_cut` reads the relayed lines of a part that counts in units, where a kill cut it short.
    """

    run: Callable[[NodeRoot, LoadOrder], ReadingTree]
    beyond_s: float = 2.0 * TOOL_GRACE_S
    read_cut: Salvage | None = None


def _dcgm(level: int) -> LoadTool:
    return LoadTool(partial(run_dcgm_diag, level), LEVEL_SECONDS[level] + TOOL_GRACE_S)


def _training(workload: str) -> LoadTool:
    return LoadTool(partial(run_training, workload), read_cut=read_cut_training)


LOAD_TOOLS: dict[LoadPart, LoadTool] = {
    "all_reduce": LoadTool(run_all_reduce),
    "gpu_burn": LoadTool(run_gpu_burn),
    "nvme_read": LoadTool(run_nvme_read),
    "memory": LoadTool(run_memory),
    "dcgm_diag_1": _dcgm(1),
    "dcgm_diag_2": _dcgm(2),
    "dcgm_diag_3": _dcgm(3),
    "dcgm_diag_4": _dcgm(4),
    "dcgm_mndiag": LoadTool(run_dcgm_mndiag, MNDIAG_S + 2.0 * TOOL_GRACE_S),
    "ubergemm": LoadTool(run_ubergemm),
    "dcgmproftester": LoadTool(run_dcgmproftester),
    "gpu_fryer": LoadTool(run_gpu_fryer),
    "nvbandwidth": LoadTool(run_nvbandwidth, COPIES_S + 2.0 * TOOL_GRACE_S),
    "ib_write_bw": LoadTool(run_ib_write_bw, ADAPTERS_S),
    "ib_write_bw_gpu": LoadTool(run_ib_write_bw_gpu, ADAPTERS_S),
    "fio_verify": LoadTool(run_fio_verify),
    "shared_storage": LoadTool(run_shared_storage),
    "stressapptest": LoadTool(run_stressapptest),
    "hpl": LoadTool(run_hpl, HPL_S + 2.0 * TOOL_GRACE_S),
    "front_end": LoadTool(run_front_end),
    "battery": LoadTool(run_battery, read_cut=read_cut_battery),
    "training": _training("gpt"),
    "training_data_parallel": _training("data-parallel"),
    "training_tensor_parallel": _training("tensor-parallel"),
    "site_training": LoadTool(run_site_training, SITE_TRAINING_S + 2.0 * TOOL_GRACE_S),
}


def find_long_parts_s(parts: Iterable[str]) -> float:
    """Return how long those parts may take that decide themselves how long they run, such as a diagnosis of hours."""
    tools: dict[str, LoadTool] = {str(part): tool for part, tool in LOAD_TOOLS.items()}
    return sum(tools[part].beyond_s for part in parts if part in tools and tools[part].beyond_s >= LONG_S)


def run_load(root: NodeRoot, parts: Sequence[str], order: LoadOrder, at: str = "") -> ReadingTree:
    """Run `parts` in order, each for about the order's seconds, and return the `active` tree.

    Each part has `started_at`, counted from `at` (the caller's time, ISO 8601) where given: a node's clock may be off.
    """
    now = datetime.now(timezone.utc)  # noqa: UP017  # Python 3.10 has no datetime.UTC
    start = time.monotonic()
    start_time = datetime.fromisoformat(at) if at else now
    tools: dict[str, LoadTool] = {str(name): tool for name, tool in LOAD_TOOLS.items()}
    tree: ReadingTree = {}
    for part in parts:
        started = start_time + timedelta(seconds=time.monotonic() - start)
        if order.relay:
            order.relay.tell(begins=part, at=started.isoformat())
        seconds = order.part_seconds.get(part, order.seconds)
        branch = _run_part(root, part, tools.get(part), replace(order, seconds=seconds))
        tree[part] = add_start(branch, started.isoformat())
        if order.relay:
            order.relay.tell(ends=part, branch=tree[part])
    return tree


def add_start(branch: ReadingTree, started_at: str) -> ReadingTree:
    """Return a part's branch with the time (ISO 8601) at which it began; a leaf has none."""
    return branch if parse_reading(branch) is not None else {"started_at": value(started_at), **branch}


def _run_part(root: NodeRoot, part: str, tool: LoadTool | None, order: LoadOrder) -> ReadingTree:
    if tool is None:
        return failed(f"no active part is called {part!r}; there are {', '.join(LOAD_TOOLS)}")
    limit_s = order.seconds + tool.beyond_s
    branch: ReadingTree = gather_isolated({part: TimedQuestion(limit_s, partial(tool.run, root, order))}, limit_s)[part]
    count = count_gpus(root)
    for name in GPU_BRANCHES:
        by_gpu = branch.get(name)
        if not isinstance(by_gpu, dict) or parse_reading(by_gpu) is not None:
            continue
        if part in NUMBERED_BY_CUDA and len(by_gpu) < count:
            branch[name] = failed(f"{part} tells of {len(by_gpu)} of {count} GPUs, and not which CUDA does not see")
            if wrong := sum(gpu.get("ok") == value(False) for gpu in by_gpu.values()):
                branch["wrong"] = value(wrong)
            continue
        for gpu in map(str, range(count)):
            by_gpu.setdefault(gpu, failed(f"{part} says nothing of GPU {gpu}"))
    return branch
