"""What a BMC remembers and offers of updates, read as `assay.actions.firmware_update` needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.actions.firmware_update import BmcConnector, FirmwareUpdateStatus
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import parse_reading
from assay.model.specs.firmware_bundle import FirmwareComponent, FirmwareReset
from assay.redfish.bmc import SYSTEM_RESET, BmcClient, open_fleet_bmc
from assay.redfish.firmware_update import list_task_messages, parse_task

PUSH_S = 600.0
NEVER = datetime.min.replace(tzinfo=UTC)


class RedfishFirmwareUpdater:
    """The updates of one BMC that we are logged in to."""

    def __init__(self, bmc: BmcClient) -> None:
        self._bmc = bmc

    def firmware(self) -> dict[str, str]:
        """Return version by inventory id; one that could not be read says so in its place, which equals no version."""
        readings = {ident: parse_reading(leaf) for ident, leaf in self._bmc.read_running_firmware().items()}
        return {
            ident: str(reading.value) if reading.kind == "value" else f"({reading.kind}: {reading.reason})"
            for ident, reading in readings.items()
            if reading is not None
        }

    def latest_update(self, component: FirmwareComponent) -> FirmwareUpdateStatus | None:
        """Return the newest task that names the component or one of its inventory ids."""
        tasks = [task for task in self._tasks() if is_task_of_component(task, component)]
        if not tasks:
            return None
        newest = max(tasks, key=lambda task: _parse_time(task.get("StartTime")))
        return self._as_update(newest, self._last_reset(component.reset))

    def update(self, ident: str) -> FirmwareUpdateStatus:
        """Return an update as it is now. One that the BMC forgot or never named counts as over."""
        if not ident:
            return FirmwareUpdateStatus("", running=False, completed=True)
        task = self._bmc.read_task(ident)
        completed = task.is_success or task.state == "Gone"
        return FirmwareUpdateStatus(ident, running=not task.is_over, completed=completed, message=task.message)

    def push(self, component: FirmwareComponent, image: Path) -> str:
        """Hand over the image in the component's way; return the task's path, "" where the BMC names none."""
        task = self._bmc.push_firmware(image, component.push, deadline_s=PUSH_S)
        return task.path if task else ""

    def restart(self, what: FirmwareReset) -> None:
        """Restart the BMC, or the host (one that is off is turned on), or cut the power of everything."""
        if what == "bmc":
            self._bmc.reset_bmc()
        elif what == "host":
            self._bmc.reset_system("ForceRestart" if self._bmc.read_power_state() == "On" else "On")
        else:
            self._bmc.reset_system(self._strongest_cycle())

    def _strongest_cycle(self) -> str:
        offer = self._bmc.system().get("Actions", {}).get(SYSTEM_RESET, {})
        offered = offer.get("ResetType@Redfish.AllowableValues", [])
        return next((kind for kind in ("FullPowerCycle", "PowerCycle") if kind in offered), "PowerCycle")

    def _tasks(self) -> list[dict[str, Any]]:
        service = self._bmc.follow(self._bmc.root, "Tasks")
        return self._bmc.members(self._bmc.follow(service, "Tasks", 1))

    def _last_reset(self, reset: FirmwareReset) -> datetime:
        """Return when the component's kind of reset was last seen, the beginning of time where nobody says."""
        system = self._bmc.system()
        if reset != "bmc":
            return _parse_time(system.get("LastResetTime"))
        managers = system.get("Links", {}).get("ManagedBy", [])
        return _parse_time(self._bmc.get(managers[0]["@odata.id"]).get("LastResetTime") if managers else None)

    def _as_update(self, resource: dict[str, Any], last_reset: datetime) -> FirmwareUpdateStatus:
        task = parse_task(resource)
        reset_since = NEVER < _parse_time(resource.get("EndTime")) < last_reset
        return FirmwareUpdateStatus(task.path, not task.is_over, task.is_success, reset_since, task.message)


def make_bmc_connector(node: Node, fleet: Fleet) -> BmcConnector:
    """Return what logs in to a node's BMC for its updates, anew each time: a BMC that restarts forgets sessions."""

    @contextmanager
    def session() -> Iterator[RedfishFirmwareUpdater]:
        with open_fleet_bmc(fleet, node) as bmc:
            yield RedfishFirmwareUpdater(bmc)

    return session


def is_task_of_component(task: dict[str, Any], component: FirmwareComponent) -> bool:
    """Say whether a task's messages name the component: BMCs put it, or an inventory id, among the arguments."""
    arguments = [message.get("MessageArgs") or [] for message in list_task_messages(task)]
    named = {str(argument) for some in arguments if isinstance(some, list) for argument in some}
    return bool(named & {component.name, *component.inventory})


def _parse_time(text: Any) -> datetime:
    """Return a time that a BMC tells, the beginning of time where it tells none, or none that can be read."""
    try:
        read = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return NEVER
    return read if read.tzinfo else read.replace(tzinfo=UTC)
