"""What the passing of time does to a node: a pending power-on takes effect, update tasks end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from assay.lab.bmc.journal import logged
from assay.lab.world import State

Task = dict[str, Any]
Step = Callable[[State], State]


def settle(state: State, now: datetime) -> State:
    """Return the state as of `now`, with everything that fell due by then folded in, in the order it fell due.

    Pure, idempotent, and the same whether time passes at once or in steps. Returns `state` itself when nothing did.
    """
    for _, step in sorted(_due(state, now), key=lambda pair: pair[0]):
        state = step(state)
    return state


def pending(state: State) -> bool:
    """Whether time alone will change this state."""
    return bool(state["power"].get("on_at")) or any(running(task) for task in state.get("tasks", []))


def running(task: Task) -> bool:
    """Whether an update task has not ended yet."""
    return bool(task.get("state", "Running") == "Running")


def interrupted(state: State, task_id: str, now: datetime, why: str) -> State:
    """Return the state with a running task ended in Exception because of `why`; the firmware stays as it was."""
    return _ended(state, task_id, now, "Exception", why)


def _due(state: State, now: datetime) -> Iterator[tuple[datetime, Step]]:
    if (on_at := state["power"].get("on_at")) and (at := datetime.fromisoformat(on_at)) <= now:
        yield at, _powered_on
    for task in state.get("tasks", []):
        if running(task) and (at := datetime.fromisoformat(task["ends_at"])) <= now:
            yield at, _task_end(task, at)


def _powered_on(state: State) -> State:
    on = {**state, "power": {**state["power"], "on_at": None}}
    return logged(on, datetime.fromisoformat(state["power"]["on_at"]), "OK", "System power is on", "Assay.1.0.PowerOn")


def _task_end(task: Task, at: datetime) -> Step:
    def end(state: State) -> State:
        if task["fails"]:
            return _ended(
                state, task["id"], at, "Exception", f"Verification of {task['component']} failed after writing"
            )
        done = _ended(state, task["id"], at, "Completed", f"{task['component']} {task['version']} was written")
        return _written(done, task)

    return end


def _written(state: State, task: Task) -> State:
    """Without a reset the new version runs at once; else it is staged for the reset that it needs."""
    ids = task["inventory"]
    if task["reset"] == "none":
        staged = {name: entry for name, entry in state.get("staged", {}).items() if name not in ids}
        return {**state, "staged": staged, "firmware": {**state["firmware"], **dict.fromkeys(ids, task["version"])}}
    waiting = {name: {"version": task["version"], "reset": task["reset"]} for name in ids}
    return {**state, "staged": {**state.get("staged", {}), **waiting}}


def _ended(state: State, task_id: str, at: datetime, outcome: str, message: str) -> State:
    ending = {"state": outcome, "ended_at": at.isoformat(), "message": message}
    tasks = [{**task, **ending} if task["id"] == task_id else task for task in state["tasks"]]
    state = {**state, "tasks": tasks}
    if outcome == "Completed":
        return logged(state, at, "OK", message, "Update.1.0.UpdateSuccessful")
    return logged(state, at, "Critical", message, "Update.1.0.ApplyFailed")
