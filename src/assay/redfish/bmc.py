"""One node's BMC: what observing reads of it and what acting asks of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import ReadingTree
from assay.model.specs.firmware_bundle import FirmwarePush
from assay.redfish.bmc_readings import UtcClock, read_bmc_tree, read_utc_now
from assay.redfish.credentials import read_bmc_credentials
from assay.redfish.errors import BmcResourceMissing, BmcUnreachable
from assay.redfish.firmware_inventory import read_firmware_inventory
from assay.redfish.firmware_update import RedfishTask, parse_task, push_image
from assay.redfish.quirks import BmcQuirkSet
from assay.redfish.session import NO_QUIRKS, RedfishSession, Resource
from assay.redfish.tls_connection import read_bmc_trust

SYSTEM_RESET = "#ComputerSystem.Reset"
MANAGER_RESET = "#Manager.Reset"


class BmcClient(RedfishSession):
    """The BMC of one node. What is asked of it raises Trouble that names the node and the address."""

    _system_path = ""

    def read_channel(
        self, deadline_s: float = float("inf"), *, since: str = "", now: UtcClock = read_utc_now
    ) -> ReadingTree:
        """Return the tree of the channel `bmc`. Raises nothing: on the deadline, what is missing reads failed.

        `since` is the cursor of its event log as an earlier tree gave it, `now` our time, to which its clock is held.
        """
        with self.deadline(deadline_s), self.cached_reads():
            return read_bmc_tree(self, self.systems, since, now)

    def system(self) -> Resource:
        """Return the system that the node's operating system runs on, as it is now."""
        return self.get(self._system_path) if self._system_path else self.systems()[0]

    def systems(self) -> list[Resource]:
        """Return every system that the BMC shows, the one that the operating system runs on first."""
        found = self.members(self.follow(self.root, "Systems", 1))
        if not found:
            raise BmcResourceMissing("the BMC shows no system", where=self.where)
        system, *others = sorted(found, key=_host_system_rank, reverse=True)
        self._system_path = system["@odata.id"]
        self.identify(manufacturer=system.get("Manufacturer"), model=system.get("Model"))
        return [system, *others]

    def read_power_state(self) -> str:
        """Return the system's PowerState: On, Off, PoweringOn, PoweringOff or Paused."""
        return str(self.system().get("PowerState"))

    def read_running_firmware(self) -> ReadingTree:
        """Return inventory id → reading of the version that runs now."""
        return read_firmware_inventory(self).running

    def reset_system(self, reset_type: str) -> None:
        """Ask for a reset of the system. That it happened is seen only by reading the world again."""
        self._post_reset(self.system(), SYSTEM_RESET, reset_type)

    def reset_bmc(self, reset_type: str = "GracefulRestart") -> None:
        """Ask the BMC to restart itself; its sessions and running tasks may be gone afterwards."""
        managers = self.system().get("Links", {}).get("ManagedBy", [])
        if not managers:
            raise BmcResourceMissing("the system links to no Manager", where=self.where)
        self._post_reset(self.get(managers[0]["@odata.id"]), MANAGER_RESET, reset_type)

    def push_firmware(
        self, image: Path, how: FirmwarePush, targets: Sequence[str] = (), *, uri: str = "", deadline_s: float = 600.0
    ) -> RedfishTask | None:
        """Bring an image to the update service and return the task that writes it, None where the BMC names none.

        `how` is the component's wish; where the service does not offer it, the other way is taken. `targets`
        are inventory ids, none meaning what the image is made for. A simple update is fetched by the BMC from
        `uri`, or, where that is empty, from us over HTTP for as long as it takes.
        """
        with self.deadline(deadline_s):
            return push_image(self, image, how, targets, uri)

    def list_tasks(self) -> list[RedfishTask]:
        """Return every task that the BMC remembers."""
        service = self.follow(self.root, "Tasks")
        return [parse_task(task) for task in self.members(self.follow(service, "Tasks", 1))]

    def read_task(self, path: str) -> RedfishTask:
        """Return one task as it is now; its state is Gone where the BMC forgot it."""
        try:
            return parse_task(self.get(path))
        except BmcResourceMissing:
            return RedfishTask(path=path, state="Gone", message="the BMC no longer knows this task")

    def wait_for_task(
        self, task: RedfishTask, deadline_s: float, poll_s: float = 1.0, sleep: Callable[[float], None] = time.sleep
    ) -> RedfishTask:
        """Return the task when it is over. A BMC that is away for a while (it may restart) is waited for.

        Raises Trouble when the task is not over within `deadline_s` real seconds.
        """
        ends_at = time.monotonic() + deadline_s
        while not task.is_over:
            if time.monotonic() >= ends_at:
                raise AssayError(f"task {task.path} is still {task.state} after {deadline_s:g} s", where=self.where)
            sleep(poll_s)
            with contextlib.suppress(BmcUnreachable):
                task = self.read_task(task.path)
        return task

    def _post_reset(self, resource: Resource, action: str, reset_type: str) -> None:
        offer = resource.get("Actions", {}).get(action)
        if not offer or "target" not in offer:
            raise BmcResourceMissing(f"{resource['@odata.id']} offers no {action[1:]}", where=self.where)
        allowed = offer.get("ResetType@Redfish.AllowableValues") or self._allowed(offer)
        if allowed and reset_type not in allowed:
            raise AssayError(
                f"{action[1:]} does not know {reset_type}", where=self.where, fix=f"use one of {', '.join(allowed)}"
            )
        self.post(offer["target"], {"ResetType": reset_type})

    def _allowed(self, offer: Resource) -> list[str]:
        if "@Redfish.ActionInfo" not in offer:
            return []
        parameters: list[dict[str, Any]] = self.get(offer["@Redfish.ActionInfo"]).get("Parameters", [])
        values = [one.get("AllowableValues") for one in parameters if one.get("Name") == "ResetType"]
        return values[0] or [] if values else []


