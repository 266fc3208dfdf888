"""The client of one node's BMC: it reads the channel `bmc` and firmware tasks, resets, pushes firmware, orders a start.

A BMC can let its machine start from the network once, tell how far the start is, and give the machine a text that only
this BMC shows it.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.adapters.bmc.errors import BmcLoginRefused, BmcPasswordChangeRequired, BmcResourceMissing
from assay.adapters.bmc.firmware import RedfishTask, push_image
from assay.adapters.bmc.logs import NEVER_READ, LogsBefore
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.adapters.bmc.readings import UtcClock, find_manager, read_bmc_tree, read_utc_now
from assay.adapters.bmc.resource import patch_resource, replace_expired_password
from assay.adapters.bmc.session import (
    NO_QUIRKS,
    BmcSessionPool,
    RedfishSession,
    Resource,
    UserPassword,
    read_bmc_credentials,
)
from assay.adapters.bmc.systems import SYSTEM_RESET, choose_systems, has_serial
from assay.adapters.bmc.tls import read_bmc_trust
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import ReadingTree
from assay.model.specs.firmware_bundle import FirmwarePush

MANAGER_RESET = "#Manager.Reset"
RENEWAL_S = 60.0
CONSOLE_LOG = "HostLogger"
"""OpenBMC's log of the serial console, an entry for each line.

Source: openbmc/bmcweb, redfish-core/lib/systems_logservices_hostlogger.hpp.
"""
READ_LINES = 20
CONSOLE_LINES = 3
"""So many of the lines that were read, those that are not empty, are shown."""
MOST_CHARACTERS = 160
_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ENABLED = "BootSourceOverrideEnabled"
TARGET = "BootSourceOverrideTarget"


class BmcClient(RedfishSession):
    """The BMC of one node. Its methods raise AssayError, whose `where` names the node and the address."""

    _system_path = ""

    def read_channel(
        self, deadline_s: float, *, before: LogsBefore = NEVER_READ, now: UtcClock = read_utc_now
    ) -> ReadingTree:
        """Return the tree of the channel `bmc`. Raises nothing: what is not read in time is a failed leaf.

        Each request may take `deadline_s`, times the quirk's factor; see `RequestTime.patience` for all of them.
        `before` is how far the event logs were read before. `now` gives our time, with which the BMC's is compared.
        """
        with self.parallel_reads(deadline_s * self.dialect.slow), self.cached_reads():
            return read_bmc_tree(self, self.systems, before, now)

    def system(self) -> Resource:
        """Read the system that the node's operating system runs on."""
        return self.get(self._system_path) if self._system_path else self.systems()[0]

    def systems(self) -> list[Resource]:
        """Read the systems of the node; the one that its operating system runs on comes first."""
        systems = self.members(self.follow(self.root, "Systems", 1))
        if not systems:
            raise BmcResourceMissing("the BMC shows no system", where=self.where)
        ours = choose_systems(systems, self.node, self.where)
        self._system_path = ours[0]["@odata.id"]
        idents = [str(system.get("Id")) for system in systems]
        self.neighbours = sorted({*idents} - {str(system.get("Id")) for system in ours})
        self.identify(manufacturer=ours[0].get("Manufacturer"), model=ours[0].get("Model"), system=idents)
        return ours

    def require_own_machine(self) -> None:
        """Raise AssayError unless a person named the system, or it shows the serial number of the node."""
        system = self.system()
        if not self.node.settings.bmc_system and not has_serial(system, self.node.serial):
            shown = system.get("SerialNumber") or "no serial number"
            problem = f"nothing was sent: the BMC's system shows {shown}, and {self.node.serial} is declared"
            fix = "look at the machine and correct the inventory; or declare bmc_system, the Id of its system"
            raise AssayError(problem, where=self.where, fix=fix)

    def read_power_state(self) -> str:
        """Return the system's PowerState: On, Off, PoweringOn, PoweringOff or Paused."""
        return str(self.system().get("PowerState"))

    def reset_system(self, reset_type: str) -> None:
        """Request a reset of the system. Only a later read shows whether it happened."""
        self._post_reset(self.system(), SYSTEM_RESET, reset_type)

    def reset_bmc(self, reset_type: str = "GracefulRestart") -> None:
        """Request a restart of the BMC itself. Its sessions and running tasks may be gone afterwards."""
        self._post_reset(find_manager(self, self.system()), MANAGER_RESET, reset_type)

    def push_firmware(self, image: Path, how: FirmwarePush, deadline_s: float = 600.0) -> RedfishTask | None:
        """Push a firmware image; return the task that writes it, None where the BMC names none.

        `how` is the preferred method; where the service does not offer it, the other one is used. The BMC chooses by
        the image which parts it writes. For a simple update it fetches the image from a server in this process.
        """
        with self.time.deadline(deadline_s):
            self.require_own_machine()
            if self.neighbours:
                problem = f"nothing was sent: {', '.join(self.neighbours)} of other nodes would get the image too"
                raise AssayError(problem, where=self.where, fix="flash it by hand, with no job on any of them")
            return push_image(self, image, how)

    def _post_reset(self, resource: Resource, action: str, reset_type: str) -> None:
        offer = resource.get("Actions", {}).get(action)
        if not offer or "target" not in offer:
            raise BmcResourceMissing(f"{resource['@odata.id']} offers no {action[1:]}", where=self.where)
        allowed = offer.get("ResetType@Redfish.AllowableValues") or self._read_allowed_values(offer)
        if allowed and reset_type not in allowed:
            raise AssayError(
                f"{action[1:]} does not know {reset_type}", where=self.where, fix=f"use one of {', '.join(allowed)}"
            )
        self.post(offer["target"], {"ResetType": reset_type})

    def _read_allowed_values(self, offer: Resource) -> list[str]:
        if "@Redfish.ActionInfo" not in offer:
            return []
        parameters: list[dict[str, Any]] = self.get(offer["@Redfish.ActionInfo"]).get("Parameters", [])
        values = [entry.get("AllowableValues") for entry in parameters if entry.get("Name") == "ResetType"]
        return values[0] or [] if values else []


