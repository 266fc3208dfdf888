"""`nvme` and `mstconfig` on a virtual node.

The shell scripts that start this print what only files hold (`nvme smart-log`, `mstconfig -e query`) themselves.
`nvme sanitize-log` runs without site packages (`-S`), which the lab's world needs: it is imported late.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from assay.lab.tools.state_reader import State, load_node_state, print_lines

SANITIZE_ACTIONS = {"2": "sanitize-block", "4": "sanitize-crypto"}
FORMAT_METHODS = {"1": "format-erase", "2": "format-crypto"}
NEVER, COMPLETED, IN_PROGRESS, FAILED = range(4)
STATUS_WORDS = ("Never been sanitized", "Completed successfully", "In progress", "Failed")
SANITIZE_S = 20
"""How long a sanitize takes, in seconds of the lab."""
MSTCONFIG_REFUSED = 3


def run_nvme(words: list[str]) -> None:
    """Print the log of the last sanitize, sanitize or format a drive."""
    question = words[0]
    device = next(word for word in words if word.startswith("/dev/")).removeprefix("/dev/")
    options = dict(word.removeprefix("--").partition("=")[::2] for word in words)
    drive = _find_drive(load_node_state(), device)
    now = datetime.fromisoformat(os.environ["ASSAY_AT"])
    if question == "sanitize-log":
        _print_sanitize_log(drive, now)
    elif question == "sanitize":
        _erase(drive, SANITIZE_ACTIONS[options["sanact"]], now)
    elif question == "format":
        _erase(drive, FORMAT_METHODS[options["ses"]], now)
    else:
        sys.exit(f"nvme: the lab's tool does not support {question}")


def _find_drive(state: State, device: str) -> State:
    drives: dict[str, State] = {drive["name"]: drive for drive in state["nvme"] if drive["present"]}
    name = device.removesuffix("n1")
    if name not in drives:
        _refuse_nvme("No such device")
    return drives[name]


def _print_sanitize_log(drive: State, now: datetime) -> None:
    if not any(method in drive["can_wipe"] for method in SANITIZE_ACTIONS.values()):
        _refuse_nvme("Invalid Log Page: The log page indicated is invalid(0x109)")
    status = _find_sanitize_status(drive, now)
    last_method = drive["sanitizes"][-1]["method"] if drive.get("sanitizes") else ""
    action = next((int(number) for number, method in SANITIZE_ACTIONS.items() if method == last_method), 0)
    sstat = {"global_erased": 0, "no_cmplted_passes": 0, "status": f"({status}) {STATUS_WORDS[status]}"}
    log = {"sprog": 32768 if status == IN_PROGRESS else 65535, "sstat": sstat, "cdw10_info": action}
    print_lines([json.dumps({drive["name"]: log})])


def _find_sanitize_status(drive: State, now: datetime) -> int:
    if not drive.get("sanitizes"):
        return NEVER
    last = drive["sanitizes"][-1]
    if now < datetime.fromisoformat(last["ends_at"]):
        return IN_PROGRESS
    return FAILED if last["fails"] else COMPLETED


def _erase(drive: State, method: str, now: datetime) -> None:
    """Start a sanitize, or format at once. A drive of which the last sanitize failed takes no format."""
    if method not in drive["can_wipe"]:
        _refuse_nvme("Invalid Field in Command: A reserved coded value or an unsupported value(0x4002)")
    status = _find_sanitize_status(drive, now)
    is_format = method in FORMAT_METHODS.values()
    if status == IN_PROGRESS or (is_format and status == FAILED):
        _refuse_nvme(f"Sanitize {STATUS_WORDS[status]}: the command is not allowed")
    with _change_state(is_in_files=False) as state:
        changed = _find_drive(state, drive["name"])
        if is_format:
            changed.setdefault("formats", []).append({"method": method, "at": now.isoformat()})
        else:
            ends_at = now + timedelta(seconds=state["timing"].get("sanitize_s", SANITIZE_S))
            run = {"method": method, "at": now.isoformat(), "ends_at": ends_at.isoformat()}
            changed.setdefault("sanitizes", []).append(run | {"fails": changed.get("wipe_fails", False)})
    if not (drive.get("wipe_lies") or (drive.get("wipe_fails") and not is_format)):
        content = Path(os.environ["ASSAY_ROOT"], f"dev/{drive['name']}n1")
        size = content.stat().st_size
        os.truncate(content, 0)
        os.truncate(content, size)


def _refuse_nvme(reason: str) -> NoReturn:
    sys.stderr.write(f"NVMe status: {reason}\n")
    sys.exit(1)


def run_mstconfig(words: list[str]) -> None:
    """Run `-d PCI query NAME…` or `-d PCI -y set NAME=VALUE…`. Values that are set count from the next boot on."""
    from assay.lab.node.device_files import print_firmware_value

    option, address, *request = words
    if option == "-d" and request[:1] == ["query"]:
        settings = _find_adapter_settings(load_node_state(), address)
        rows = [f"        {name:<44}{_find_setting(settings, name)['next_boot']}" for name in request[1:] or settings]
        print_lines(["Configurations:                                          Next Boot", *rows])
    elif option == "-d" and request[:2] == ["-y", "set"]:
        with _change_state(is_in_files=True) as state:
            settings = _find_adapter_settings(state, address)
            for name, _, value in (word.partition("=") for word in request[2:]):
                _find_setting(settings, name)["next_boot"] = print_firmware_value(name, value)
        print_lines(["Applying... Done!", "-I- Please reboot machine to load new configurations."])
    else:
        sys.exit(f"mstconfig: the lab's tool does not support {' '.join(words)}")


def _find_adapter_settings(state: State, address: str) -> dict[str, dict[str, str]]:
    adapters: dict[str, State] = {adapter["pci"]: adapter for adapter in (*state["hcas"], *state["nics"])}
    settings: dict[str, dict[str, str]] = adapters.get(address, {}).get("settings", {})
    if not settings:
        _refuse_mstconfig("Failed to open the device")
    return settings


def _find_setting(settings: dict[str, dict[str, str]], name: str) -> dict[str, str]:
    if name not in settings:
        _refuse_mstconfig(f"The Device doesn't support {name} parameter")
    return settings[name]


def _refuse_mstconfig(reason: str) -> NoReturn:
    print_lines([f"-E- {reason}"])
    sys.exit(MSTCONFIG_REFUSED)


def _change_state(*, is_in_files: bool) -> AbstractContextManager[dict[str, Any]]:
    """Return the context in which the state of the node may be edited."""
    from assay.lab.world import LabWorld

    folder = Path(os.environ["ASSAY_LAB_STATE"]).parent
    return LabWorld(folder.parents[1]).change(folder.name, is_in_files=is_in_files)


TOOLS = {"nvme": run_nvme, "mstconfig": run_mstconfig}
