"""BIOS attributes, in force and pending, secure boot and boot options; the handlers that change them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from starlette.responses import Response

from assay.lab.bmc.authentication import RedfishErrorResponse, malformed_body, not_in_list, not_writable
from assay.lab.bmc.computer_system import SYSTEM_PATH as SYSTEM
from assay.lab.bmc.computer_system import SYSTEM_SETTINGS, system_settings
from assay.lab.bmc.odata_responses import resource_answer
from assay.lab.bmc.resource_tree import (
    REDFISH_ROOT,
    Resource,
    ResourceView,
    find_numbered_item,
    make_collection,
    make_resource,
    resource_link,
)
from assay.lab.bmc.virtual_bmc import BmcRequest, StateEdit
from assay.lab.virtual_node_state import VirtualNodeState

BIOS = f"{SYSTEM}/Bios"
BIOS_SETTINGS = f"{BIOS}/Settings"
APPLY_TIME = "@Redfish.SettingsApplyTime"
BOOT_MODES = ["UEFI", "Legacy"]
SECURE_BOOT = f"{SYSTEM}/SecureBoot"
BOOT_OPTIONS = f"{SYSTEM}/BootOptions"


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
    """Secure boot: as in force, and as it will be after the next reset."""
    on = view.state["box"]["secure_boot"]
    pending = view.state["box"].get("boot_pending", {})
    return make_resource(
        "SecureBoot",
        "1_1_2",
        "SecureBoot",
        "Secure boot",
        SecureBootEnable=pending.get("secure_boot", on),
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
    plain = await call.read_parameters({"Attributes", APPLY_TIME}, {"Attributes"})
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


async def patch_boot(call: BmcRequest) -> Response:
    """PATCH the system's settings: store boot mode and order until the next host reset."""
    boot = (await call.read_parameters({"Boot", APPLY_TIME}, {"Boot"}))["Boot"]
    if not isinstance(boot, dict):
        raise malformed_body("Boot must be an object")
    pending: dict[str, Any] = {}
    for name, value in boot.items():
        if name == "BootOrder":
            pending["boot_order"] = _parse_boot_order(call, value)
        elif name == "BootSourceOverrideMode":
            if value not in BOOT_MODES:
                raise not_in_list(value, name)
            pending["boot_mode"] = value
        else:
            raise not_writable(f"Boot/{name}")
    view = replace(call.view, state=await call.bmc.change(_with_boot_pending(pending)))
    return resource_answer({"@odata.id": REDFISH_ROOT + SYSTEM_SETTINGS, **system_settings(view)})


async def patch_secure_boot(call: BmcRequest) -> Response:
    """PATCH secure boot: the next host reset puts it into force."""
    on = (await call.read_parameters({"SecureBootEnable"})).get("SecureBootEnable")
    if not isinstance(on, bool):
        raise RedfishErrorResponse(
            400, "PropertyValueTypeError", "SecureBootEnable must be a boolean", str(on), "SecureBootEnable"
        )
    view = replace(call.view, state=await call.bmc.change(_with_boot_pending({"secure_boot": on})))
    return resource_answer({"@odata.id": REDFISH_ROOT + SECURE_BOOT, **secure_boot(view)})


def _with_boot_pending(pending: dict[str, Any]) -> StateEdit:
    def edit(state: VirtualNodeState, _: datetime) -> VirtualNodeState:
        before = state["box"].get("boot_pending", {})
        return {**state, "box": {**state["box"], "boot_pending": {**before, **pending}}}

    return edit


def _parse_boot_order(call: BmcRequest, order: Any) -> list[int]:
    """Return the numbers of a BootOrder. Raises a 400 unless it names every boot option once."""
    known = {f"Boot{number:04}": number for number in range(len(call.view.state["box"]["boot_options"]))}
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(known):
        raise not_in_list(order, "BootOrder")
    return [known[name] for name in order]