@contextlib.contextmanager
def open_bmc(
    node: Node,
    *,
    root: Path = Path(),
    deadline_s: float = float("inf"),
    whole_s: float | None = None,
    quirks: BmcQuirkSet = NO_QUIRKS,
    credentials: UserPassword | None = None,
    sessions: BmcSessionPool | None = None,
) -> Iterator[BmcClient]:
    """Log in to the BMC of `node`, each request of it within `deadline_s`, and log out at the end of the block.

    With `sessions`, a session that is kept there is used, and kept again at the end.

    All of it is bounded by `whole_s`, which is `deadline_s` by default. For a slow BMC, its quirk's factor lengthens
    both. Relative paths of the inventory (`bmc_ca`, `bmc_credentials`) start at `root`, the fleet repository. Without
    `credentials`, the node's are used.
    Raises AssayError where no address or credentials are declared, where the certificate is not trusted, and where the
    BMC refuses or does not answer.
    """
    if not node.bmc_address:
        raise BmcResourceMissing(f"no bmc_address is declared for {node.name}", where=node.name)
    credentials = credentials or read_bmc_credentials(node, root)
    trust = read_bmc_trust(node, root)
    key = (node.name, node.bmc_address, node.settings.bmc_port, credentials, trust)
    kept = sessions.take(key) if sessions else None
    bmc = kept if isinstance(kept, BmcClient) else BmcClient(node, credentials, trust, quirks)
    start = time.monotonic()

    def remaining_time() -> contextlib.AbstractContextManager[None]:
        limit_s = (whole_s or deadline_s) * bmc.dialect.slow
        return bmc.time.deadline(start + limit_s - time.monotonic(), of=limit_s)

    try:
        with remaining_time(), bmc.time.patience(deadline_s, at_once=1):
            bmc.resume(quirks) if bmc is kept else bmc.login()
        with remaining_time():
            yield bmc
    finally:
        if sessions is None or not sessions.keep(key, bmc):
            with remaining_time():
                bmc.logout()


def open_fleet_bmc(
    fleet: Fleet, node: Node, deadline_s: float = float("inf")
) -> contextlib.AbstractContextManager[BmcClient]:
    """Open the BMC of a node with the fleet's quirks and paths; see `open_bmc`."""
    return open_bmc(node, root=fleet.root, deadline_s=deadline_s, quirks=BmcQuirkSet(fleet.quirks.values()))


