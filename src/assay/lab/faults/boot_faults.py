"""How a virtual machine starts: from which boot server, and what goes wrong on the way."""

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from assay.lab.virtual_node_state import VirtualNodeState


def boot_server(state: VirtualNodeState, now: datetime, url: str) -> None:
    """A boot server, http://HOST:PORT, that DHCP names: the machine starts from it from now on."""
    state["boot_server"] = url.rstrip("/")


def boot_from_disk(state: VirtualNodeState, now: datetime) -> None:
    """A machine that starts from its disk, whatever its BMC was asked for."""
    state["fails"]["network_start"] = True


def boot_hangs(state: VirtualNodeState, now: datetime) -> None:
    """A machine that stops after it has loaded its kernel."""
    state["fails"]["start_hangs"] = True


def other_machine(state: VirtualNodeState, now: datetime, serial: str) -> None:
    """Another machine in the node's place: its serial number differs."""
    state["serial"] = serial


def other_place(state: VirtualNodeState, now: datetime, rack: str, u: int) -> None:
    """A machine in another place, as its BMC says."""
    state |= {"rack": rack, "u": u}


BOOT_FAULTS: Mapping[str, Callable[..., None]] = {
    "boot.from-disk": boot_from_disk,
    "boot.hangs": boot_hangs,
    "boot.server": boot_server,
    "machine.other": other_machine,
    "machine.other-place": other_place,
}
