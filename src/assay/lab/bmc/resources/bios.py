"""BIOS attributes, in force and pending, secure boot and boot options; the handler that changes attributes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from starlette.responses import Response

from assay.lab.bmc.odata_responses import resource_answer
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
from assay.lab.bmc.virtual_bmc import BmcRequest
from assay.lab.virtual_node_state import VirtualNodeState

BIOS, BIOS_SETTINGS = f"{SYSTEM}/Bios", f"{SYSTEM}/Bios/Settings"
SECURE_BOOT, BOOT_OPTIONS = f"{SYSTEM}/SecureBoot", f"{SYSTEM}/BootOptions"


def bios(view: ResourceView) -> Resource:
    """The attributes in force, with a link to the pending ones."""
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
    box = view.state["box"]
    attributes = {**box["bios"], **box["bios_pending"]}
    return make_resource("Bios", "1_2_0", "Settings", "BIOS, after the next reset", Attributes=attributes)


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
    """All boot options."""
    count = len(view.state["box"]["boot_options"])
    return make_collection("BootOption", "Boot options", [f"{BOOT_OPTIONS}/{n}" for n in range(count)])


def boot_option(view: ResourceView, number: str) -> Resource:
    """One boot option."""
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
    """PATCH the settings: store attributes until the next host reset. Values already in force are not pending."""
    plain = await call.read_parameters({"Attributes"}, {"Attributes"})
    requested = plain["Attributes"]
    if not isinstance(requested, dict):
        raise malformed_body("Attributes must be an object")
    known = call.view.state["box"]["bios"]
    for name, value in requested.items():
        if name not in known:
            raise RedfishErrorResponse(400, "PropertyUnknown", f"There is no attribute {name} here", name)
        if not isinstance(value, str):
            raise RedfishErrorResponse(400, "PropertyValueTypeError", f"{name} must be a string", str(value), name)

    def edit(state: VirtualNodeState, _: datetime) -> VirtualNodeState:
        merged: dict[str, Any] = {**state["box"]["bios_pending"], **requested}
        pending = {name: value for name, value in merged.items() if state["box"]["bios"][name] != value}
        return {**state, "box": {**state["box"], "bios_pending": pending}}

    view = replace(call.view, state=await call.bmc.change(edit))
    return resource_answer({"@odata.id": REDFISH_ROOT + BIOS_SETTINGS, **bios_settings(view)})
