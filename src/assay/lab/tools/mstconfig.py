"""`mstconfig -d PCI query NAME…` and `mstconfig -d PCI -y set NAME=VALUE…` on a virtual node.

`-e query`, which every probe runs, is a part of the shell script that starts this tool.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from assay.lab.node.device_files import print_firmware_value
from assay.lab.tools.state_reader import load_node_state, print_lines
from assay.lab.world import LabWorld

REFUSED = 3


def main() -> None:
    """Run the tool."""
    _, option, address, *words = sys.argv
    if option == "-d" and words[:1] == ["query"]:
        settings = _settings_of(load_node_state(), address)
        rows = [f"        {name:<44}{_find(settings, name)['next_boot']}" for name in words[1:] or settings]
        print_lines(["Configurations:                                          Next Boot", *rows])
    elif option == "-d" and words[:2] == ["-y", "set"]:
        _set_values(address, [word.partition("=")[::2] for word in words[2:]])
    else:
        sys.exit(f"mstconfig: the lab's tool does not support {' '.join(sys.argv[1:])}")


def _set_values(address: str, values: list[tuple[str, str]]) -> None:
    """Write the values, which count from the next boot on."""
    folder = Path(os.environ["ASSAY_LAB_STATE"]).parent
    with LabWorld(folder.parents[1]).change(folder.name) as state:
        settings = _settings_of(state, address)
        for name, text in values:
            _find(settings, name)["next_boot"] = print_firmware_value(name, text)
    print_lines(["Applying... Done!", "-I- Please reboot machine to load new configurations."])


def _settings_of(state: dict[str, Any], address: str) -> dict[str, Any]:
    found = [adapter for adapter in (*state["hcas"], *state["nics"]) if adapter["pci"] == address]
    if not found or not found[0].get("settings"):
        _refuse("Failed to open the device")
    settings: dict[str, Any] = found[0]["settings"]
    return settings


def _find(settings: dict[str, Any], name: str) -> dict[str, str]:
    if name not in settings:
        _refuse(f"The Device doesn't support {name} parameter")
    setting: dict[str, str] = settings[name]
    return setting


def _refuse(why: str) -> NoReturn:
    print_lines([f"-E- {why}"])
    sys.exit(REFUSED)


if __name__ == "__main__":
    main()
