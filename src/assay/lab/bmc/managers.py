"""The BMC itself."""

from __future__ import annotations

import uuid
from datetime import timedelta

from assay.lab.bmc.power import BMC_RESET_TYPES
from assay.lab.bmc.tree import ROOT, Resource, View, collection, link, resource, status

PATH = "/Managers/BMC_0"
RESET = f"{ROOT}{PATH}/Actions/Manager.Reset"


def managers(_: View) -> Resource:
    """The one manager."""
    return collection("Manager", "Managers", [PATH])


def manager(view: View) -> Resource:
    """The BMC: its version and time; when it was last reset, if it remembers."""
    reset_at = view.state.get("bmc", {}).get("reset_at")
    return resource(
        "Manager",
        "1_19_0",
        "BMC_0",
        "BMC",
        ManagerType="BMC",
        FirmwareVersion=view.state["firmware"].get("BMC", ""),
        UUID=service_uuid(view),
        ServiceEntryPointUUID=service_uuid(view),
        DateTime=bmc_time(view),
        DateTimeLocalOffset="+00:00",
        **({"LastResetTime": reset_at} if reset_at else {}),
        PowerState="On",
        Status=status(),
        LogServices=link("/Systems/System_0/LogServices"),
        NetworkProtocol=link(f"{PATH}/NetworkProtocol"),
        Links={"ManagerForServers": [link("/Systems/System_0")], "ManagerForChassis": [link("/Chassis/Chassis_0")]},
        Actions={
            "#Manager.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": list(BMC_RESET_TYPES)},
        },
    )


def network_protocol(view: View) -> Resource:
    """What the BMC speaks: HTTPS only."""
    return resource(
        "ManagerNetworkProtocol",
        "1_10_0",
        "NetworkProtocol",
        "Network protocols",
        HostName=f"{view.node}-bmc",
        FQDN=None,
        HTTP={"ProtocolEnabled": False},
        HTTPS={"ProtocolEnabled": True},
        SSDP={"ProtocolEnabled": False},
        Status=status(),
    )


def service_uuid(view: View) -> str:
    """Return the id of this Redfish service: the same for ever for one node."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{view.node}.bmc"))


def bmc_time(view: View) -> str:
    """Return the BMC's own idea of the time."""
    return (view.now + timedelta(seconds=view.state["box"]["clock_s"])).isoformat(timespec="seconds")
