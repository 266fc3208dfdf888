"""The service root, and the table of all resources."""

from __future__ import annotations

from assay.lab.bmc import (
    accounts,
    bios,
    chassis,
    cooling,
    logs,
    managers,
    parts,
    sensors,
    subscriptions,
    systems,
    tasks,
    update,
)
from assay.lab.bmc.answers import MAX_LEVELS
from assay.lab.bmc.tree import ROOT, Build, Resource, Tree, View, link, resource

EXPAND = {"ExpandAll": False, "Levels": True, "Links": False, "NoLinks": True}


def service_root(view: View) -> Resource:
    """Where every client begins; the only resource that asks for no login."""
    return resource(
        "ServiceRoot",
        "1_17_0",
        "RootService",
        "Root service",
        RedfishVersion="1.20.0",
        UUID=managers.service_uuid(view),
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
            "SelectQuery": True,
            "OnlyMemberQuery": True,
            "ExcerptQuery": False,
            "TopSkipQuery": True,
        },
        Systems=link("/Systems"),
        Chassis=link("/Chassis"),
        Managers=link("/Managers"),
        UpdateService=link("/UpdateService"),
        Tasks=link("/TaskService"),
        EventService=link("/EventService"),
        SessionService=link("/SessionService"),
        AccountService=link("/AccountService"),
        Links={"Sessions": link("/SessionService/Sessions")},
    )


def odata(_: View) -> Resource:
    """The OData service document."""
    names = ("Systems", "Chassis", "Managers", "UpdateService", "TaskService", "EventService", "AccountService")
    value = [{"name": "Service", "kind": "Singleton", "url": f"{ROOT}/"}]
    value += [{"name": name, "kind": "Singleton", "url": f"{ROOT}/{name}"} for name in (*names, "SessionService")]
    return {"@odata.context": f"{ROOT}/$metadata", "value": value}


def versions(_: View) -> Resource:
    """Where each version of the protocol begins."""
    return {"v1": f"{ROOT}/"}


BELOW_ROOT: dict[str, Build] = {
    "/odata": odata,
    "/Systems": systems.systems,
    systems.PATH: systems.system,
    f"{systems.PATH}/ResetActionInfo": systems.reset_info,
    bios.BIOS: bios.bios,
    bios.SETTINGS: bios.settings,
    bios.SECURE: bios.secure_boot,
    bios.OPTIONS: bios.options,
    f"{bios.OPTIONS}/{{}}": bios.option,
    parts.PROCESSORS: parts.processors,
    f"{parts.PROCESSORS}/{{}}": parts.processor,
    parts.MEMORY: parts.modules,
    f"{parts.MEMORY}/{{}}": parts.module,
    logs.PATH: logs.log_services,
    logs.SEL: logs.sel,
    logs.ENTRIES: logs.entries,
    f"{logs.ENTRIES}/{{}}": logs.entry,
    "/Managers": managers.managers,
    managers.PATH: managers.manager,
    f"{managers.PATH}/NetworkProtocol": managers.network_protocol,
    "/Chassis": chassis.all_chassis,
    chassis.PATH: chassis.chassis,
    chassis.POWER: chassis.power_subsystem,
    chassis.SUPPLIES: chassis.supplies,
    f"{chassis.SUPPLIES}/{{}}": chassis.supply,
    f"{chassis.SUPPLIES}/{{}}/Metrics": chassis.supply_metrics,
    chassis.METRICS: chassis.environment,
    chassis.THERMAL: cooling.thermal_subsystem,
    chassis.FANS: cooling.fans,
    f"{chassis.FANS}/{{}}": cooling.fan,
    f"{chassis.THERMAL}/ThermalMetrics": cooling.thermal_metrics,
    cooling.LEAKS: cooling.leak_detection,
    cooling.DETECTORS: cooling.detectors,
    f"{cooling.DETECTORS}/{{}}": cooling.detector,
    f"{chassis.PATH}/Sensors": sensors.sensors,
    f"{chassis.PATH}/Sensors/{{}}": sensors.sensor,
    update.PATH: update.update_service,
    update.INVENTORY: update.inventory,
    f"{update.INVENTORY}/{{}}": update.firmware,
    tasks.PATH: tasks.task_service,
    tasks.TASKS: tasks.tasks,
    f"{tasks.TASKS}/{{}}": tasks.task,
    subscriptions.PATH: subscriptions.event_service,
    subscriptions.ALL: subscriptions.subscriptions,
    f"{subscriptions.ALL}/{{}}": subscriptions.subscription,
    accounts.SESSION_SERVICE: accounts.session_service,
    accounts.SESSIONS: accounts.sessions,
    f"{accounts.SESSIONS}/{{}}": accounts.session,
    accounts.PATH: accounts.account_service,
    accounts.ACCOUNTS: accounts.accounts,
    f"{accounts.ACCOUNTS}/{{}}": accounts.account,
    accounts.ALL_ROLES: accounts.roles,
    f"{accounts.ALL_ROLES}/{{}}": accounts.role,
}
TREE = Tree({"/redfish": versions, ROOT: service_root} | {ROOT + path: build for path, build in BELOW_ROOT.items()})
