"""`update-initramfs` on a virtual node: the options of modules in /etc/modprobe.d count from the next boot on."""

from __future__ import annotations

import os
from pathlib import Path

from assay.lab.world import LabWorld


def main() -> None:
    """Read the files, and change the state of the node."""
    folder = Path(os.environ["ASSAY_LAB_STATE"]).parent
    texts = [path.read_text() for path in sorted((folder / "root/etc/modprobe.d").glob("*.conf"))]
    options: dict[str, dict[str, str]] = {}
    for words in (line.split() for text in texts for line in text.splitlines()):
        if words[:1] == ["options"]:
            given = (word.partition("=") for word in words[2:])
            options.setdefault(words[1], {}).update({name: text for name, _, text in given})
    with LabWorld(folder.parents[1]).change(folder.name) as state:
        state["next_boot"] = {**state.get("next_boot", {}), "module_options": options}


if __name__ == "__main__":
    main()
