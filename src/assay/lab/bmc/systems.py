"""The computer system: power, boot, identity."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from assay.lab.bmc.power import RESET_TYPES, is_on, power_state
from assay.lab.bmc.tree import ROOT, Resource, View, collection, link, resource, status

PATH = "/Systems/System_0"
RESET = f"{ROOT}{PATH}/Actions/ComputerSystem.Reset"
BOOT_TARGETS = ["None", "Pxe", "Hdd", "Cd", "BiosSetup", "UefiHttp"]
BOOT_ENABLED = ["Disabled", "Once", "Continuous"]
WORST = ("Critical", "Warning")


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
        Status=status(health(state)),
        Boot=_boot(state),
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


def health(state: dict[str, Any]) -> str:
    """Return the worst health among the power supplies and fans."""
    parts = {part.get("health", "OK") for part in [*state.get("psus", []), *state.get("fans", [])]}
    return next((level for level in WORST if level in parts), "OK")


def _boot(state: dict[str, Any]) -> dict[str, Any]:
    override = state.get("boot_override") or {}
    return {
        "BootSourceOverrideEnabled": override.get("enabled", "Disabled"),
        "BootSourceOverrideEnabled@Redfish.AllowableValues": BOOT_ENABLED,
        "BootSourceOverrideTarget": override.get("target", "None"),
        "BootSourceOverrideTarget@Redfish.AllowableValues": BOOT_TARGETS,
        "BootSourceOverrideMode": "UEFI",
    }
