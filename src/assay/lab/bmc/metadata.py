"""The OData metadata document: which of DMTF's schemas this service uses."""

from __future__ import annotations

from starlette.responses import Response

from assay.lab.bmc.answers import COMMON
from assay.lab.bmc.tree import ROOT

PATH = f"{ROOT}/$metadata"
# fmt: off
SCHEMAS = (
    "AccountService", "ActionInfo", "Bios", "BootOption", "BootOptionCollection", "Chassis", "ChassisCollection",
    "ComputerSystem", "ComputerSystemCollection", "EnvironmentMetrics", "Event", "EventDestination",
    "EventDestinationCollection", "EventService", "Fan", "FanCollection", "LeakDetection", "LeakDetector",
    "LeakDetectorCollection", "LogEntry", "LogEntryCollection", "LogService", "LogServiceCollection", "Manager",
    "ManagerAccount", "ManagerAccountCollection", "ManagerCollection", "ManagerNetworkProtocol", "Memory",
    "MemoryCollection", "Message", "PowerSubsystem", "PowerSupply", "PowerSupplyCollection", "PowerSupplyMetrics",
    "Processor", "ProcessorCollection", "Redundancy", "Role", "RoleCollection", "SecureBoot", "Sensor",
    "SensorCollection", "ServiceRoot", "Session", "SessionCollection", "SessionService", "Settings",
    "SoftwareInventory", "SoftwareInventoryCollection", "Task", "TaskCollection", "TaskService", "ThermalMetrics",
    "ThermalSubsystem", "UpdateService",
)
# fmt: on


def answer() -> Response:
    """Return the document, as XML."""
    return Response(document(), 200, COMMON, "application/xml;charset=utf-8")


def document() -> str:
    """Return the metadata: a reference to each schema, and the container of the service."""
    references = "".join(
        f'<edmx:Reference Uri="http://redfish.dmtf.org/schemas/v1/{name}_v1.xml"><edmx:Include Namespace="{name}"/>'
        "</edmx:Reference>"
        for name in SCHEMAS
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">'
        f"{references}<edmx:DataServices>"
        '<Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">'
        '<EntityContainer Name="Service" Extends="ServiceRoot.v1_17_0.ServiceContainer"/>'
        "</Schema></edmx:DataServices></edmx:Edmx>"
    )
