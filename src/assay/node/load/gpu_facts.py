"""Which GPUs CUDA shows, as nvidia-smi names them: index, serial-like UUID and driver, in the order of the PCI bus."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

QUERY_S = 30
FIELDS = "index,uuid,driver_version"


@dataclass(frozen=True)
class GpuFacts:
    """One GPU. `index` is NVML's."""

    index: int
    uuid: str
    driver: str


def find_gpus(visible: str) -> list[GpuFacts]:
    """Return the GPUs in CUDA's order. `visible`: CUDA_VISIBLE_DEVICES, "" for all. Empty without nvidia-smi."""
    command = ["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=QUERY_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return choose_visible(parse_gpus(done.stdout), visible)


def parse_gpus(text: str) -> list[GpuFacts]:
    """Parse the rows of nvidia-smi; rows that are none are left out."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    return [GpuFacts(int(row[0]), row[1], row[2]) for row in rows if len(row) == 3 and row[0].isdecimal()]


def choose_visible(gpus: list[GpuFacts], visible: str) -> list[GpuFacts]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES names, by index or by the beginning of the UUID, in its order."""
    names = [name.strip() for name in visible.split(",") if name.strip()]
    if not names:
        return gpus
    chosen = []
    for name in names:
        found = [gpu for gpu in gpus if str(gpu.index) == name or gpu.uuid.startswith(name)]
        if len(found) != 1:
            break  # CUDA hides all that follow an unknown name
        chosen += found
    return chosen
