#!/usr/bin/python
"""assay.fleet.drive_wipe: marks blocks of NVMe drives, or lets the drives erase themselves with nvme-cli."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: drive_wipe
short_description: Mark NVMe drives, or let them erase themselves
description:
  - Finds each drive by its serial number. A drive that anything uses is left alone, and told.
  - C(mark) writes a marker into blocks of the drive. C(erase) starts C(nvme sanitize), or runs C(nvme format).
  - It proves nothing. The blocks and the sanitize log are read by assay's probe afterwards.
options:
  step:
    description: What to do.
    type: str
    choices: [mark, erase]
    required: true
  drives:
    description: Each with C(serial), C(method), C(marker), and C(offsets) of its blocks by block device.
    type: list
    elements: dict
    required: true
  release:
    description: Commands that end the use of these drives, such as C([umount, /data]).
    type: list
    elements: list
    default: []
author: [assay]
"""
EXAMPLES = r"""
- name: Erase a drive
  assay.fleet.drive_wipe:
    step: erase
    drives: [{serial: S64HNE0R500001, method: sanitize-crypto, offsets: {nvme0n1: [0]}}]
"""
RETURN = r"""
drives:
  description: The serial numbers of the drives that were marked, or told to erase themselves.
  type: list
  returned: success
"""
ROOT = os.environ.get("ASSAY_ROOT", "")
BLOCK = 4096
FORMAT_MS = 3600 * 1000
COMMANDS = {
    "sanitize-crypto": ["sanitize", "--sanact=4"],
    "sanitize-block": ["sanitize", "--sanact=2"],
    "format-crypto": ["format", "--ses=2", "--force", f"--timeout={FORMAT_MS}"],
    "format-erase": ["format", "--ses=1", "--force", f"--timeout={FORMAT_MS}"],
}


class Refusal(Exception):
    """Why nothing was done to a drive."""


def find_controller(serial: str) -> str:
    """Return the kernel's name of the only drive with a serial number."""
    folder = Path(f"{ROOT}/sys/class/nvme")
    found = [one.name for one in sorted(folder.iterdir()) if (one / "serial").read_text().strip() == serial]
    if len(found) != 1:
        raise Refusal(f"{len(found)} drives have the serial number {serial}")
    return found[0]


def list_devices(drive: dict) -> list:
    """Return the block devices of a drive. Names may have changed since it was read: then nothing is done."""
    folder = Path(f"{ROOT}/sys/class/nvme/{find_controller(drive['serial'])}")
    names = sorted(re.sub(r"c[0-9]+", "", one.name) for one in folder.glob("nvme*n*"))
    if names != sorted(drive["offsets"]):
        raise Refusal(f"its block devices are {', '.join(names) or 'none'} now")
    return names


def open_unused(devices: list) -> list:
    """Return open files of block devices. The kernel opens none for us alone (O_EXCL) that anything uses."""
    files = []
    try:
        for device in devices:
            files.append(os.open(f"{ROOT}/dev/{device}", os.O_RDWR | os.O_EXCL))
    except OSError as error:
        close_all(files)
        in_use = "it is in use" if error.errno == errno.EBUSY else error.strerror
        raise Refusal(f"/dev/{device}: {in_use}") from None
    return files


def close_all(files: list) -> None:
    """Close open files."""
    for file in files:
        os.close(file)


def mark(drive: dict) -> None:
    """Write the marker into the blocks of a drive, down to the drive itself."""
    marker = drive["marker"].encode() * (BLOCK // len(drive["marker"]))
    devices = list_devices(drive)
    files = open_unused(devices)
    try:
        for device, file in zip(devices, files, strict=True):
            for offset in drive["offsets"][device]:
                os.pwrite(file, marker, offset)
            os.fsync(file)
    finally:
        close_all(files)


def start_erasing(drive: dict, program: str) -> list:
    """Start the commands that erase a drive: one for the whole drive, or one for each block device."""
    devices = list_devices(drive)
    close_all(open_unused(devices))
    question, *options = COMMANDS[drive["method"]]
    targets = [find_controller(drive["serial"])] if question == "sanitize" else devices
    commands = [[program, question, f"/dev/{target}", *options] for target in targets]
    return [subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for one in commands]


def erase_all(drives: list, program: str) -> tuple:
    """Erase drives, all at the same time. Return the serial numbers, and what went wrong."""
    started, trouble = [], []
    for drive in drives:
        try:
            started += [(drive["serial"], one) for one in start_erasing(drive, program)]
        except (Refusal, OSError) as error:
            trouble.append(f"{drive['serial']}: {error}")
    for serial, process in started:
        output = process.communicate()[0]
        if process.returncode:
            trouble.append(f"{serial}: nvme: {' '.join(output.split())[-200:]}")
    return sorted({serial for serial, _ in started}), trouble


def mark_all(drives: list) -> tuple:
    """Mark drives. Return the serial numbers, and what went wrong."""
    done, trouble = [], []
    for drive in drives:
        try:
            mark(drive)
            done.append(drive["serial"])
        except (Refusal, OSError) as error:
            trouble.append(f"{drive['serial']}: {error}")
    return done, trouble


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        {
            "step": {"type": "str", "choices": ["mark", "erase"], "required": True},
            "drives": {"type": "list", "elements": "dict", "required": True},
            "release": {"type": "list", "elements": "list", "default": []},
        }
    )
    step, drives, program = module.params["step"], module.params["drives"], module.get_bin_path("nvme", True)
    for command in module.params["release"]:
        module.run_command(command)  # what is still in use is refused below
    done, trouble = mark_all(drives) if step == "mark" else erase_all(drives, program)
    if trouble:
        module.fail_json(msg="; ".join(trouble), drives=done)
    module.exit_json(changed=bool(done), drives=done)


if __name__ == "__main__":
    main()
