"""Firmware updates as pure functions of a node's state: read an image, start its task, compute the progress.

Then firmware as resources: the inventory, the update service, and the tasks of running and ended updates.

A fault that is planned for the next update of a component goes into the task of that update:

| fault | arguments | what the task carries |
|---|---|---|
| second-reset | – | `resets: 2`: the second reset activates the version |
| rolls-back | `after_s` | `rolls_back_s`: so long after its activation, the old version runs again |
| task-lost | `at_percent`, `written` | `lost_at`: from then on, the BMC does not know the task |
| bmc-restarts | `at_percent`, `forgets`, `breaks` | `restart_at`: the BMC restarts, may forget and break the update |
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from assay.lab.bmc.authentication import RedfishErrorResponse, make_message
from assay.lab.bmc.resource_tree import (
    REDFISH_ROOT,
    Resource,
    ResourceView,
    make_collection,
    make_resource,
    make_status,
    resource_link,
)
from assay.lab.virtual_node_state import VirtualNodeState, with_sel_event
from assay.model.facts import frozen
from assay.model.specs.firmware_bundle import read_image_header

FlashFault = dict[str, Any]
UpdateTask = dict[str, Any]
MAX_IMAGE_BYTES = 64 << 20
RESET_BY_COMPONENT: tuple[tuple[str, str], ...] = (
    ("HGX_FW_BMC", "bmc"),
    ("BMC", "bmc"),
    ("FW_BMC", "bmc"),
    ("BIOS", "host"),
    ("HCA_", "host"),
    ("CX7_", "host"),
    ("CX8_", "host"),
    ("HGX_FW_", "ac"),
)
TASK_SERVICE = "/TaskService"
TASKS = f"{TASK_SERVICE}/Tasks"
MONITORS = f"{REDFISH_ROOT}{TASK_SERVICE}/TaskMonitors"
UPDATE_SERVICE = "/UpdateService"
INVENTORY = f"{UPDATE_SERVICE}/FirmwareInventory"
INTEGRITY = "/ComponentIntegrity"
SIMPLE_UPDATE = f"{REDFISH_ROOT}{UPDATE_SERVICE}/Actions/UpdateService.SimpleUpdate"
PENDING = "_Pending"
PUSH = f"{REDFISH_ROOT}{UPDATE_SERVICE}/update-multipart"


def plan_flash_fault(state: VirtualNodeState, component: str, fault: str, **arguments: Any) -> None:
    """Plan a fault of the next update of a component, in place."""
    planned = state["fails"].setdefault("flash_faults", [])
    planned.append({"component": component, "fault": fault, **arguments})


def take_planned_faults(state: VirtualNodeState, component: str) -> tuple[list[FlashFault], VirtualNodeState]:
    """Return the planned faults of a component, and the state without them."""
    planned: list[FlashFault] = state.get("fails", {}).get("flash_faults", [])
    taken = [fault for fault in planned if fault["component"] == component]
    if not taken:
        return [], state
    left = [fault for fault in planned if fault["component"] != component]
    return taken, {**state, "fails": {**state["fails"], "flash_faults": left}}


def start_faults(faults: list[FlashFault], now: datetime, flash_s: float) -> dict[str, Any]:
    """Return what the task of an update that starts `now` carries of its faults."""
    carried: dict[str, Any] = {}
    for fault in faults:
        at = (now + timedelta(seconds=flash_s * fault.get("at_percent", 50) / 100)).isoformat()
        match fault["fault"]:
            case "second-reset":
                carried["resets"] = 2
            case "rolls-back":
                carried["rolls_back_s"] = fault["after_s"]
            case "task-lost":
                carried |= {"lost_at": at, "written": fault["written"]}
            case "bmc-restarts":
                carried |= {"restart_at": at, "forgets": fault["forgets"], "breaks": fault["breaks"]}
    return carried


class ImageRefused(Exception):
    """The image is invalid or does not fit this node."""


class ComponentBusy(Exception):
    """Another update of the same component is running."""


@frozen
class UploadedImage:
    """An image's header (model/specs/firmware_bundle.py), the reset that activates it, and the file's sha256."""

    component: str
    version: str
    inventory: tuple[str, ...]
    reset: str
    sha256: str


def read_image(content: bytes) -> UploadedImage:
    """Read an image. Raises ImageRefused for bytes that are no image."""
    try:
        plain = read_image_header(content)
    except ValueError:
        raise ImageRefused("the file is no image: it has no readable header") from None
    inventory = plain["inventory"]
    if not (isinstance(inventory, list) and inventory and all(isinstance(name, str) for name in inventory)):
        raise ImageRefused("the image names no inventory id")
    digest = hashlib.sha256(content).hexdigest()
    reset = find_needed_reset(inventory)
    return UploadedImage(str(plain["component"]), str(plain["version"]), tuple(inventory), reset, digest)


def find_needed_reset(inventory: Sequence[str]) -> str:
    """Return the reset that activates firmware of this kind: bmc, host, ac or none."""
    return next((reset for prefix, reset in RESET_BY_COMPONENT if inventory[0].startswith(prefix)), "none")


def start_flash(
    state: VirtualNodeState, image: UploadedImage, targets: Collection[str], now: datetime
) -> VirtualNodeState:
    """Return the state with a new running update task, the last of `tasks`.

    `targets` are inventory ids; empty means all ids of the image. Raises ImageRefused for an image of another
    component or node, ComponentBusy while another task writes one of the components.
    """
    ids = _ids(state, image, targets)
    for task in state.get("tasks", []):
        if is_task_running(task) and set(task["inventory"]) & set(ids):
            raise ComponentBusy(f"task {task['id']} is writing {task['component']}")
    planned = state.get("fails", {}).get("flash", [])
    fails = next((name for name in planned if name == image.component or name in ids), None)
    faults, state = take_planned_faults(state, image.component)
    task = {
        **_task(state, image.component, image.sha256, now),
        "ends_at": (now + timedelta(seconds=state["timing"]["flash_s"])).isoformat(),
        "fails": fails is not None,
        "version": image.version,
        "inventory": ids,
        "reset": image.reset,
        "state": "Running",
        **start_faults(faults, now, state["timing"]["flash_s"]),
    }
    flashed = {"component": image.component, "image_sha256": image.sha256, "at": now.isoformat()}
    state = {**_without_failure(state, fails), "flashes": [*state.get("flashes", []), flashed]}
    state = {**state, "tasks": [*state.get("tasks", []), task]}
    return with_sel_event(
        state, now, "OK", f"Update of {image.component} to {image.version} started", "Update.1.0.UpdateInProgress"
    )


def start_refused_flash(state: VirtualNodeState, sha256: str, reason: str, now: datetime) -> VirtualNodeState:
    """Return the state with a new task that has ended in Exception; nothing was written."""
    ended = {
        "ends_at": now.isoformat(),
        "ended_at": now.isoformat(),
        "fails": True,
        "state": "Exception",
        "message": reason,
    }
    unknown: dict[str, Any] = {"version": "", "inventory": [], "reset": "none"}
    task = {**_task(state, "unknown", sha256, now), **unknown, **ended}
    state = {**state, "tasks": [*state.get("tasks", []), task]}
    return with_sel_event(state, now, "Warning", f"Update refused: {reason}", "Update.1.0.VerificationFailed")


def flash_progress(task: dict[str, Any], now: datetime) -> int:
    """Return a task's PercentComplete; 100 only after completion."""
    if task.get("state") == "Completed":
        return 100
    begin, end = (datetime.fromisoformat(task[key]) for key in ("started_at", "ends_at"))
    reached = min(now, datetime.fromisoformat(task.get("ended_at", now.isoformat())))
    whole = (end - begin).total_seconds()
    return max(0, min(99, int(100 * (reached - begin).total_seconds() / whole))) if whole > 0 else 0


