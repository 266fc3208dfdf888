"""One node's BMC: what observing reads of it and what acting asks of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from assay.model.errors import Trouble
from assay.model.firmware import Push
from assay.model.fleet import Fleet, Node
from assay.observe.bmc_firmware import read_firmware
from assay.observe.bmc_leaves import Tree
from assay.observe.bmc_tree import Now, our_time, read_tree
from assay.observe.credentials import credentials_of
from assay.observe.quirks import Quirks
from assay.observe.refusal import NoAnswer, NotThere
from assay.observe.session import NO_QUIRKS, Resource, Session
from assay.observe.task import Task, as_task
from assay.observe.trust import trust_of
from assay.observe.update import push_image

RESET = "#ComputerSystem.Reset"
MANAGER_RESET = "#Manager.Reset"


class Bmc(Session):
    """The BMC of one node. What is asked of it raises Trouble that names the node and the address."""

    _system_path = ""

    def read(self, deadline_s: float = float("inf"), *, since: str = "", now: Now = our_time) -> Tree:
        """Return the tree of the channel `bmc`. Raises nothing: on the deadline, what is missing reads failed.

        `since` is the cursor of its event log as an earlier tree gave it, `now` our time, to which its clock is held.
        """
        with self.within(deadline_s), self.one_look():
            return read_tree(self, self.systems, since, now)

    def system(self) -> Resource:
        """Return the system that the node's operating system runs on, as it is now."""
        return self.get(self._system_path) if self._system_path else self.systems()[0]

    def systems(self) -> list[Resource]:
        """Return every system that the BMC shows, the one that the operating system runs on first."""
        found = self.members(self.follow(self.root, "Systems", 1))
        if not found:
            raise NotThere("the BMC shows no system", where=self.where)
        system, *others = sorted(found, key=_looks_like_the_host, reverse=True)
        self._system_path = system["@odata.id"]
        self.learn(manufacturer=system.get("Manufacturer"), model=system.get("Model"))
        return [system, *others]

    def power(self) -> str:
        """Return the system's PowerState: On, Off, PoweringOn, PoweringOff or Paused."""
        return str(self.system().get("PowerState"))

    def firmware(self) -> Tree:
        """Return inventory id → reading of the version that runs now."""
        return read_firmware(self).runs

    def reset(self, reset_type: str) -> None:
        """Ask for a reset of the system. That it happened is seen only by reading the world again."""
        self._act(self.system(), RESET, reset_type)

    def reset_bmc(self, reset_type: str = "GracefulRestart") -> None:
        """Ask the BMC to restart itself; its sessions and running tasks may be gone afterwards."""
        managers = self.system().get("Links", {}).get("ManagedBy", [])
        if not managers:
            raise NotThere("the system links to no Manager", where=self.where)
        self._act(self.get(managers[0]["@odata.id"]), MANAGER_RESET, reset_type)

    def push(
        self, image: Path, how: Push, targets: Sequence[str] = (), *, uri: str = "", deadline_s: float = 600.0
    ) -> Task | None:
        """Bring an image to the update service and return the task that writes it, None where the BMC names none.

        `how` is the component's wish; where the service does not offer it, the other way is taken. `targets`
        are inventory ids, none meaning what the image is made for. A simple update is fetched by the BMC from
        `uri`, or, where that is empty, from us over HTTP for as long as it takes.
        """
        with self.within(deadline_s):
            return push_image(self, image, how, targets, uri)

    def tasks(self) -> list[Task]:
        """Return every task that the BMC remembers."""
        service = self.follow(self.root, "Tasks")
        return [as_task(task) for task in self.members(self.follow(service, "Tasks", 1))]

    def task(self, path: str) -> Task:
        """Return one task as it is now; its state is Gone where the BMC forgot it."""
        try:
            return as_task(self.get(path))
        except NotThere:
            return Task(path=path, state="Gone", message="the BMC no longer knows this task")

    def wait(
        self, task: Task, deadline_s: float, poll_s: float = 1.0, sleep: Callable[[float], None] = time.sleep
    ) -> Task:
        """Return the task when it is over. A BMC that is away for a while (it may restart) is waited for.

        Raises Trouble when the task is not over within `deadline_s` real seconds.
        """
        ends_at = time.monotonic() + deadline_s
        while not task.over:
            if time.monotonic() >= ends_at:
                raise Trouble(f"task {task.path} is still {task.state} after {deadline_s:g} s", where=self.where)
            sleep(poll_s)
            with contextlib.suppress(NoAnswer):
                task = self.task(task.path)
        return task

    def _act(self, resource: Resource, action: str, reset_type: str) -> None:
        offer = resource.get("Actions", {}).get(action)
        if not offer or "target" not in offer:
            raise NotThere(f"{resource['@odata.id']} offers no {action[1:]}", where=self.where)
        allowed = offer.get("ResetType@Redfish.AllowableValues") or self._allowed(offer)
        if allowed and reset_type not in allowed:
            raise Trouble(
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
    node: Node, *, root: Path = Path(), deadline_s: float = float("inf"), quirks: Quirks = NO_QUIRKS
) -> Iterator[Bmc]:
    """Log in to the BMC of `node` and log out at the end; all in between is held to `deadline_s`.

    A BMC that is known (`quirks`) to be slow has that many times as long. Relative paths of the inventory (`bmc_ca`,
    `bmc_credentials`) start at `root`, the fleet repository.
    Raises Trouble: no address, no credentials, no trust, refused, silent.
    """
    if not node.variables.get("bmc_address"):
        raise NotThere(f"no bmc_address is declared for {node.name}", where=node.name)
    bmc = Bmc(node, credentials_of(node, root), trust_of(node, root), quirks)
    began = time.monotonic()

    def rest() -> contextlib.AbstractContextManager[None]:
        whole_s = deadline_s * bmc.ways.slow
        return bmc.within(began + whole_s - time.monotonic(), of=whole_s)

    try:
        with bmc.within(deadline_s):
            bmc.login()
        with rest():
            yield bmc
    finally:
        with rest():
            bmc.logout()


def bmc_of(fleet: Fleet, node: Node, deadline_s: float = float("inf")) -> contextlib.AbstractContextManager[Bmc]:
    """Log in to the BMC of a node of the fleet, with the fleet's quirks; as `open_bmc`."""
    return open_bmc(node, root=fleet.root, deadline_s=deadline_s, quirks=Quirks(fleet.quirks.values()))


def _looks_like_the_host(system: Resource) -> tuple[bool, bool]:
    """HGX boards show a second system, of the GPU baseboard, without a BIOS."""
    return "Bios" in system or "BiosVersion" in system, RESET in system.get("Actions", {})
