"""`nvidia-smi` on a virtual node: the settings of GPUs (`--query-gpu=…`), and changes of them.

Tools start without site packages, which the lab's world needs: a change goes on in a Python with them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from assay.lab.tools.state_reader import load_node_state, print_lines, working_gpus

QUERY = "--query-gpu="
QUERY_FORMATS = ("--format=csv,noheader,nounits", "--format=csv,noheader")
REFUSED = 2  # "a supplied argument or flag is invalid"
DEVICE_NOT_FOUND = 6  # nvidia-smi's exit code
COMPUTE_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")

Gpu = dict[str, Any]


def run_nvidia_smi(words: list[str]) -> None:
    """Print settings, or change one."""
    if len(words) == 2 and words[0].startswith(QUERY) and words[1] in QUERY_FORMATS:
        names = words[0].removeprefix(QUERY).split(",")
        if unknown := [name for name in names if name not in COLUMNS]:
            print_lines([f'Field "{unknown[0]}" is not a valid field to query.'])
            sys.exit(REFUSED)
        state = load_node_state()
        gpus = [{**gpu, "driver": state["driver"]} for gpu in working_gpus(state)]
        print_lines(", ".join(str(COLUMNS[name](gpu)) for name in names) for gpu in gpus)
    elif len(words) != 4 or words[0] != "-i" or words[2] not in OPTIONS:
        print_lines(["Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."])
        sys.exit(REFUSED)
    elif sys.flags.no_site:
        os.execv(sys.executable, [sys.executable, "-m", "assay.lab.tools", "nvidia-smi", *words])  # noqa: S606 — no shell
    else:
        sys.exit(_change_setting(*words[1:]))


def _change_setting(address: str, option: str, text: str) -> int:
    """Change a setting of one GPU in the state of the node. Return the exit code."""
    from pathlib import Path

    from assay.lab.world import LabWorld

    folder = Path(os.environ["ASSAY_LAB_STATE"]).parent
    with LabWorld(folder.parents[1]).change(folder.name) as state:
        gpus = [gpu for gpu in working_gpus(state) if gpu["pci"] == address[-12:].lower()]
        for gpu in gpus:
            gpu.update(OPTIONS[option](text))
    return 0 if gpus else DEVICE_NOT_FOUND


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
