"""What a BMC remembers and offers of updates, read as `assay.actions.firmware` needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.actions.firmware import Connect, Update
from assay.model.firmware import Component, Reset
from assay.model.fleet import Fleet, Node
from assay.model.reading import as_reading
from assay.observe.bmc import RESET, Bmc, bmc_of
from assay.observe.task import as_task, messages_of

PUSH_S = 600.0
NEVER = datetime.min.replace(tzinfo=UTC)


class BmcUpdates:
    """The updates of one BMC that we are logged in to."""

    def __init__(self, bmc: Bmc) -> None:
        self._bmc = bmc

    def firmware(self) -> dict[str, str]:
        """Return version by inventory id; one that could not be read says so in its place, which equals no version."""
        readings = {ident: as_reading(leaf) for ident, leaf in self._bmc.firmware().items()}
        return {
            ident: str(reading.value) if reading.kind == "value" else f"({reading.kind}: {reading.reason})"
            for ident, reading in readings.items()
            if reading is not None
        }

    def latest_update(self, component: Component) -> Update | None:
        """Return the newest task that names the component or one of its inventory ids."""
        tasks = [task for task in self._tasks() if mentions(task, component)]
        if not tasks:
            return None
        newest = max(tasks, key=lambda task: _moment(task.get("StartTime")))
        return self._as_update(newest, self._last_reset(component.reset))

    def update(self, ident: str) -> Update:
        """Return an update as it is now. One that the BMC forgot or never named counts as over."""
        if not ident:
            return Update("", running=False, completed=True)
        task = self._bmc.task(ident)
        completed = task.well or task.state == "Gone"
        return Update(ident, running=not task.over, completed=completed, message=task.message)

    def push(self, component: Component, image: Path) -> str:
        """Hand over the image in the component's way; return the task's path, "" where the BMC names none."""
        task = self._bmc.push(image, component.push, deadline_s=PUSH_S)
        return task.path if task else ""

    def restart(self, what: Reset) -> None:
        """Restart the BMC, or the host (one that is off is turned on), or cut the power of everything."""
        if what == "bmc":
            self._bmc.reset_bmc()
        elif what == "host":
            self._bmc.reset("ForceRestart" if self._bmc.power() == "On" else "On")
        else:
            self._bmc.reset(self._strongest_cycle())

    def _strongest_cycle(self) -> str:
        offer = self._bmc.system().get("Actions", {}).get(RESET, {})
        offered = offer.get("ResetType@Redfish.AllowableValues", [])
        return next((kind for kind in ("FullPowerCycle", "PowerCycle") if kind in offered), "PowerCycle")

    def _tasks(self) -> list[dict[str, Any]]:
        service = self._bmc.follow(self._bmc.root, "Tasks")
        return self._bmc.members(self._bmc.follow(service, "Tasks", 1))

    def _last_reset(self, reset: Reset) -> datetime:
        """Return when the component's kind of reset was last seen, the beginning of time where nobody says."""
        system = self._bmc.system()
        if reset != "bmc":
            return _moment(system.get("LastResetTime"))
        managers = system.get("Links", {}).get("ManagedBy", [])
        return _moment(self._bmc.get(managers[0]["@odata.id"]).get("LastResetTime") if managers else None)

    def _as_update(self, resource: dict[str, Any], last_reset: datetime) -> Update:
        task = as_task(resource)
        reset_since = NEVER < _moment(resource.get("EndTime")) < last_reset
        return Update(task.path, not task.over, task.well, reset_since, task.message)


def connect(node: Node, fleet: Fleet) -> Connect:
    """Return what logs in to a node's BMC for its updates, anew each time: a BMC that restarts forgets sessions."""

    @contextmanager
    def session() -> Iterator[BmcUpdates]:
        with bmc_of(fleet, node) as bmc:
            yield BmcUpdates(bmc)

    return session


def mentions(task: dict[str, Any], component: Component) -> bool:
    """Say whether a task's messages name the component: BMCs put it, or an inventory id, among the arguments."""
    arguments = [message.get("MessageArgs") or [] for message in messages_of(task)]
    named = {str(argument) for some in arguments if isinstance(some, list) for argument in some}
    return bool(named & {component.name, *component.inventory})


def _moment(text: Any) -> datetime:
    """Return a time that a BMC tells, the beginning of time where it tells none, or none that can be read."""
    try:
        read = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return NEVER
    return read if read.tzinfo else read.replace(tzinfo=UTC)
