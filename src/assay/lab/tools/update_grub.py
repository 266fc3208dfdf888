"""`update-grub` on a virtual node: the kernel and command line of its drop-ins count from the next boot on.

The image with which its disk was made stays on the command line.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from assay.lab.world import LabWorld
from assay.model.specs.image import IMAGE

MENU_ENTRY = re.compile(r"with Linux (\S+?)\"?$")


def main() -> None:
    """Read the drop-ins, and change the state of the node."""
    folder = Path(os.environ["ASSAY_LAB_STATE"]).parent
    lines = [line for path in sorted((folder / "root/etc/default/grub.d").glob("*.cfg")) for line in _read_lines(path)]
    words = [word for line in lines if line.startswith("GRUB_CMDLINE_LINUX=") for word in line.strip('"').split()[1:]]
    entries = [found[1] for line in lines if (found := MENU_ENTRY.search(line))]
    with LabWorld(folder.parents[1]).change(folder.name) as state:
        kernel = entries[-1] if entries else state["kernel"]
        image = [word for word in state["cmdline"].split() if word.startswith(f"{IMAGE}=")]
        given = [f"BOOT_IMAGE=/vmlinuz-{kernel}", "root=/dev/md0", "ro", *words, *image]
        state["next_boot"] = {**state.get("next_boot", {}), "kernel": kernel, "cmdline": " ".join(given)}


def _read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


if __name__ == "__main__":
    main()
