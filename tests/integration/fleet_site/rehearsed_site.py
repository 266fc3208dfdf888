"""The site of a fleet: machines with a BMC and an sshd each, a webhook, and recorders of all programs on the path."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import trustme

from assay.lab.bmc import power_transitions
from assay.lab.faults.injection import inject_fault
from assay.lab.process_control import build_world
from assay.lab.world import LabWorld
from assay.model.fleet import Fleet
from tests.integration.fleet_site.bmc_recording import find_places, read_recording
from tests.integration.fleet_site.machines_over_ssh import SshCommand, SshMachines, SshPlace
from tests.integration.fleet_site.recorded_bmcs import RecordedBmc, SiteRequest, serve_bmc, write_authority
from tests.integration.fleet_site.recorder_programs import MARK, ProgramCall, RecorderPrograms
from tests.integration.fleet_site.site_webhook import serve_webhook
from tests.support.reserved_ports import reserve_ports

BMC_VARIABLE = "ASSAY_BMC"
PASSWORD = "rT9-kelvin-40"
WEBHOOK_ADDRESS = "127.0.0.1"  # assay sends to no other place without TLS
_CLOCK_PATCH = """\
import os
from datetime import timedelta
from pathlib import Path

if ahead := os.environ.get("SITE_AHEAD"):
    from assay.model.clock import SystemClock

    now = SystemClock.now
    SystemClock.now = lambda clock: now(clock) + timedelta(seconds=float(Path(ahead).read_text()))
"""


@dataclass
class Site:
    """A running site. Everything that it noted says by a mark which command caused it."""

    folder: Path
    world: LabWorld
    bmcs: dict[str, RecordedBmc]
    ssh: SshMachines
    programs: RecorderPrograms
    delivered: list[SiteRequest] = field(default_factory=list)

    def requests(self) -> list[SiteRequest]:
        """Return what reached BMCs and the webhook."""
        return [*(request for bmc in self.bmcs.values() for request in bmc.asked), *self.delivered]

    def commands(self) -> list[SshCommand]:
        """Return what reached the machines over SSH."""
        return self.ssh.commands()

    def calls(self) -> list[ProgramCall]:
        """Return the programs that assay called to reach machines."""
        return [call for call in self.programs.calls() if call.reaches_machines]

    def changes(self) -> list[SiteRequest | SshCommand | ProgramCall]:
        """Return what asked for a change of a machine."""
        seen: Sequence[SiteRequest | SshCommand | ProgramCall] = (
            *(request for request in self.requests() if request not in self.delivered),
            *self.commands(),
            *self.calls(),
        )
        return [part for part in seen if part.is_change]

    def caused_by(self, mark: str) -> list[SiteRequest | SshCommand | ProgramCall]:
        """Return all that the command with this mark caused, reading included."""
        return [part for part in (*self.requests(), *self.commands(), *self.calls()) if part.mark == mark]

    def environment(self, mark: str, **more: str) -> dict[str, str]:
        """Return the environment of a command: `mark` goes to each program and, as the login's user, to each BMC."""
        kept = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("ASSAY_", "PYTEST_", "GIT_")) and not name.lower().endswith("_proxy")
        }
        person = {
            f"GIT_{who}_{what}": "ann@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        own = {
            "PATH": self.programs.path,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.folder / "clock"), kept.get("PYTHONPATH", "")])),
            "SITE_AHEAD": str(self.ahead_file),
            MARK: mark,
            BMC_VARIABLE: f"{mark}:{PASSWORD}",
            "ASSAY_WHO": "ann",
            "COLUMNS": "160",
        }
        return {**kept, **person, **own, **more}

    def break_part(self, fault: str, machine: str, **arguments: object) -> None:
        """Let something break in a machine of the site, by the names that `assay lab inject` has."""
        inject_fault(self.world, fault, machine, arguments)

    @property
    def ahead_file(self) -> Path:
        """The file that says how many seconds the fleet's clock is ahead."""
        return self.folder / "ahead"

    def advance(self, hours: float) -> None:
        """Let the fleet's time go ahead: that of commands, of BMCs and of machines."""
        self.world.jump(timedelta(hours=hours))
        self.ahead_file.write_text(str(int(float(self.ahead_file.read_text()) + hours * 3600)))

    def now(self) -> datetime:
        """Return the fleet's time."""
        return datetime.now(UTC) + timedelta(seconds=float(self.ahead_file.read_text()))


@dataclass(frozen=True)
class SitePlaces:
    """Where the machines will listen: known before anything runs, so that an inventory can name it."""

    ca: Path
    bmcs: Mapping[str, tuple[str, int]]
    ssh: Mapping[str, SshPlace]
    webhook: tuple[str, int]

    @property
    def webhook_url(self) -> str:
        """Where the site takes tickets."""
        return f"http://{self.webhook[0]}:{self.webhook[1]}/assay"


def choose_places(folder: Path, machines: Sequence[str]) -> SitePlaces:
    """Choose a loopback address for each BMC and each sshd of a site in `folder`."""
    ports = reserve_ports(2 * len(machines) + 1)
    bmcs = {name: (f"127.0.20.{number}", ports.pop()) for number, name in enumerate(machines, 1)}
    ssh = {name: SshPlace(name, f"127.0.20.{100 + number}", ports.pop()) for number, name in enumerate(machines, 1)}
    return SitePlaces(folder / "ca.pem", bmcs, ssh, (WEBHOOK_ADDRESS, ports.pop()))


@contextmanager
def run_site(folder: Path, places: SitePlaces, fleet: Fleet) -> Iterator[Site]:
    """Run the site of the machines of `fleet` in `folder`, an empty one."""
    authority, world = trustme.CA(organization_name="Oslo data centre"), LabWorld(folder / "machines")
    write_authority(authority, places.ca)
    (folder / "ahead").write_text("0")
    (folder / "clock").mkdir()
    (folder / "clock" / "sitecustomize.py").write_text(_CLOCK_PATCH)
    build_world(fleet, world, datetime.now(UTC), 1.0)
    for name in places.bmcs:
        with world.change(name) as state:
            state["timing"] |= {"power_on_s": 0, "boot_s": 1}
    ssh = SshMachines(folder / "ssh", list(places.ssh.values()), folder / "ahead")
    site = Site(folder, world, {}, ssh, RecorderPrograms(folder / "programs", ssh.config))
    with ExitStack() as running:
        for name, (address, port) in places.bmcs.items():
            tree, restart = read_recording(find_places(world.load(name))), partial(_restart, world, name)
            bmc = RecordedBmc(name, tree, PASSWORD, site.now, port, restart)
            site.bmcs[name] = running.enter_context(serve_bmc(bmc, address, authority))
        running.enter_context(ssh.serve(world))
        running.enter_context(serve_webhook(places.webhook, site.delivered))
        yield site


def _restart(world: LabWorld, machine: str, reset_type: str) -> str:
    now = world.clock().now()
    with world.change(machine) as state:
        after = power_transitions.reset_node(dict(state), reset_type, now)  # type: ignore[arg-type]
        state.clear()
        state.update(after)
    return power_transitions.power_state(after, now)
