"""Firmware updates through one BMC, in Redfish terms: running versions, remembered updates, pushes and resets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.adapters.bmc.client import BmcClient, open_fleet_bmc
from assay.adapters.bmc.errors import BmcResourceMissing
from assay.adapters.bmc.firmware import list_task_messages, parse_task, read_firmware_inventory, read_task
from assay.adapters.bmc.systems import SYSTEM_RESET
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import ReadingTree, parse_reading
from assay.model.specs.firmware_bundle import FirmwareComponent, FirmwareReset


@frozen
class FirmwareUpdateStatus:
    """One update of a BMC: running, completed or failed, and whether the reset that it needs has come since.

    `lost`: the BMC named no task, or no longer knows it. Nobody says whether the image was written.
    """

    id: str
    running: bool
    completed: bool
    reset_since: bool = False
    message: str = ""
    lost: bool = False


PUSH_TIMEOUT_S = 600.0
NEVER = datetime.min.replace(tzinfo=UTC)


class FirmwareUpdater:
    """The updates of one BMC that we are logged in to. Every method may raise AssayError."""

    def __init__(self, bmc: BmcClient) -> None:
        self._bmc = bmc

    def read_versions(self) -> dict[str, str]:
        """Return version by inventory id. One that cannot be read is `(KIND: REASON)`, which equals no version."""
        return _format_readings(read_firmware_inventory(self._bmc).running)

    def read_pending_versions(self) -> dict[str, str]:
        """Return the version that waits for a reset by inventory id; empty if the BMC does not list such versions."""
        return _format_readings(read_firmware_inventory(self._bmc).pending)

    def read_bmc_restart(self) -> str | None:
        """Return the BMC's LastResetTime, "" if it does not say, None if that cannot be read."""
        with suppress(AssayError):
            return str(self._read_manager().get("LastResetTime") or "")
        return None

    def find_update(self, component: FirmwareComponent) -> FirmwareUpdateStatus | None:
        """Return the newest task that names the component or one of its inventory ids, None if there is none."""
        tasks: list[dict[str, Any]] = []
        with suppress(BmcResourceMissing):  # a BMC may have no tasks
            service = self._bmc.follow(self._bmc.root, "Tasks")
            tasks = self._bmc.members(self._bmc.follow(service, "Tasks", 1), may_go=True)
        ours = [task for task in tasks if is_task_of_component(task, component)]
        if not ours:
            return None
        newest = max(ours, key=lambda task: _parse_time(task.get("StartTime")))
        task = parse_task(newest)
        ended, reset_since = _parse_time(newest.get("EndTime")), False
        if ended > NEVER:
            resource = self._read_manager() if component.reset == "bmc" else self._bmc.system()
            reset_since = ended < _parse_time(resource.get("LastResetTime"))
        return FirmwareUpdateStatus(task.path, not task.is_over, task.is_success, reset_since, task.message)

    def read_update(self, ident: str) -> FirmwareUpdateStatus:
        """Return an update as it is now. An update that the BMC forgot, or never named (""), is lost."""
        if not ident:
            return FirmwareUpdateStatus("", running=False, completed=False, message="the BMC names no task", lost=True)
        task = read_task(self._bmc, ident)
        lost = task.state == "Gone"
        message = f"the BMC no longer knows the update {ident}" if lost else task.message
        return FirmwareUpdateStatus(
            ident, running=not task.is_over, completed=task.is_success, message=message, lost=lost
        )

    def push(self, component: FirmwareComponent, image: Path) -> str:
        """Upload the image in the way that the component declares. Return the task's path, "" if the BMC names none."""
        task = self._bmc.push_firmware(image, component.push, deadline_s=PUSH_TIMEOUT_S)
        return task.path if task else ""

    def restart(self, target: FirmwareReset) -> None:
        """Restart the BMC, or the host (one that is off is turned on), or cut the power of everything."""
        if target == "bmc":
            self._bmc.reset_bmc()
        elif target == "host":
            self._bmc.reset_system("ForceRestart" if self._bmc.read_power_state() == "On" else "On")
        else:
            offer = self._bmc.system().get("Actions", {}).get(SYSTEM_RESET, {})
            offered = offer.get("ResetType@Redfish.AllowableValues", [])
            cycles = (kind for kind in ("FullPowerCycle", "PowerCycle") if kind in offered)
            self._bmc.reset_system(next(cycles, "PowerCycle"))

    def _read_manager(self) -> Mapping[str, Any]:
        """Return the Manager resource of the BMC itself, {} if the system links to none."""
        managers = self._bmc.system().get("Links", {}).get("ManagedBy", [])
        return self._bmc.get(managers[0]["@odata.id"]) if managers else {}


BmcConnector = Callable[[], AbstractContextManager[FirmwareUpdater]]


def make_bmc_connector(node: Node, fleet: Fleet) -> BmcConnector:
    """Return what logs in to a node's BMC. Each call logs in anew: a BMC that restarts forgets its sessions."""

    @contextmanager
    def connect() -> Iterator[FirmwareUpdater]:
        with open_fleet_bmc(fleet, node) as bmc:
            yield FirmwareUpdater(bmc)

    return connect


def _format_readings(tree: ReadingTree) -> dict[str, str]:
    readings = {ident: parse_reading(leaf) for ident, leaf in tree.items()}
    return {
        ident: str(reading.value) if reading.kind == "value" else f"({reading.kind}: {reading.reason})"
        for ident, reading in readings.items()
        if reading is not None
    }


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
