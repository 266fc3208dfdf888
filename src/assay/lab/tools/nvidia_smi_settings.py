"""`nvidia-smi --query-gpu=…` and its options that change settings, on a virtual node.

The tools start without site packages, which the lab's world needs: a change goes on in a Python with them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from assay.lab.node.healthy_devices import COMPUTE_MODES
from assay.lab.tools.state_reader import load_node_state, print_lines, working_gpus

QUERY, FORMAT = "--query-gpu=", "--format=csv,noheader,nounits"
NOT_FOUND = 6  # nvidia-smi's exit code for a device that is not there

Gpu = dict[str, Any]


def _switch(on: Any) -> str:
    return "Enabled" if on else "Disabled"


COLUMNS: Mapping[str, Callable[[Gpu], Any]] = {
    "pci.bus_id": lambda gpu: f"0000{gpu['pci'].upper()}",
    "persistence_mode": lambda gpu: _switch(gpu["persistence"]),
    "ecc.mode.pending": lambda gpu: _switch(gpu["ecc_pending"]),
    "mig.mode.pending": lambda gpu: _switch(gpu["mig_pending"]),
    "compute_mode": lambda gpu: COMPUTE_MODES[gpu["compute_mode"]].title(),
    "clocks.applications.memory": lambda gpu: gpu["application_memory_mhz"],
    "clocks.applications.graphics": lambda gpu: gpu["application_mhz"],
    "power.limit": lambda gpu: f"{gpu['power_limit_w']:.2f}",
}


def _clocks(text: str) -> Gpu:
    memory, graphics = map(int, text.split(","))
    return {"application_memory_mhz": memory, "application_mhz": graphics}


OPTIONS: Mapping[str, Callable[[str], Gpu]] = {
    "-pm": lambda text: {"persistence": text == "1"},
    "-e": lambda text: {"ecc_pending": text == "1"},
    "-mig": lambda text: {"mig_enabled": text == "1", "mig_pending": text == "1"},
    "-c": lambda text: {"compute_mode": int(text)},
    "-ac": _clocks,
    "-pl": lambda text: {"power_limit_w": int(text)},
}


def run_settings_command(words: list[str]) -> None:
    """Run the tool with these words."""
    if len(words) == 2 and words[0].startswith(QUERY) and words[1] == FORMAT:
        columns = [COLUMNS[name] for name in words[0].removeprefix(QUERY).split(",")]
        print_lines(", ".join(str(column(gpu)) for column in columns) for gpu in working_gpus(load_node_state()))
    elif len(words) != 4 or words[0] != "-i" or words[2] not in OPTIONS:
        sys.exit(f"nvidia-smi: the lab's tool does not support {' '.join(words)}")
    else:
        os.execv(sys.executable, [sys.executable, "-m", __name__, *words])  # noqa: S606 — no shell


def main() -> None:
    """Change one setting of one GPU in the state of the node."""
    from assay.lab.world import LabWorld

    _, address, option, text = sys.argv[1:]
    folder = Path(os.environ["ASSAY_LAB_STATE"]).parent
    with LabWorld(folder.parents[1]).change(folder.name) as state:
        found = [gpu for gpu in working_gpus(state) if gpu["pci"] == address[-12:].lower()]
        for gpu in found:
            gpu.update(OPTIONS[option](text))
    sys.exit(0 if found else NOT_FOUND)


if __name__ == "__main__":
    main()
