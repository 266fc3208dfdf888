"""Runs a tool on a virtual node: `python -S -m assay.lab.tools TOOL WORDS…`.

Tools start often. Python compiles the module that it runs anew each time, but keeps those compiled that are imported.
"""

from __future__ import annotations

import sys
from importlib import import_module

from assay.lab.tools.command_lines import check_words

OWN = "provoke-faults"
MODULES = {
    "gpu_tools": (
        *("all_reduce_perf", "dcgmi", "dcgmproftester13", "gpu-fryer", "gpu_burn", "nvbandwidth", "ubergemm"),
        "nvidia-bug-report.sh",
        OWN,
    ),
    "host_tools": ("fio", "ib_write_bw", "stress-ng", "stressapptest", "update-grub", "update-initramfs"),
    "nvidia_smi": ("nvidia-smi",),
    "device_settings": ("mstconfig", "nvme"),
}


def main() -> None:
    """Run the tool."""
    tool, *words = sys.argv[1:]
    if tool != OWN:
        check_words(tool, words)
    module = next(module for module, tools in MODULES.items() if tool in tools)
    import_module(f"assay.lab.tools.{module}").TOOLS[tool](words)


if __name__ == "__main__":
    main()