@contextlib.contextmanager
def open_bmc(
    node: Node, *, root: Path = Path(), deadline_s: float = float("inf"), quirks: BmcQuirkSet = NO_QUIRKS
) -> Iterator[BmcClient]:
    """Log in to the BMC of `node` and log out at the end; all in between is held to `deadline_s`.

    A BMC that is known (`quirks`) to be slow has that many times as long. Relative paths of the inventory (`bmc_ca`,
    `bmc_credentials`) start at `root`, the fleet repository.
    Raises Trouble: no address, no credentials, no trust, refused, silent.
    """
    if not node.bmc_address:
        raise BmcResourceMissing(f"no bmc_address is declared for {node.name}", where=node.name)
    bmc = BmcClient(node, read_bmc_credentials(node, root), read_bmc_trust(node, root), quirks)
    began = time.monotonic()

    def rest() -> contextlib.AbstractContextManager[None]:
        whole_s = deadline_s * bmc.dialect.slow
        return bmc.deadline(began + whole_s - time.monotonic(), of=whole_s)

    try:
        with bmc.deadline(deadline_s):
            bmc.login()
        with rest():
            yield bmc
    finally:
        with rest():
            bmc.logout()


def open_fleet_bmc(
    fleet: Fleet, node: Node, deadline_s: float = float("inf")
) -> contextlib.AbstractContextManager[BmcClient]:
    """Log in to the BMC of a node of the fleet, with the fleet's quirks; as `open_bmc`."""
    return open_bmc(node, root=fleet.root, deadline_s=deadline_s, quirks=BmcQuirkSet(fleet.quirks.values()))


def _host_system_rank(system: Resource) -> tuple[bool, bool]:
    """HGX boards show a second system, of the GPU baseboard, without a BIOS."""
    return "Bios" in system or "BiosVersion" in system, SYSTEM_RESET in system.get("Actions", {})
