"""The task service: updates that run, and what became of them."""

from __future__ import annotations

from typing import Any

from assay.lab.bmc.errors import RedfishError, message
from assay.lab.bmc.flash import progress
from assay.lab.bmc.settle import Task, running
from assay.lab.bmc.tree import ROOT, Resource, View, collection, link, resource, status

PATH = "/TaskService"
TASKS = f"{PATH}/Tasks"
MONITORS = f"{ROOT}{PATH}/TaskMonitors"


def task_service(view: View) -> Resource:
    """The task service."""
    return resource(
        "TaskService",
        "1_2_1",
        "TaskService",
        "Task service",
        ServiceEnabled=True,
        DateTime=view.now.isoformat(timespec="seconds"),
        CompletedTaskOverWritePolicy="Oldest",
        Status=status(),
        Tasks=link(TASKS),
    )


def tasks(view: View) -> Resource:
    """Every task, also the ended ones."""
    return collection("Task", "Tasks", [f"{TASKS}/{entry['id']}" for entry in view.state.get("tasks", [])])


def task(view: View, ident: str) -> Resource:
    """One update task."""
    entry = find(view, ident)
    ended = {"EndTime": entry["ended_at"]} if "ended_at" in entry else {}
    return resource(
        "Task",
        "1_7_4",
        ident,
        f"Update of {entry['component']}",
        TaskState=entry["state"],
        TaskStatus="Critical" if entry["state"] == "Exception" else "OK",
        PercentComplete=progress(entry, view.now),
        StartTime=entry["started_at"],
        **ended,
        TaskMonitor=f"{MONITORS}/{ident}",
        HidePayload=True,
        Messages=[_message(entry, view)],
    )


def find(view: View, ident: str) -> Task:
    """Return a task's record. Raises LookupError."""
    for entry in view.state.get("tasks", []):
        if entry["id"] == ident:
            found: Task = entry
            return found
    raise LookupError(ident)


def failure(entry: Task) -> RedfishError | None:
    """Return the error that the whole operation ended in, None while it runs and when it went well."""
    if running(entry) or entry["state"] == "Completed":
        return None
    return RedfishError(500, "OperationFailed", entry["message"])


def _message(entry: Task, view: View) -> dict[str, Any]:
    if running(entry):
        text = f"Update of {entry['component']} is {progress(entry, view.now)} % done"
        return message("Update.1.0.UpdateInProgress", text, entry["component"])
    if entry["state"] == "Completed":
        text = entry["message"] + ("" if entry["reset"] == "none" else f"; it runs after a reset ({entry['reset']})")
        return message("Update.1.0.UpdateSuccessful", text, entry["component"])
    return message("Update.1.0.ApplyFailed", entry["message"], entry["component"], severity="Critical")
