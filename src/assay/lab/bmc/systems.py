"""The computer system: power, boot, identity."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from assay.lab.bmc import health
from assay.lab.bmc.power import RESET_TYPES, is_on, power_state
from assay.lab.bmc.tree import ROOT, Resource, View, collection, link, resource

PATH = "/Systems/System_0"
RESET = f"{ROOT}{PATH}/Actions/ComputerSystem.Reset"
BOOT_TARGETS = ["None", "Pxe", "Hdd", "Cd", "BiosSetup", "UefiHttp"]
BOOT_ENABLED = ["Disabled", "Once", "Continuous"]


def systems(_: View) -> Resource:
    """The one system of this BMC."""
    return collection("ComputerSystem", "Systems", [PATH])


def system(view: View) -> Resource:
    """The node, as its BMC sees it."""
    state = view.state
    return resource(
        "ComputerSystem",
        "1_20_0",
        "System_0",
        view.node,
        SystemType="Physical",
        HostName=state["name"],
        Manufacturer="NVIDIA",
        Model=state["product"],
        SerialNumber=state["serial"],
        BiosVersion=state["firmware"].get("BIOS", ""),
        PowerState=power_state(state, view.now),
        BootProgress=boot_progress(state, view.now),
        LastResetTime=state["boot"].get("reset_at") or state["boot"]["ready_at"],
        Status=health.rolled(health.node(state)),
        ProcessorSummary=_processor_summary(state),
        MemorySummary=_memory_summary(state),
        Boot=_boot(state),
        Bios=link(f"{PATH}/Bios"),
        SecureBoot=link(f"{PATH}/SecureBoot"),
        Processors=link(f"{PATH}/Processors"),
        Memory=link(f"{PATH}/Memory"),
        LogServices=link(f"{PATH}/LogServices"),
        Links={"Chassis": [link("/Chassis/Chassis_0")], "ManagedBy": [link("/Managers/BMC_0")]},
        Actions={
            "#ComputerSystem.Reset": {
                "target": RESET,
                "@Redfish.ActionInfo": f"{ROOT}{PATH}/ResetActionInfo",
                "ResetType@Redfish.AllowableValues": list(RESET_TYPES),
            }
        },
    )


def reset_info(_: View) -> Resource:
    """The reset types that the system takes."""
    parameter = {"Name": "ResetType", "Required": True, "DataType": "String", "AllowableValues": list(RESET_TYPES)}
    return resource("ActionInfo", "1_4_0", "ResetActionInfo", "Reset", Parameters=[parameter])


def boot_progress(state: dict[str, Any], now: datetime) -> dict[str, str]:
    """Return BootProgress: how far the last boot is."""
    if not is_on(state):
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
        "BootOptions": link(f"{PATH}/BootOptions"),
        "BootOrder": [f"Boot{number:04}" for number in state["box"]["boot_order"]],
    }


def _processor_summary(state: dict[str, Any]) -> dict[str, Any]:
    cpus = state["box"]["cpus"]
    threads = sum(cpu["threads"] for cpu in cpus)
    summary = {"Count": len(cpus), "LogicalProcessorCount": threads, "Model": cpus[0]["model"] if cpus else None}
    return {**summary, "Status": health.rolled(health.processors(state))}


def _memory_summary(state: dict[str, Any]) -> dict[str, Any]:
    known = sum(dimm["gib"] for dimm in state["box"]["dimms"] if dimm["present"])
    return {"TotalSystemMemoryGiB": known, "Status": health.rolled(health.memory(state))}
