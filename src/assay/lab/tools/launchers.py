"""Installs the tools of a virtual node into a folder, under the names of the real ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[3]
TOOLS = {
    "all_reduce_perf": "all_reduce_perf",
    "gpu_burn": "gpu_burn",
    "fio": "fio",
    "nvidia-smi": "nvidia_smi",
    "stress-ng": "stress_ng",
}
SHELL_LAST_ARGUMENT = 'for last in "$@"; do :; done\n'
FILE_PRINTERS = {  # every probe calls them, so they only print a file of the node's root
    "chronyc": '"$ASSAY_ROOT/run/chronyc"',
    "df": '"$ASSAY_ROOT/run/df${last#"$ASSAY_ROOT"}.txt"',
    "nvme": '"$ASSAY_ROOT/run/smart/${last##*/}"',
    "systemctl": '"$ASSAY_ROOT/run/systemctl"',
}


def install_tools(folder: Path) -> Path:
    """Write an executable for every tool into `folder`, and return `folder`.

    The tools run with this Python but without its site packages (`-S`), which halves their start-up time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in _scripts().items():
        launcher = folder / name
        if launcher.exists() and launcher.read_text() == script:
            continue
        scratch = folder / f".{name}.{os.getpid()}"
        scratch.write_text(script)
        scratch.chmod(0o755)
        scratch.replace(launcher)
    return folder


def _scripts() -> dict[str, str]:
    start = f'#!/bin/sh\nPYTHONPATH="{SOURCES}" exec "{sys.executable}" -S -m assay.lab.tools'
    modules = {name: f'{start}.{module} "$@"\n' for name, module in TOOLS.items()}
    printers = {name: f"#!/bin/sh\n{SHELL_LAST_ARGUMENT}exec cat {file}\n" for name, file in FILE_PRINTERS.items()}
    return {**modules, **printers}
