"""The computer system as resources: identity, power, boot, processors, memory modules."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from assay.lab.bmc import virtual_bmc
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

SYSTEM_PATH = "/Systems/System_0"
SYSTEM_RESET = f"{REDFISH_ROOT}{SYSTEM_PATH}/Actions/ComputerSystem.Reset"
PROCESSORS = f"{SYSTEM_PATH}/Processors"
MEMORY = f"{SYSTEM_PATH}/Memory"
SYSTEM_SETTINGS = f"{SYSTEM_PATH}/Settings"
BOOT_TARGETS = ["None", "Pxe", "Hdd", "Cd", "BiosSetup", "UefiHttp"]
POWER_RESTORE_POLICIES = ["AlwaysOn", "AlwaysOff", "LastState"]
BOOT_ENABLED = ["Disabled", "Once", "Continuous"]


def systems(_: ResourceView) -> Resource:
    """The one system of this BMC."""
    return make_collection("ComputerSystem", "Systems", [SYSTEM_PATH])


def system(view: ResourceView) -> Resource:
    """The node, as its BMC sees it."""
    state = view.state
    memory_gib = sum(dimm["gib"] for dimm in state["box"]["dimms"] if dimm["present"])
    memory_status = virtual_bmc.rollup_status(virtual_bmc.memory_health(state))
    return make_resource(
        "ComputerSystem",
        "1_20_0",
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
    return make_resource("ComputerSystem", "1_20_0", "Settings", "System, after the next reset", Boot=boot)


def reset_info(_: ResourceView) -> Resource:
    """The reset types that the system supports."""
    parameter = {"Name": "ResetType", "Required": True, "DataType": "String", "AllowableValues": list(RESET_TYPES)}
    return make_resource("ActionInfo", "1_4_0", "ResetActionInfo", "Reset", Parameters=[parameter])


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
    if kind != "CPU":
        raise LookupError(ident)
    return _cpu(ident, find_numbered_item(view.state["box"]["cpus"], number))


def memory_modules(view: ResourceView) -> Resource:
    """All memory slots."""
    count = len(view.state["box"]["dimms"])
    return make_collection("Memory", "Memory", [f"{MEMORY}/DIMM_{n}" for n in range(count)])


def memory_module(view: ResourceView, ident: str) -> Resource:
    """One memory slot."""
    kind, _, number = ident.rpartition("_")
    dimm = find_numbered_item(view.state["box"]["dimms"], number)
    if kind != "DIMM":
        raise LookupError(ident)
    present = dimm["present"]
    size = {"CapacityMiB": dimm["gib"] * 1024, "MemoryDeviceType": "DDR5"} if present else {"CapacityMiB": None}
    status = make_status(dimm["health"]) if present else make_status(None, "Absent")
    return make_resource("Memory", "1_20_0", ident, ident, MemoryType="DRAM", Status=status, **size)


def _cpu(ident: str, cpu: dict[str, Any]) -> Resource:
    return make_resource(
        "Processor",
        "1_20_0",
        ident,
        ident,
        ProcessorType="CPU",
        Model=cpu["model"],
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
    return make_resource("Processor", "1_20_0", ident, ident, ProcessorType="GPU", **properties)