def _ids(state: VirtualNodeState, image: UploadedImage, targets: Collection[str]) -> list[str]:
    foreign = [name for name in image.inventory if name not in state["firmware"]]
    if foreign:
        raise ImageRefused(f"the image is for {', '.join(foreign)}, which this node does not have")
    if stray := sorted(set(targets) - set(image.inventory)):
        raise ImageRefused(f"the image of {image.component} does not fit the target {', '.join(stray)}")
    return [name for name in image.inventory if not targets or name in targets]


def _task(state: VirtualNodeState, component: str, sha256: str, now: datetime) -> dict[str, Any]:
    number = max([0, *(int(task["id"]) for task in state.get("tasks", []) if task["id"].isdecimal())]) + 1
    return {"id": str(number), "component": component, "image_sha256": sha256, "started_at": now.isoformat()}


def _without_failure(state: VirtualNodeState, name: str | None) -> VirtualNodeState:
    if name is None:
        return state
    left = [planned for planned in state["fails"]["flash"] if planned != name]
    return {**state, "fails": {**state["fails"], "flash": left}}


def is_task_running(task: UpdateTask) -> bool:
    """Return whether an update task is still running."""
    return bool(task.get("state", "Running") == "Running")


def component_integrity(view: ResourceView, ident: str) -> Resource:
    """Whether a component proved by its certificate whose firmware it runs."""
    if ident not in view.state["firmware"]:
        raise LookupError(ident)
    status = "Failed" if ident in view.state["box"].get("unverified", ()) else "Success"
    return make_resource(
        "ComponentIntegrity.v1_2_1",
        ident,
        f"Integrity of {ident}",
        ComponentIntegrityEnabled=True,
        ComponentIntegrityType="SPDM",
        ComponentIntegrityTypeVersion="1.1.0",
        TargetComponentURI=f"{REDFISH_ROOT}{INVENTORY}/{ident}",
        SPDM={"IdentityAuthentication": {"ResponderAuthentication": {"VerificationStatus": status}}},
    )


def task_service(view: ResourceView) -> Resource:
    """The task service."""
    return make_resource(
        "TaskService.v1_2_1",
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
        "Task.v1_7_4",
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
        "UpdateService.v1_14_0",
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
        "SoftwareInventory.v1_10_0",
        ident,
        ident,
        Version=view.state["staged"][stem]["version"] if pending else view.state["firmware"][ident],
        Updateable=not pending,
        SoftwareId=stem if pending else ident,
        Status=make_status(None, "StandbyOffline") if pending else make_status(),
    )
