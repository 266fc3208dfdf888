"""Every part of a load, by its name: who runs it, and how much longer than its load it may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.model.load.load_parts import LoadPart
from assay.model.reading import ReadingTree
from assay.probe.load_tools.all_reduce import run_all_reduce
from assay.probe.load_tools.device_battery import read_cut_battery, run_battery
from assay.probe.load_tools.gpu_burn import run_gpu_burn
from assay.probe.load_tools.memory import run_memory
from assay.probe.load_tools.nvme_read import run_nvme_read
from assay.probe.load_tools.tool_call import TOOL_GRACE_S, LoadOrder, Salvage
from assay.probe.node_access import NodeRoot


@dataclass(frozen=True, slots=True)
class LoadTool:
    """One part. `run` returns its branch; `beyond_s` is what it may take in all beyond the seconds of its load.

    `read_cut` reads the relayed lines of a part that counts in units, where a kill cut it short.
    """

    run: Callable[[NodeRoot, LoadOrder], ReadingTree]
    beyond_s: float = 2.0 * TOOL_GRACE_S
    read_cut: Salvage | None = None


LOAD_TOOLS: dict[LoadPart, LoadTool] = {
    "all_reduce": LoadTool(run_all_reduce),
    "gpu_burn": LoadTool(run_gpu_burn),
    "nvme_read": LoadTool(run_nvme_read),
    "memory": LoadTool(run_memory),
    "battery": LoadTool(run_battery, read_cut=read_cut_battery),
}
