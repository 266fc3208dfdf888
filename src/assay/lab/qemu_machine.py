"""Runs a machine in qemu: SeaBIOS and iPXE ask the boot server, and start the kernel that it gives them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from assay.act.boot.boot_script import BOOT_PATH
from assay.lab.linux_image import COMMAND_LINE_MARK

HOST = "10.0.2.2"
"""This machine's own loopback, as a machine in qemu's user network sees it."""
LIMIT_S = 300.0


class MachineIdentity(NamedTuple):
    """What a machine's firmware shows: the MAC address that it boots from, its serial number, its asset tag."""

    mac: str
    serial: str
    asset_tag: str = ""


def run_machine(
    folder: Path, server: str, identity: MachineIdentity, limit_s: float = LIMIT_S, more: Sequence[str] = ()
) -> str:
    """Let a machine start from `server` until it switches itself off. Return what its console showed.

    `more`: further arguments of qemu. Raises TimeoutExpired if it is still on after `limit_s`.
    """
    console = folder / f"console-{identity.mac.replace(':', '')}.log"
    command = [
        "qemu-system-x86_64", "-M", "pc,graphics=off", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "256",
        "-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{console}",
        "-netdev", f"user,id=n0,bootfile={server}{BOOT_PATH}/ipxe",
        "-device", f"virtio-net-pci,netdev=n0,mac={identity.mac},bootindex=1",
        "-smbios", f"type=1,manufacturer=assay,product=lab,serial={identity.serial}",
        "-smbios", f"type=3,asset={identity.asset_tag}", *more,
    ]  # fmt: skip
    subprocess.run(command, check=False, timeout=limit_s, capture_output=True)
    return console.read_text(errors="replace") if console.exists() else ""


def find_command_line(console: str) -> str:
    """Return the kernel's command line that the first program showed, "" if it did not come so far."""
    return console.rpartition(COMMAND_LINE_MARK)[2].splitlines()[0] if COMMAND_LINE_MARK in console else ""
