"""BIOS settings and how the node boots: what runs, what waits for the next reset, what may be set."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from starlette.responses import Response

from assay.lab.bmc.redfish_errors import RedfishErrorResponse, malformed_body
from assay.lab.bmc.resource_tree import (
    REDFISH_ROOT,
    Resource,
    ResourceView,
    find_numbered_item,
    make_collection,
    make_resource,
    resource_link,
)
from assay.lab.bmc.resources.computer_system import SYSTEM_PATH as SYSTEM
from assay.lab.bmc.responses import resource_answer
from assay.lab.bmc.virtual_bmc import BmcRequest
from assay.lab.world import VirtualNodeState

BIOS, BIOS_SETTINGS = f"{SYSTEM}/Bios", f"{SYSTEM}/Bios/Settings"
SECURE_BOOT, BOOT_OPTIONS = f"{SYSTEM}/SecureBoot", f"{SYSTEM}/BootOptions"


def bios(view: ResourceView) -> Resource:
    """The attributes that run, and where others are asked for."""
    return make_resource(
        "Bios",
        "1_2_0",
        "Bios",
        "BIOS",
        Attributes=dict(view.state["box"]["bios"]),
        **{
            "@Redfish.Settings": {
                "@odata.type": "#Settings.v1_3_5.Settings",
                "SettingsObject": resource_link(BIOS_SETTINGS),
                "SupportedApplyTimes": ["OnReset"],
            }
        },
    )


def bios_settings(view: ResourceView) -> Resource:
    """The attributes as they will be after the next reset of the host."""
    known = view.state["box"]
    wanted = {**known["bios"], **known["bios_pending"]}
    return make_resource("Bios", "1_2_0", "Settings", "BIOS, after the next reset", Attributes=wanted)


def secure_boot(view: ResourceView) -> Resource:
    """Secure boot."""
    on = view.state["box"]["secure_boot"]
    return make_resource(
        "SecureBoot",
        "1_1_2",
        "SecureBoot",
        "Secure boot",
        SecureBootEnable=on,
        SecureBootCurrentBoot="Enabled" if on else "Disabled",
        SecureBootMode="UserMode",
    )


def boot_options(view: ResourceView) -> Resource:
    """What the node can boot from."""
    count = len(view.state["box"]["boot_options"])
    return make_collection("BootOption", "Boot options", [f"{BOOT_OPTIONS}/{n}" for n in range(count)])


def boot_option(view: ResourceView, number: str) -> Resource:
    """One thing to boot from."""
    entry = find_numbered_item(view.state["box"]["boot_options"], number)
    return make_resource(
        "BootOption",
        "1_0_6",
        number,
        entry["name"],
        BootOptionReference=f"Boot{int(number):04}",
        DisplayName=entry["name"],
        Alias=entry["alias"],
        BootOptionEnabled=True,
    )


async def patch_settings(call: BmcRequest) -> Response:
    """Keep attributes until the next reset of the host; what runs already waits for nothing."""
    plain = await call.read_parameters({"Attributes"}, {"Attributes"})
    asked = plain["Attributes"]
    if not isinstance(asked, dict):
        raise malformed_body("Attributes must be an object")
    known = call.view.state["box"]["bios"]
    for name, value in asked.items():
        if name not in known:
            raise RedfishErrorResponse(400, "PropertyUnknown", f"There is no attribute {name} here", name)
        if not isinstance(value, str):
            raise RedfishErrorResponse(400, "PropertyValueTypeError", f"{name} must be a string", str(value), name)

    def edit(state: VirtualNodeState, _: datetime) -> VirtualNodeState:
        pending: dict[str, Any] = {**state["box"]["bios_pending"], **asked}
        waiting = {name: value for name, value in pending.items() if state["box"]["bios"][name] != value}
        return {**state, "box": {**state["box"], "bios_pending": waiting}}

    view = replace(call.view, state=await call.bmc.change(edit))
    return resource_answer({"@odata.id": REDFISH_ROOT + BIOS_SETTINGS, **bios_settings(view)})
