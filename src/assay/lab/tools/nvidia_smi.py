"""`nvidia-smi` on a virtual node: the settings of GPUs (`--query-gpu=…`), changes of them, and their reset.

Tools start without site packages, which the lab's world needs: a change goes on in a Python with them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from assay.lab.tools.state_reader import load_node_state, print_lines, working_gpus

QUERY = "--query-gpu="
QUERY_FORMATS = ("--format=csv,noheader,nounits", "--format=csv,noheader")
REFUSED = 2  # "a supplied argument or flag is invalid"
IN_USE = 255
DEVICE_NOT_FOUND = 6  # nvidia-smi's exit code
COMPUTE_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")

Gpu = dict[str, Any]


def run_nvidia_smi(words: list[str]) -> None:
    """Print settings, change one, or reset GPUs."""
    is_reset = len(words) == 3 and words[:2] == ["-r", "-i"]
    if len(words) == 2 and words[0].startswith(QUERY) and words[1] in QUERY_FORMATS:
        names = words[0].removeprefix(QUERY).split(",")
        if unknown := [name for name in names if name not in COLUMNS]:
            print_lines([f'Field "{unknown[0]}" is not a valid field to query.'])
            sys.exit(REFUSED)
        state = load_node_state()
        gpus = [{**gpu, "driver": state["driver"]} for gpu in working_gpus(state)]
        print_lines(", ".join(str(COLUMNS[name](gpu)) for name in names) for gpu in gpus)
    elif (len(words) != 4 or words[0] != "-i" or words[2] not in OPTIONS) and not is_reset:
        print_lines(["Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."])
        sys.exit(REFUSED)
    elif sys.flags.no_site:
        os.execv(sys.executable, [sys.executable, "-m", "assay.lab.tools", "nvidia-smi", *words])  # noqa: S606 — no shell
    else:
        sys.exit(_reset_gpus(words[2].split(",")) if is_reset else _change_setting(*words[1:]))


def _reset_gpus(addresses: list[str]) -> int:
    """Reset GPUs, all or none. The driver refuses one in use, or kept open by its persistence mode."""
    from assay.lab.node.healthy_devices import gpu_after_reset

    with _change_state() as state:
        named = [gpu for gpu in working_gpus(state) if gpu["pci"] in {text[-12:].lower() for text in addresses}]
        if len(named) < len(addresses):
            print_lines(["No devices were found"])
            return DEVICE_NOT_FOUND
        if busy := [gpu for gpu in named if gpu["pids"] or gpu["persistence"]]:
            print_lines(f"GPU 0000{gpu['pci'].upper()} is currently in use by another process." for gpu in busy)
            return IN_USE
        for gpu in named:
            gpu.update(gpu_after_reset(gpu))
            print_lines([f"GPU 0000{gpu['pci'].upper()} was successfully reset."])
    return 0


def _change_setting(address: str, option: str, text: str) -> int:
    """Change a setting of one GPU in the state of the node. Return the exit code."""
    with _change_state() as state:
        gpus = [gpu for gpu in working_gpus(state) if gpu["pci"] == address[-12:].lower()]
        for gpu in gpus:
            gpu.update(OPTIONS[option](text))
    return 0 if gpus else DEVICE_NOT_FOUND


def _change_state() -> AbstractContextManager[Gpu]:
    from pathlib import Path

    from assay.lab.world import LabWorld

    folder = Path(os.environ["ASSAY_LAB_STATE"]).parent
    return LabWorld(folder.parents[1]).change(folder.name)


def _switch(on: int) -> str:
    return "Enabled" if on else "Disabled"


COLUMNS: Mapping[str, Callable[[Gpu], Any]] = {
    "index": lambda gpu: gpu["index"],
    "uuid": lambda gpu: gpu["uuid"],
    "driver_version": lambda gpu: gpu["driver"],
    "pci.bus_id": lambda gpu: f"0000{gpu['pci'].upper()}",
    "persistence_mode": lambda gpu: _switch(gpu["persistence"]),
    "ecc.mode.pending": lambda gpu: _switch(gpu["ecc_pending"]),
    "mig.mode.pending": lambda gpu: _switch(gpu["mig_pending"]),
    "compute_mode": lambda gpu: COMPUTE_MODES[gpu["compute_mode"]],
    "clocks.applications.memory": lambda gpu: gpu["application_memory_mhz"],
    "clocks.applications.graphics": lambda gpu: gpu["application_mhz"],
    "power.limit": lambda gpu: f"{gpu['power_limit_w']:.2f}",
}
OPTIONS: Mapping[str, Callable[[str], Gpu]] = {
    "-pm": lambda text: {"persistence": text == "1"},
    "-e": lambda text: {"ecc_pending": text == "1"},
    "-mig": lambda text: {"mig_enabled": text == "1", "mig_pending": text == "1"},
    "-c": lambda text: {"compute_mode": int(text)},
    "-ac": lambda text: dict(
        zip(("application_memory_mhz", "application_mhz"), map(int, text.split(",")), strict=True)
    ),
    "-pl": lambda text: {"power_limit_w": int(text)},
}
TOOLS = {"nvidia-smi": run_nvidia_smi}
