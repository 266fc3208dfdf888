"""The computer system as resources: identity, power, processors, memory; its BIOS, boot options and settings."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response

from assay.lab.bmc import virtual_bmc
from assay.lab.bmc.authentication import RedfishErrorResponse, malformed_body, not_in_list, not_writable
from assay.lab.bmc.odata_responses import resource_answer
from assay.lab.bmc.power_transitions import RESET_TYPES, is_powered_on, power_state
from assay.lab.bmc.resource_tree import (
    REDFISH_ROOT,
    Resource,
    ResourceView,
    find_numbered_item,
    make_collection,
    make_resource,
    make_status,
    resource_link,
    without_lacking,
)
from assay.lab.bmc.virtual_bmc import BmcRequest, StateEdit
from assay.lab.virtual_node_state import VirtualNodeState
from assay.model.ledger_entry import derive_id

SYSTEM_PATH = "/Systems/System_0"
SYSTEM_RESET = f"{REDFISH_ROOT}{SYSTEM_PATH}/Actions/ComputerSystem.Reset"
PROCESSORS = f"{SYSTEM_PATH}/Processors"
MEMORY = f"{SYSTEM_PATH}/Memory"
SYSTEM_SETTINGS = f"{SYSTEM_PATH}/Settings"
BOOT_TARGETS = ["None", "Pxe", "Hdd", "Cd", "BiosSetup", "UefiHttp"]
POWER_RESTORE_POLICIES = ["AlwaysOn", "AlwaysOff", "LastState"]
BOOT_ENABLED = ["Disabled", "Once", "Continuous"]
BIOS = f"{SYSTEM_PATH}/Bios"
BIOS_SETTINGS = f"{BIOS}/Settings"
APPLY_TIME = "@Redfish.SettingsApplyTime"
BOOT_MODES = ["UEFI", "Legacy"]
SECURE_BOOT = f"{SYSTEM_PATH}/SecureBoot"
BOOT_OPTIONS = f"{SYSTEM_PATH}/BootOptions"


def system(view: ResourceView) -> Resource:
    """The node, as its BMC sees it."""
    state = view.state
    memory_gib = sum(dimm["gib"] for dimm in state["box"]["dimms"] if dimm["present"])
    memory_status = virtual_bmc.rollup_status(virtual_bmc.memory_health(state))
    return make_resource(
        "ComputerSystem.v1_20_0",
        "System_0",
        view.node,
        SystemType="Physical",
        HostName=state["name"],
        Manufacturer="NVIDIA",
        Model=state["product"],
        SerialNumber=state["serial"],
        AssetTag=state.get("asset_tag", ""),
        BiosVersion=state["firmware"].get("BIOS", ""),
        PowerState=power_state(state, view.now),
        **without_lacking(view, PowerRestorePolicy=state["box"]["power_restore"]),
        BootProgress=boot_progress(state, view.now),
        LastResetTime=state["boot"].get("reset_at") or state["boot"]["ready_at"],
        Status=virtual_bmc.rollup_status(virtual_bmc.node_health(state)),
        ProcessorSummary=_processor_summary(state),
        MemorySummary={"TotalSystemMemoryGiB": memory_gib, "Status": memory_status},
        Boot=_boot(state),
        Bios=resource_link(f"{SYSTEM_PATH}/Bios"),
        SecureBoot=resource_link(f"{SYSTEM_PATH}/SecureBoot"),
        Processors=resource_link(f"{SYSTEM_PATH}/Processors"),
        Memory=resource_link(f"{SYSTEM_PATH}/Memory"),
        LogServices=resource_link(f"{SYSTEM_PATH}/LogServices"),
        Links={"Chassis": [resource_link("/Chassis/Chassis_0")], "ManagedBy": [resource_link("/Managers/BMC_0")]},
        Actions={
            "#ComputerSystem.Reset": {
                "target": SYSTEM_RESET,
                "@Redfish.ActionInfo": f"{REDFISH_ROOT}{SYSTEM_PATH}/ResetActionInfo",
                "ResetType@Redfish.AllowableValues": list(RESET_TYPES),
            }
        },
        **{
            "@Redfish.Settings": {
                "@odata.type": "#Settings.v1_3_5.Settings",
                "SettingsObject": resource_link(SYSTEM_SETTINGS),
            }
        },
    )


def system_settings(view: ResourceView) -> Resource:
    """The boot mode and order as they will be after the next reset."""
    box = {**view.state["box"], **view.state["box"].get("boot_pending", {})}
    boot = {"BootSourceOverrideMode": box["boot_mode"], "BootOrder": _boot_order(box)}
    return make_resource("ComputerSystem.v1_20_0", "Settings", "System, after the next reset", Boot=boot)


def reset_info(_: ResourceView) -> Resource:
    """The reset types that the system supports."""
    parameter = {"Name": "ResetType", "Required": True, "DataType": "String", "AllowableValues": list(RESET_TYPES)}
    return make_resource("ActionInfo.v1_4_0", "ResetActionInfo", "Reset", Parameters=[parameter])


def boot_progress(state: dict[str, Any], now: datetime) -> dict[str, str]:
    """Return BootProgress: the progress of the last boot."""
    if not is_powered_on(state):
        return {"LastState": "None"}
    ready = datetime.fromisoformat(state["boot"]["ready_at"])
    begin = ready - timedelta(seconds=state["timing"]["boot_s"])
    if now >= ready:
        return {"LastState": "OSRunning", "LastStateTime": ready.isoformat()}
    if now < begin:
        return {"LastState": "PrimaryProcessorInitializationStarted"}
    half = now - begin > (ready - begin) / 2
    return {"LastState": "OSBootStarted" if half else "MemoryInitializationStarted"}


def _boot(state: dict[str, Any]) -> dict[str, Any]:
    override = state.get("boot_override") or {}
    return {
        "BootSourceOverrideEnabled": override.get("enabled", "Disabled"),
        "BootSourceOverrideEnabled@Redfish.AllowableValues": BOOT_ENABLED,
        "BootSourceOverrideTarget": override.get("target", "None"),
        "BootSourceOverrideTarget@Redfish.AllowableValues": BOOT_TARGETS,
        "BootSourceOverrideMode": state["box"]["boot_mode"],
        "BootOptions": resource_link(f"{SYSTEM_PATH}/BootOptions"),
        "BootOrder": _boot_order(state["box"]),
    }


def _boot_order(box: dict[str, Any]) -> list[str]:
    return [f"Boot{number:04}" for number in box["boot_order"]]


def _processor_summary(state: dict[str, Any]) -> dict[str, Any]:
    cpus = state["box"]["cpus"]
    threads = sum(cpu["threads"] for cpu in cpus)
    summary = {"Count": len(cpus), "LogicalProcessorCount": threads, "Model": cpus[0]["model"] if cpus else None}
    return {**summary, "Status": virtual_bmc.rollup_status(virtual_bmc.processor_health(state))}


def processors(view: ResourceView) -> Resource:
    """All CPUs and GPUs."""
    cpus = [f"CPU_{n}" for n in range(len(view.state["box"]["cpus"]))]
    gpus = [f"GPU_SXM_{gpu['index'] + 1}" for gpu in view.state.get("gpus", [])]
    return make_collection("Processor", "Processors", [f"{PROCESSORS}/{name}" for name in (*cpus, *gpus)])


def processor(view: ResourceView, ident: str) -> Resource:
    """One CPU, or one GPU by its SXM number, which starts at 1."""
    kind, _, number = ident.rpartition("_")
    if kind == "GPU_SXM":
        return _gpu(view, ident, find_numbered_item(view.state["gpus"], str(int(number) - 1)))
    return _cpu(view, ident, find_numbered_item(view.state["box"]["cpus"], ident, "CPU_"))


def memory_module(view: ResourceView, ident: str) -> Resource:
    """One memory slot."""
    dimm = find_numbered_item(view.state["box"]["dimms"], ident, "DIMM_")
    present = dimm["present"]
    size = {"CapacityMiB": dimm["gib"] * 1024, "MemoryDeviceType": "DDR5"} if present else {"CapacityMiB": None}
    status = make_status(dimm["health"]) if present else make_status(None, "Absent")
    return make_resource("Memory.v1_20_0", ident, ident, MemoryType="DRAM", Status=status, **size)


def _cpu(view: ResourceView, ident: str, cpu: dict[str, Any]) -> Resource:
    number = derive_id("ppin", view.state["serial"], ident).upper()
    return make_resource(
        "Processor.v1_20_0",
        ident,
        ident,
        ProcessorType="CPU",
        Model=cpu["model"],
        ProcessorId={"ProtectedIdentificationNumber": number},
        TotalCores=cpu["cores"],
        TotalThreads=cpu["threads"],
        Status=make_status(cpu["health"]),
    )


def _gpu(view: ResourceView, ident: str, gpu: dict[str, Any]) -> Resource:
    """A GPU. One that fell off the bus is still in its socket: the BMC shows it with health Critical."""
    status = make_status(None, "Absent") if not gpu["present"] else make_status("Critical" if gpu["lost"] else "OK")
    if not is_powered_on(view.state) and gpu["present"]:
        status = make_status(None, "StandbyOffline")
    model = gpu.get("name") or gpu.get("model")
    properties = {"Model": model, "SerialNumber": gpu.get("serial"), "Status": status}
    return make_resource("Processor.v1_20_0", ident, ident, ProcessorType="GPU", **properties)


def bios(view: ResourceView) -> Resource:
    """The attributes in force, with a link to the pending ones."""
    return make_resource(
        "Bios.v1_2_0",
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
    return make_resource("Bios.v1_2_0", "Settings", "BIOS, after the next reset", Attributes=attributes)


def secure_boot(view: ResourceView) -> Resource:
    """Secure boot: as in force, and as it will be after the next reset."""
    on = view.state["box"]["secure_boot"]
    pending = view.state["box"].get("boot_pending", {})
    return make_resource(
        "SecureBoot.v1_1_2",
        "SecureBoot",
        "Secure boot",
        SecureBootEnable=pending.get("secure_boot", on),
        SecureBootCurrentBoot="Enabled" if on else "Disabled",
        SecureBootMode="UserMode",
    )


def boot_option(view: ResourceView, number: str) -> Resource:
    """One boot option."""
    entry = find_numbered_item(view.state["box"]["boot_options"], number)
    return make_resource(
        "BootOption.v1_0_6",
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
