"""Faults of what assay orders through the BMC, and what only the BMC sees: its accounts, the next firmware update."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from assay.lab.bmc.firmware_flash import plan_flash_fault
from assay.lab.virtual_node_state import VirtualNodeState
from assay.model.errors import AssayError

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time


def boot_server(state: VirtualNodeState, now: datetime, url: str) -> None:
    """A boot server, http://HOST:PORT, that DHCP names: the machine starts from it from now on."""
    state["boot_server"] = url.rstrip("/")


def bmc_ntp(state: VirtualNodeState, now: datetime, enabled: bool = True, servers: str = "") -> None:
    """Changed NTP settings of the BMC; `servers` are separated by commas."""
    state["box"]["ntp"] = {"enabled": enabled, "servers": [name for name in servers.split(",") if name]}


def bmc_syslog(state: VirtualNodeState, now: datetime, server: str = "") -> None:
    """A BMC that sends its log to no server, or by UDP to another `server` (HOST:PORT)."""
    subscriptions = state["subscriptions"]
    others = {ident: entry for ident, entry in subscriptions.items() if "Syslog" not in entry.get("protocol", "")}
    added = {"destination": f"syslog://{server}", "context": "", "protocol": "SyslogUDP"}
    state["subscriptions"] = others | ({"planted": added} if server else {})


def bmc_account(
    state: VirtualNodeState, now: datetime, user: str, role: str = "Administrator", locked: bool = False
) -> None:
    """An account that somebody added to the BMC or changed there."""
    accounts = state["accounts"]
    known = [ident for ident, account in accounts.items() if account["user"] == user]
    ident = known[0] if known else str(max(map(int, accounts), default=1) + 1)
    entry = {"user": user, "digest": "", "enabled": True}
    accounts[ident] = entry | accounts.get(ident, {}) | {"role": role, "locked": locked}


def bmc_first_password(state: VirtualNodeState, now: datetime, user: str) -> None:
    """An account of the BMC that still has the password it was shipped with."""
    known = next((account for account in state["accounts"].values() if account["user"] == user), None)
    if known is None:
        raise AssayError(f"the BMC has no account {user!r}", fix="plant bmc.account first")
    known["must_change"] = True


def firmware_unverified(state: VirtualNodeState, now: datetime, component: str) -> None:
    """A component whose firmware is signed by nobody that the BMC trusts."""
    if component not in state["firmware"]:
        raise AssayError(f"no component {component!r}", fix=f"use one of {', '.join(state['firmware'])}")
    state["box"].setdefault("unverified", []).append(component)


def flash_second_reset(state: VirtualNodeState, now: datetime, component: str) -> None:
    """A component whose next version runs only after a second reset."""
    plan_flash_fault(state, component, "second-reset")


def flash_rolls_back(state: VirtualNodeState, now: datetime, component: str, after_s: float = 60) -> None:
    """A component that runs its next version for `after_s`, and then the old one again."""
    plan_flash_fault(state, component, "rolls-back", after_s=after_s)


def flash_task_lost(
    state: VirtualNodeState, now: datetime, component: str, at_percent: int = 50, written: bool = True
) -> None:
    """A BMC that forgets the task of a component's next update; `written`: it writes the image all the same."""
    plan_flash_fault(state, component, "task-lost", at_percent=_percent(at_percent), written=written)


def flash_bmc_restarts(
    state: VirtualNodeState,
    now: datetime,
    component: str,
    at_percent: int = 50,
    forgets: bool = False,
    breaks: bool = True,
) -> None:
    """A BMC that restarts in the middle of a component's next update: it may forget the task, and break the update."""
    arguments = {"at_percent": _percent(at_percent), "forgets": forgets, "breaks": breaks}
    plan_flash_fault(state, component, "bmc-restarts", **arguments)


def _percent(number: int) -> int:
    if not 0 <= number < 100:
        raise AssayError(f"at_percent {number} is not within the update", fix="use 0 to 99")
    return number


def wipe_unknown(state: VirtualNodeState, now: datetime, drive: int, knows: str = "format-erase") -> None:
    """A drive that knows only these ways to erase (comma separated), or none."""
    state["nvme"][drive]["can_wipe"] = knows.split(",") if knows else []


BMC_FAULTS: Mapping[str, Callable[..., None]] = {
    "bmc.account": bmc_account,
    "bmc.first-password": bmc_first_password,
    "bmc.ntp": bmc_ntp,
    "bmc.syslog": bmc_syslog,
    "boot.server": boot_server,
    "firmware.unverified": firmware_unverified,
    "flash.bmc-restarts": flash_bmc_restarts,
    "flash.rolls-back": flash_rolls_back,
    "flash.second-reset": flash_second_reset,
    "flash.task-lost": flash_task_lost,
    "nvme.wipe-unknown": wipe_unknown,
}
