"""The service root, the OData metadata document, and `RESOURCE_TREE`: the table of all resources by path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.responses import Response

from assay.lab.bmc import chassis, computer_system, firmware_flash, services
from assay.lab.bmc.authentication import ROLES
from assay.lab.bmc.odata_responses import COMMON_HEADERS, MAX_LEVELS
from assay.lab.bmc.resource_tree import (
    REDFISH_ROOT,
    Resource,
    ResourceBuilder,
    ResourceTree,
    ResourceView,
    make_collection,
    make_resource,
    resource_link,
    without_lacking,
)

METADATA_PATH = f"{REDFISH_ROOT}/$metadata"
# fmt: off
SCHEMAS = (
    "AccountService", "ActionInfo", "Bios", "BootOption", "BootOptionCollection", "Chassis", "ChassisCollection",
    "ComponentIntegrity", "ComponentIntegrityCollection",
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


def answer_metadata() -> Response:
    """Return the metadata document, as XML."""
    return Response(make_metadata(), 200, COMMON_HEADERS, "application/xml;charset=utf-8")


def make_metadata() -> str:
    """Return the metadata: a reference to each DMTF schema, and the container of the service."""
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


def service_root(view: ResourceView) -> Resource:
    """The service root, which needs no login."""
    return make_resource(
        "ServiceRoot.v1_17_0",
        "RootService",
        "Root service",
        RedfishVersion="1.20.0",
        UUID=services.service_uuid(view),
        Vendor="NVIDIA",
        Product=f"{view.state['product']} (virtual)",
        ProtocolFeaturesSupported={
            "ExpandQuery": {
                "ExpandAll": False,
                "Levels": True,
                "Links": False,
                "MaxLevels": MAX_LEVELS,
                "NoLinks": True,
            },
            "FilterQuery": True,
            "SelectQuery": False,
            "OnlyMemberQuery": False,
            "ExcerptQuery": False,
            "TopSkipQuery": True,
        },
        Systems=resource_link("/Systems"),
        Chassis=resource_link("/Chassis"),
        Managers=resource_link("/Managers"),
        UpdateService=resource_link("/UpdateService"),
        **without_lacking(view, ComponentIntegrity=resource_link(firmware_flash.INTEGRITY)),
        Tasks=resource_link("/TaskService"),
        **without_lacking(view, EventService=resource_link("/EventService")),
        SessionService=resource_link("/SessionService"),
        AccountService=resource_link("/AccountService"),
        Links={"Sessions": resource_link("/SessionService/Sessions")},
    )


def odata(_: ResourceView) -> Resource:
    """The OData service document."""
    names = ("Systems", "Chassis", "Managers", "UpdateService", "TaskService", "EventService", "AccountService")
    value = [{"name": "Service", "kind": "Singleton", "url": f"{REDFISH_ROOT}/"}]
    value += [
        {"name": name, "kind": "Singleton", "url": f"{REDFISH_ROOT}/{name}"} for name in (*names, "SessionService")
    ]
    return {"@odata.context": f"{REDFISH_ROOT}/$metadata", "value": value}


def versions(_: ResourceView) -> Resource:
    """The protocol versions and their roots."""
    return {"v1": f"{REDFISH_ROOT}/"}


BELOW_ROOT: dict[str, ResourceBuilder] = {
    "/odata": odata,
    computer_system.SYSTEM_PATH: computer_system.system,
    computer_system.SYSTEM_SETTINGS: computer_system.system_settings,
    f"{computer_system.SYSTEM_PATH}/ResetActionInfo": computer_system.reset_info,
    computer_system.BIOS: computer_system.bios,
    computer_system.BIOS_SETTINGS: computer_system.bios_settings,
    computer_system.SECURE_BOOT: computer_system.secure_boot,
    f"{computer_system.BOOT_OPTIONS}/{{}}": computer_system.boot_option,
    computer_system.PROCESSORS: computer_system.processors,
    f"{computer_system.PROCESSORS}/{{}}": computer_system.processor,
    f"{computer_system.MEMORY}/{{}}": computer_system.memory_module,
    services.LOG_SERVICES_PATH: services.log_services,
    services.SEL: services.sel,
    services.ENTRIES: services.log_entries,
    f"{services.ENTRIES}/{{}}": services.log_entry,
    services.CONSOLE: services.console,
    services.CONSOLE_ENTRIES: services.console_entries,
    f"{services.CONSOLE_ENTRIES}/{{}}": services.console_entry,
    services.MANAGER_PATH: services.manager,
    services.NETWORK_PROTOCOL: services.network_protocol,
    chassis.CHASSIS_PATH: chassis.chassis,
    chassis.POWER: chassis.power_subsystem,
    f"{chassis.SUPPLIES}/{{}}": chassis.supply,
    f"{chassis.SUPPLIES}/{{}}/Metrics": chassis.supply_metrics,
    chassis.METRICS: chassis.environment,
    chassis.THERMAL: chassis.thermal_subsystem,
    f"{chassis.FANS}/{{}}": chassis.fan,
    f"{chassis.THERMAL}/ThermalMetrics": chassis.thermal_metrics,
    chassis.LEAKS: chassis.leak_detection,
    chassis.DETECTORS: chassis.detectors,
    f"{chassis.DETECTORS}/{{}}": chassis.detector,
    f"{chassis.CHASSIS_PATH}/Sensors": chassis.sensors,
    f"{chassis.CHASSIS_PATH}/Sensors/{{}}": chassis.sensor,
    firmware_flash.UPDATE_SERVICE: firmware_flash.update_service,
    firmware_flash.INVENTORY: firmware_flash.firmware_inventory,
    f"{firmware_flash.INVENTORY}/{{}}": firmware_flash.firmware,
    f"{firmware_flash.INTEGRITY}/{{}}": firmware_flash.component_integrity,
    firmware_flash.TASK_SERVICE: firmware_flash.task_service,
    firmware_flash.TASKS: firmware_flash.tasks,
    f"{firmware_flash.TASKS}/{{}}": firmware_flash.task,
    services.EVENT_SERVICE: services.event_service,
    f"{services.SUBSCRIPTIONS}/{{}}": services.subscription,
    services.SESSION_SERVICE: services.session_service,
    f"{services.SESSIONS}/{{}}": services.session,
    services.ACCOUNT_SERVICE: services.account_service,
    f"{services.ACCOUNTS}/{{}}": services.account,
    f"{services.ALL_ROLES}/{{}}": services.role,
}
COLLECTIONS: dict[str, tuple[str, str, Callable[[ResourceView], Iterable[object]]]] = {
    "/Systems": ("ComputerSystem", "Systems", lambda _: ["System_0"]),
    computer_system.BOOT_OPTIONS: (
        "BootOption",
        "Boot options",
        lambda view: _count(view.state["box"], "boot_options"),
    ),
    computer_system.MEMORY: ("Memory", "Memory", lambda view: _count(view.state["box"], "dimms", "DIMM_")),
    "/Managers": ("Manager", "Managers", lambda _: ["BMC_0"]),
    "/Chassis": ("Chassis", "Chassis", lambda _: ["Chassis_0"]),
    chassis.SUPPLIES: ("PowerSupply", "Power supplies", lambda view: _count(view.state, "psus")),
    chassis.FANS: ("Fan", "Fans", lambda view: _count(view.state, "fans")),
    firmware_flash.INTEGRITY: ("ComponentIntegrity", "Component integrity", lambda view: view.state["firmware"]),
    services.SUBSCRIPTIONS: ("EventDestination", "Subscriptions", lambda view: view.state.get("subscriptions", {})),
    services.SESSIONS: ("Session", "Sessions", lambda view: view.logins.live_sessions()),
    services.ACCOUNTS: ("ManagerAccount", "Accounts", lambda view: view.logins.accounts),
    services.ALL_ROLES: ("Role", "Roles", lambda _: ROLES),
}
"""Collections by path: their schema, their name, and the ids of their members."""


def _count(state: Mapping[str, Any], items: str, kind: str = "") -> list[str]:
    return [f"{kind}{number}" for number in range(len(state[items]))]


def _collect(path: str) -> ResourceBuilder:
    kind, name, find_ids = COLLECTIONS[path]
    return lambda view: make_collection(kind, name, [f"{path}/{ident}" for ident in find_ids(view)])


RESOURCE_TREE = ResourceTree(
    {"/redfish": versions, REDFISH_ROOT: service_root}
    | {REDFISH_ROOT + path: build for path, build in BELOW_ROOT.items()}
    | {REDFISH_ROOT + path: _collect(path) for path in COLLECTIONS}
)
