"""Every part of a load, by its name: who runs it, and how much longer than its load it may take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from assay.model.reading import ReadingTree
from assay.model.specs.load_parts import LoadPart
from assay.node.load_tools.all_reduce import run_all_reduce
from assay.node.load_tools.dcgm_diag import LEVEL_SECONDS, run_dcgm_diag
from assay.node.load_tools.dcgm_mndiag import MNDIAG_S, run_dcgm_mndiag
from assay.node.load_tools.device_battery import read_cut_battery, run_battery
from assay.node.load_tools.fio_verify import run_fio_verify
from assay.node.load_tools.front_end import run_front_end
from assay.node.load_tools.gpu_burn import run_gpu_burn
from assay.node.load_tools.gpu_fryer import run_gpu_fryer
from assay.node.load_tools.hpl import HPL_S, run_hpl
from assay.node.load_tools.ib_write_bw import run_ib_write_bw, run_ib_write_bw_gpu
from assay.node.load_tools.memory import run_memory
from assay.node.load_tools.nvbandwidth import COPIES_S, run_nvbandwidth
from assay.node.load_tools.nvme_read import run_nvme_read
from assay.node.load_tools.site_training import SITE_TRAINING_S, run_site_training
from assay.node.load_tools.stressapptest import run_stressapptest
from assay.node.load_tools.tensor_gemm import run_dcgmproftester, run_ubergemm
from assay.node.load_tools.tool_call import TOOL_GRACE_S, LoadOrder, Salvage
from assay.node.load_tools.training import read_cut_training, run_training
from assay.node.probe.node_access import NodeRoot

ADAPTERS_S = 600.0  # one after the other
LONG_S = 1000.0


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
