"""BIOS settings and how the node boots: what runs, what waits for the next reset, what may be set."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from starlette.responses import Response

from assay.lab.bmc.answers import resource_answer
from assay.lab.bmc.errors import RedfishError, malformed
from assay.lab.bmc.machine import Call
from assay.lab.bmc.systems import PATH as SYSTEM
from assay.lab.bmc.tree import ROOT, Resource, View, collection, link, resource, slot
from assay.lab.world import State

BIOS, SETTINGS = f"{SYSTEM}/Bios", f"{SYSTEM}/Bios/Settings"
SECURE, OPTIONS = f"{SYSTEM}/SecureBoot", f"{SYSTEM}/BootOptions"


def bios(view: View) -> Resource:
    """The attributes that run, and where others are asked for."""
    return resource(
        "Bios",
        "1_2_0",
        "Bios",
        "BIOS",
        Attributes=dict(view.state["box"]["bios"]),
        **{
            "@Redfish.Settings": {
                "@odata.type": "#Settings.v1_3_5.Settings",
                "SettingsObject": link(SETTINGS),
                "SupportedApplyTimes": ["OnReset"],
            }
        },
    )


def settings(view: View) -> Resource:
    """The attributes as they will be after the next reset of the host."""
    known = view.state["box"]
    wanted = {**known["bios"], **known["bios_pending"]}
    return resource("Bios", "1_2_0", "Settings", "BIOS, after the next reset", Attributes=wanted)


def secure_boot(view: View) -> Resource:
    """Secure boot."""
    on = view.state["box"]["secure_boot"]
    return resource(
        "SecureBoot",
        "1_1_2",
        "SecureBoot",
        "Secure boot",
        SecureBootEnable=on,
        SecureBootCurrentBoot="Enabled" if on else "Disabled",
        SecureBootMode="UserMode",
    )


def options(view: View) -> Resource:
    """What the node can boot from."""
    count = len(view.state["box"]["boot_options"])
    return collection("BootOption", "Boot options", [f"{OPTIONS}/{n}" for n in range(count)])


def option(view: View, number: str) -> Resource:
    """One thing to boot from."""
    entry = slot(view.state["box"]["boot_options"], number)
    return resource(
        "BootOption",
        "1_0_6",
        number,
        entry["name"],
        BootOptionReference=f"Boot{int(number):04}",
        DisplayName=entry["name"],
        Alias=entry["alias"],
        BootOptionEnabled=True,
    )


async def patch_settings(call: Call) -> Response:
    """Keep attributes until the next reset of the host; what runs already waits for nothing."""
    plain = await call.parameters({"Attributes"}, {"Attributes"})
    asked = plain["Attributes"]
    if not isinstance(asked, dict):
        raise malformed("Attributes must be an object")
    known = call.view.state["box"]["bios"]
    for name, value in asked.items():
        if name not in known:
            raise RedfishError(400, "PropertyUnknown", f"There is no attribute {name} here", name)
        if not isinstance(value, str):
            raise RedfishError(400, "PropertyValueTypeError", f"{name} must be a string", str(value), name)

    def edit(state: State, _: datetime) -> State:
        pending: dict[str, Any] = {**state["box"]["bios_pending"], **asked}
        waiting = {name: value for name, value in pending.items() if state["box"]["bios"][name] != value}
        return {**state, "box": {**state["box"], "bios_pending": waiting}}

    view = replace(call.view, state=await call.machine.change(edit))
    return resource_answer({"@odata.id": ROOT + SETTINGS, **settings(view)})
