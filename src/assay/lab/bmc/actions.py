"""What can be done to the system, the BMC and the log."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from starlette.responses import Response

from assay.lab.bmc import journal, power
from assay.lab.bmc.answers import nothing, resource_answer
from assay.lab.bmc.errors import conflict, malformed, not_in_list, not_writable
from assay.lab.bmc.machine import Call
from assay.lab.bmc.root import TREE
from assay.lab.bmc.systems import BOOT_ENABLED, BOOT_TARGETS
from assay.lab.world import State

BOOT = {
    "BootSourceOverrideEnabled": ("enabled", BOOT_ENABLED),
    "BootSourceOverrideTarget": ("target", BOOT_TARGETS),
    "BootSourceOverrideMode": ("mode", ["UEFI"]),
}


async def reset_system(call: Call) -> Response:
    """ComputerSystem.Reset."""
    asked = (await call.parameters({"ResetType"}, {"ResetType"}))["ResetType"]
    if asked not in power.RESET_TYPES:
        raise not_in_list(asked, "ResetType")

    def edit(state: State, now: datetime) -> State:
        try:
            return power.reset(state, cast(power.ResetType, asked), now)
        except power.NotPossible as error:
            raise conflict(str(error)) from None

    await call.machine.change(edit)
    if asked == "FullPowerCycle":
        call.machine.door.sessions.clear()
    return nothing()


async def reset_manager(call: Call) -> Response:
    """Manager.Reset: sessions are lost, as they are with the BMC's memory."""
    asked = (await call.parameters({"ResetType"})).get("ResetType", "GracefulRestart")
    if asked not in power.BMC_RESET_TYPES:
        raise not_in_list(asked, "ResetType")
    await call.machine.change(power.reset_bmc)
    call.machine.door.sessions.clear()
    return nothing()


async def clear_log(call: Call) -> Response:
    """LogService.ClearLog."""
    await call.machine.change(journal.cleared)
    return nothing()


async def patch_system(call: Call) -> Response:
    """The boot override is all of a system that can be set."""
    plain = await call.parameters({"Boot", *call.view.state, *TREE.read(call.view, call.request.url.path.rstrip("/"))})
    if frozen := next((name for name in plain if name != "Boot"), None):
        raise not_writable(frozen)
    override = _boot_override(plain.get("Boot"))
    state = await call.machine.change(
        lambda state, _: {**state, "boot_override": {**(state.get("boot_override") or {}), **override}}
    )
    return resource_answer(TREE.read(replace(call.view, state=state), call.request.url.path.rstrip("/")))


def _boot_override(boot: Any) -> dict[str, str]:
    if not isinstance(boot, dict) or not boot:
        raise malformed("Boot must be an object with what is to be set")
    override = {}
    for name, asked in boot.items():
        if name not in BOOT:
            raise not_writable(f"Boot/{name}")
        key, allowed = BOOT[name]
        if asked not in allowed:
            raise not_in_list(asked, name)
        override[key] = asked
    return override
