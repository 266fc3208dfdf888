"""`nvme sanitize-log`, `sanitize` and `format` on a virtual node. Its shell script prints logs that only files hold."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import NoReturn

from assay.lab.tools.state_reader import State, load_node_state, print_lines

SANITIZE_ACTIONS = {"2": "sanitize-block", "4": "sanitize-crypto"}
FORMAT_METHODS = {"1": "format-erase", "2": "format-crypto"}
NEVER, COMPLETED, IN_PROGRESS, FAILED = range(4)
WORDS = ("Never been sanitized", "Completed successfully", "In progress", "Failed")
SANITIZE_S = 20
"""How long a sanitize takes, in seconds of the lab."""


def main() -> None:
    """Run the tool."""
    question, *words = sys.argv[1:]
    device = next(word for word in words if word.startswith("/dev/")).removeprefix("/dev/")
    options = dict(word.removeprefix("--").partition("=")[::2] for word in words)
    drive = _find_drive(load_node_state(), device)
    if question == "sanitize-log":
        _print_log(drive)
    elif question == "sanitize":
        _erase(drive, SANITIZE_ACTIONS[options["sanact"]])
    elif question == "format":
        _erase(drive, FORMAT_METHODS[options["ses"]])
    else:
        sys.exit(f"nvme: the lab's tool does not support {question}")


def find_status(drive: State, now: datetime) -> int:
    """Return the number of the status that the drive's sanitize log has now."""
    last = drive.get("sanitizes", [])[-1:]
    if not last:
        return NEVER
    if now < datetime.fromisoformat(last[0]["ends_at"]):
        return IN_PROGRESS
    return FAILED if last[0]["fails"] else COMPLETED


def _print_log(drive: State) -> None:
    if not any(method in drive["can_wipe"] for method in SANITIZE_ACTIONS.values()):
        _refuse("Invalid Log Page: The log page indicated is invalid(0x109)")
    status, last = find_status(drive, _now()), (drive.get("sanitizes") or [{"method": ""}])[-1]
    number = next((int(one) for one, method in SANITIZE_ACTIONS.items() if method == last["method"]), 0)
    sstat = {"global_erased": 0, "no_cmplted_passes": 0, "status": f"({status}) {WORDS[status]}"}
    log = {"sprog": 32768 if status == IN_PROGRESS else 65535, "sstat": sstat, "cdw10_info": number}
    print_lines([json.dumps({drive["name"]: log})])


def _erase(drive: State, method: str) -> None:
    """Start a sanitize, or format at once. A drive of which the last sanitize failed takes no format."""
    from assay.lab.world import LabWorld

    now = _now()
    if method not in drive["can_wipe"]:
        _refuse("Invalid Field in Command: A reserved coded value or an unsupported value(0x4002)")
    status, is_format = find_status(drive, now), method in FORMAT_METHODS.values()
    if status == IN_PROGRESS or (is_format and status == FAILED):
        _refuse(f"Sanitize {WORDS[status]}: the command is not allowed")
    folder = Path(os.environ["ASSAY_LAB_STATE"]).parent
    with LabWorld(folder.parents[1]).change(folder.name) as state:
        kept = _find_drive(state, drive["name"])
        if is_format:
            kept.setdefault("formats", []).append({"method": method, "at": now.isoformat()})
        else:
            ends_at = now + timedelta(seconds=state["timing"].get("sanitize_s", SANITIZE_S))
            run = {"method": method, "at": now.isoformat(), "ends_at": ends_at.isoformat()}
            kept.setdefault("sanitizes", []).append(run | {"fails": kept.get("wipe_fails", False)})
    if not (drive.get("wipe_lies") or (drive.get("wipe_fails") and not is_format)):
        _empty(folder / f"root/dev/{drive['name']}n1")


def _empty(device: Path) -> None:
    size = device.stat().st_size
    os.truncate(device, 0)
    os.truncate(device, size)


def _find_drive(state: State, device: str) -> State:
    known: dict[str, State] = {drive["name"]: drive for drive in state["nvme"] if drive["present"]}
    name = device.removesuffix("n1")
    if name not in known:
        _refuse("No such device")
    return known[name]


def _now() -> datetime:
    return datetime.fromisoformat(os.environ["ASSAY_AT"])


def _refuse(why: str) -> NoReturn:
    sys.stderr.write(f"NVMe status: {why}\n")
    sys.exit(1)


if __name__ == "__main__":
    main()