def accepts_login(fleet: Fleet, node: Node, user: str, password: str, deadline_s: float = float("inf")) -> bool:
    """Log in to a node's BMC once as a user, and say whether the BMC lets it. Raises AssayError without an answer."""
    quirks, login = BmcQuirkSet(fleet.quirks.values()), UserPassword(user, password)
    try:
        with open_bmc(node, root=fleet.root, deadline_s=deadline_s, quirks=quirks, credentials=login) as bmc:
            bmc.get("/redfish/v1/Systems")  # with basic authentication, only a request shows it
    except BmcLoginRefused:
        return False
    return True


def renew_expired_password(fleet: Fleet, node: Node, login: UserPassword, password: str) -> None:
    """Give an account a new password where the BMC wants one at its login; do nothing where it does not.

    Raises AssayError where the BMC does not take the password.
    """
    bmc = BmcClient(node, login, read_bmc_trust(node, fleet.root), BmcQuirkSet(fleet.quirks.values()))
    with bmc.time.deadline(RENEWAL_S):
        try:
            bmc.login()
        except BmcPasswordChangeRequired as error:
            replace_expired_password(bmc, error.account, password)
        finally:
            bmc.logout()


def order_next_boot(bmc: BmcClient, target: str) -> None:
    """Set the source of the next start alone, such as `Pxe`, and read it back.

    A BMC may keep it for all starts (sushy-emulator does): a node that assay starts boots from its image each time.
    Raises AssayError where the BMC does not offer it, refuses it, or shows something else afterwards.
    """
    system = bmc.system()
    allowed = _read_boot(system).get(f"{TARGET}@Redfish.AllowableValues") or [target]
    if target not in allowed:
        fix = "name another `boot_target` in the Provisioning, or update the BMC"
        raise AssayError(f"the BMC starts from {', '.join(allowed)}, and not from {target}", where=bmc.where, fix=fix)
    patch_resource(bmc, system["@odata.id"], {"Boot": {ENABLED: "Once", TARGET: target}})
    seen = _read_boot(bmc.system())
    if seen.get(ENABLED) not in ("Once", "Continuous") or seen.get(TARGET) != target:
        problem = f"asked to start from {target} once, the BMC shows {seen.get(TARGET)}, {seen.get(ENABLED)}"
        raise AssayError(problem, where=bmc.where, fix="update the BMC, or let the machine's boot order begin with PXE")


def write_asset_tag(bmc: BmcClient, text: str) -> None:
    """Set the asset tag, which the machine's own SMBIOS shows it at its next start, and read it back.

    Raises AssayError where the BMC has none that can be set.
    """
    patch_resource(bmc, bmc.system()["@odata.id"], {"AssetTag": text})
    if (bmc.system().get("AssetTag") or "") != text:
        raise AssayError("the BMC did not keep the asset tag", where=bmc.where)


def describe_boot_progress(bmc: BmcClient) -> str:
    """Return how far the machine's start is, for people: its power, its progress and its console, as far as shown."""
    system = bmc.system()
    progress = (system.get("BootProgress") or {}).get("LastState")
    progress_text = f"power {system.get('PowerState')}" + (f", {progress}" if progress and progress != "None" else "")
    try:
        lines = read_console_end(bmc, system)
    except AssayError as error:
        return f"{progress_text}; its console cannot be read: {error.what}"
    return f"{progress_text}; its console ends with: {' / '.join(lines)}" if lines else progress_text


def read_console_end(bmc: BmcClient, system: Resource) -> list[str]:
    """Return the last lines of the system's serial console that are not empty; none where the BMC keeps no such log."""
    services = bmc.members(bmc.follow(system, "LogServices", 1)) if "LogServices" in system else []
    log = next((service for service in services if service.get("Id") == CONSOLE_LOG and "Entries" in service), None)
    if log is None:
        return []
    path, query = log["Entries"]["@odata.id"], {"$top": str(READ_LINES)}
    if bmc.has_feature("TopSkipQuery"):
        count = int(bmc.get_with(path, {"$top": "1"}).get("Members@odata.count", 0))
        query["$skip"] = str(max(0, count - READ_LINES))
    entries = bmc.get_with(path, query).get("Members", [])
    lines = []
    for entry in entries:
        plain = _TERMINAL_CODE.sub("", str(entry.get("Message") or ""))
        lines.append("".join(char for char in plain if char.isprintable()).strip()[:MOST_CHARACTERS])
    return [line for line in lines if line][-CONSOLE_LINES:]


def _read_boot(system: Resource) -> Resource:
    boot: Resource = system.get("Boot") or {}
    return boot
