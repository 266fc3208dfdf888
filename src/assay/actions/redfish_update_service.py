"""Firmware updates through one BMC, in Redfish terms: running versions, remembered updates, pushes and resets."""

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
from assay.redfish.bmc_client import SYSTEM_RESET, BmcClient, open_fleet_bmc
from assay.redfish.firmware_push_and_tasks import list_task_messages, parse_task

PUSH_TIMEOUT_S = 600.0
NEVER = datetime.min.replace(tzinfo=UTC)


def make_bmc_connector(node: Node, fleet: Fleet) -> BmcConnector:
    """Return what logs in to a node's BMC. Each call logs in anew: a BMC that restarts forgets its sessions."""

    @contextmanager
    def connect() -> Iterator[RedfishFirmwareUpdater]:
        with open_fleet_bmc(fleet, node) as bmc:
            yield RedfishFirmwareUpdater(bmc)

    return connect


class RedfishFirmwareUpdater:
    """The updates of one BMC that we are logged in to."""

    def __init__(self, bmc: BmcClient) -> None:
        self._bmc = bmc

    def read_versions(self) -> dict[str, str]:
        """Return version by inventory id. One that cannot be read is `(KIND: REASON)`, which equals no version."""
        readings = {ident: parse_reading(leaf) for ident, leaf in self._bmc.read_running_firmware().items()}
        return {
            ident: str(reading.value) if reading.kind == "value" else f"({reading.kind}: {reading.reason})"
            for ident, reading in readings.items()
            if reading is not None
        }

    def find_update(self, component: FirmwareComponent) -> FirmwareUpdateStatus | None:
        """Return the newest task that names the component or one of its inventory ids, None if there is none."""
        service = self._bmc.follow(self._bmc.root, "Tasks")
        tasks = self._bmc.members(self._bmc.follow(service, "Tasks", 1))
        ours = [task for task in tasks if is_task_of_component(task, component)]
        if not ours:
            return None
        newest = max(ours, key=lambda task: _parse_time(task.get("StartTime")))
        task = parse_task(newest)
        reset_since = NEVER < _parse_time(newest.get("EndTime")) < self._read_last_reset(component.reset)
        return FirmwareUpdateStatus(task.path, not task.is_over, task.is_success, reset_since, task.message)

    def read_update(self, ident: str) -> FirmwareUpdateStatus:
        """Return an update as it is now. An update that the BMC forgot, or never named (""), counts as completed."""
        if not ident:
            return FirmwareUpdateStatus("", running=False, completed=True)
        task = self._bmc.read_task(ident)
        completed = task.is_success or task.state == "Gone"
        return FirmwareUpdateStatus(ident, running=not task.is_over, completed=completed, message=task.message)

    def push(self, component: FirmwareComponent, image: Path) -> str:
        """Upload the image in the way that the component declares. Return the task's path, "" if the BMC names none."""
        task = self._bmc.push_firmware(image, component.push, deadline_s=PUSH_TIMEOUT_S)
        return task.path if task else ""

    def restart(self, what: FirmwareReset) -> None:
        """Restart the BMC, or the host (one that is off is turned on), or cut the power of everything."""
        if what == "bmc":
            self._bmc.reset_bmc()
        elif what == "host":
            self._bmc.reset_system("ForceRestart" if self._bmc.read_power_state() == "On" else "On")
        else:
            offer = self._bmc.system().get("Actions", {}).get(SYSTEM_RESET, {})
            offered = offer.get("ResetType@Redfish.AllowableValues", [])
            cycles = (kind for kind in ("FullPowerCycle", "PowerCycle") if kind in offered)
            self._bmc.reset_system(next(cycles, "PowerCycle"))

    def _read_last_reset(self, reset: FirmwareReset) -> datetime:
        """Return the time of the last reset that the component needs, NEVER if the BMC does not say."""
        system = self._bmc.system()
        if reset != "bmc":
            return _parse_time(system.get("LastResetTime"))
        managers = system.get("Links", {}).get("ManagedBy", [])
        return _parse_time(self._bmc.get(managers[0]["@odata.id"]).get("LastResetTime") if managers else None)


def is_task_of_component(task: dict[str, Any], component: FirmwareComponent) -> bool:
    """Say whether a task's messages name the component or one of its inventory ids, among their arguments."""
    arguments = [message.get("MessageArgs") or [] for message in list_task_messages(task)]
    names = {str(argument) for some in arguments if isinstance(some, list) for argument in some}
    return bool(names & {component.name, *component.inventory})


def _parse_time(text: Any) -> datetime:
    """Return a time from a BMC, NEVER for one that is missing or cannot be read."""
    try:
        read = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return NEVER
    return read if read.tzinfo else read.replace(tzinfo=UTC)
