"""Firmware as resources: the inventory, the update service, and the tasks of running and ended updates."""

from __future__ import annotations

from typing import Any

from assay.lab.bmc.authentication import RedfishErrorResponse, make_message
from assay.lab.bmc.firmware_flash import MAX_IMAGE_BYTES, UpdateTask, flash_progress, is_task_running
from assay.lab.bmc.resource_tree import (
    REDFISH_ROOT,
    Resource,
    ResourceView,
    make_collection,
    make_resource,
    make_status,
    resource_link,
)

TASK_SERVICE = "/TaskService"
TASKS = f"{TASK_SERVICE}/Tasks"
MONITORS = f"{REDFISH_ROOT}{TASK_SERVICE}/TaskMonitors"
UPDATE_SERVICE = "/UpdateService"
INVENTORY = f"{UPDATE_SERVICE}/FirmwareInventory"
SIMPLE_UPDATE = f"{REDFISH_ROOT}{UPDATE_SERVICE}/Actions/UpdateService.SimpleUpdate"
PENDING = "_Pending"
PUSH = f"{REDFISH_ROOT}{UPDATE_SERVICE}/update-multipart"


def task_service(view: ResourceView) -> Resource:
    """The task service."""
    return make_resource(
        "TaskService",
        "1_2_1",
        "TaskService",
        "Task service",
        ServiceEnabled=True,
        DateTime=view.now.isoformat(timespec="seconds"),
        CompletedTaskOverWritePolicy="Oldest",
        Status=make_status(),
        Tasks=resource_link(TASKS),
    )


def tasks(view: ResourceView) -> Resource:
    """All tasks that the BMC knows, also the ended ones."""
    return make_collection("Task", "Tasks", [f"{TASKS}/{entry['id']}" for entry in _known_tasks(view)])


def task(view: ResourceView, ident: str) -> Resource:
    """One update task."""
    entry = find_task(view, ident)
    ended = {"EndTime": entry["ended_at"]} if "ended_at" in entry else {}
    return make_resource(
        "Task",
        "1_7_4",
        ident,
        f"Update of {entry['component']}",
        TaskState=entry["state"],
        TaskStatus="Critical" if entry["state"] == "Exception" else "OK",
        PercentComplete=flash_progress(entry, view.now),
        StartTime=entry["started_at"],
        **ended,
        TaskMonitor=f"{MONITORS}/{ident}",
        HidePayload=True,
        Messages=[_task_message(entry, view)],
    )


def find_task(view: ResourceView, ident: str) -> UpdateTask:
    """Return a task's record. Raises LookupError for an unknown id."""
    for entry in _known_tasks(view):
        if entry["id"] == ident:
            return entry
    raise LookupError(ident)


def _known_tasks(view: ResourceView) -> list[UpdateTask]:
    return [entry for entry in view.state.get("tasks", []) if not entry.get("forgotten")]


def task_failure(entry: UpdateTask) -> RedfishErrorResponse | None:
    """Return the error of a failed operation, None while it runs and after success."""
    if is_task_running(entry) or entry["state"] == "Completed":
        return None
    return RedfishErrorResponse(500, "OperationFailed", entry["message"])


def _task_message(entry: UpdateTask, view: ResourceView) -> dict[str, Any]:
    if is_task_running(entry):
        text = f"Update of {entry['component']} is {flash_progress(entry, view.now)} % done"
        return make_message("Update.1.0.UpdateInProgress", text, entry["component"])
    if entry["state"] == "Completed":
        text = entry["message"] + ("" if entry["reset"] == "none" else f"; it runs after a reset ({entry['reset']})")
        return make_message("Update.1.0.UpdateSuccessful", text, entry["component"])
    return make_message("Update.1.0.ApplyFailed", entry["message"], entry["component"], severity="Critical")


def update_service(_: ResourceView) -> Resource:
    """The update service: SimpleUpdate fetches an image, the multipart push carries it."""
    return make_resource(
        "UpdateService",
        "1_14_0",
        "UpdateService",
        "Update service",
        ServiceEnabled=True,
        Status=make_status(),
        MaxImageSizeBytes=MAX_IMAGE_BYTES,
        MultipartHttpPushUri=PUSH,
        FirmwareInventory=resource_link(INVENTORY),
        Actions={
            "#UpdateService.SimpleUpdate": {
                "target": SIMPLE_UPDATE,
                "TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS"],
            }
        },
    )


def firmware_inventory(view: ResourceView) -> Resource:
    """All firmware of the node: the versions in force, and those that a reset will activate."""
    names = [*view.state["firmware"], *(f"{name}{PENDING}" for name in view.state.get("staged", {}))]
    return make_collection("SoftwareInventory", "Firmware inventory", [f"{INVENTORY}/{name}" for name in names])


def firmware(view: ResourceView, ident: str) -> Resource:
    """One component's version: the one in force, or, with the suffix `_Pending`, the staged one."""
    stem = ident.removesuffix(PENDING)
    pending = stem != ident and stem in view.state.get("staged", {})
    return make_resource(
        "SoftwareInventory",
        "1_10_0",
        ident,
        ident,
        Version=view.state["staged"][stem]["version"] if pending else view.state["firmware"][ident],
        Updateable=not pending,
        SoftwareId=stem if pending else ident,
        Status=make_status(None, "StandbyOffline") if pending else make_status(),
    )
