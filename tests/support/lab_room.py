"""This fleet repository with a lab that is up: real BMCs over HTTPS, real probes, a real scheduler, real playbooks."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import requests

from assay.act.actions.action import ActionContext, EffectIntent
from assay.adapters.bmc.client import open_fleet_bmc
from assay.declare.home import choose_context
from assay.declare.loader import load_fleet
from assay.lab.node.stub import build_stub
from assay.lab.process_control import build_world, start_lab, stop_lab
from assay.lab.scheduler import LabScheduler
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.observe.evidence_store import EvidenceStore
from tests.support.forked_assay import lend_spawner
from tests.support.places import ROOT

START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)
RATE = 600.0


@dataclass
class Room:
    """The repository at `root`, its lab, and a context for actions; `told` is the progress that they showed."""

    root: Path
    world: LabWorld
    fleet: Fleet
    told: list[str] = field(default_factory=list)

    def context(self) -> ActionContext:
        home = self.root / ".assay-lab"
        return ActionContext(
            self.fleet,
            Ledger.open(home / "ledger.sqlite", context="lab"),
            EvidenceStore(home / "evidence"),
            self.world.clock(),
            home,
            self.root / "reports",
            progress=self.told.append,
        )

    def scheduler(self, node: str) -> LabScheduler:
        return LabScheduler(self.fleet.nodes[node].settings)

    def state(self, node: str) -> dict[str, Any]:
        return self.world.load(node)

    def change(self, node: str, edit: Callable[[dict[str, Any]], None]) -> None:
        with self.world.change(node) as state:
            edit(state)

    def fresh(self, node: str, **firmware: str) -> None:
        """Make a node as new, with some firmware at other versions."""
        from assay.lab.node.virtual_node import make_initial_state

        now = self.world.clock().now()
        new = make_initial_state(self.fleet.nodes[node], self.fleet.spec_of(node), self.fleet.bundle_of(node), now)
        with self.world.change(node) as state:
            state.clear()
            state.update(new)
            state["firmware"] |= firmware

    @contextmanager
    def shut_out(self, node: str) -> Iterator[None]:
        """Let another administrator of a node's BMC disable our account while the block lasts."""
        with open_fleet_bmc(self.fleet, self.fleet.nodes[node]) as bmc:
            accounts = bmc.follow(bmc.follow(bmc.root, "AccountService"), "Accounts")["@odata.id"]
            bmc.request(
                "post", accounts, body={"UserName": "chief", "Password": "of-the-site", "RoleId": "Administrator"}
            )
            ours = f"https://{bmc.address}{accounts}/1"
        self._chief_says(ours, enabled=False)
        try:
            yield
        finally:
            self._chief_says(ours, enabled=True)

    def _chief_says(self, account: str, *, enabled: bool) -> None:
        ca, chief = str(self.world.home / "ca.pem"), ("chief", "of-the-site")
        answer = requests.patch(account, json={"Enabled": enabled}, auth=chief, verify=ca, timeout=60)
        assert answer.ok, answer.text

    def flashes(self, node: str) -> list[str]:
        return [flash["component"] for flash in self.state(node)["flashes"]]


def wish(action: str, node: str, **more: Any) -> EffectIntent:
    """Return an intent of a decision that never was."""
    return EffectIntent(f"{action}-{node}", action, node, "d1", "a test wants it", **more)


def lay_out(root: Path) -> None:
    """Copy this repository's fleet to `root`."""
    for folder in ("inventory", "specs", "playbooks"):
        shutil.copytree(ROOT / folder, root / folder)
    shutil.copy(ROOT / "ansible.cfg", root)


@contextmanager
def lab_room(root: Path, rate: float = RATE, lay_out: Callable[[Path], None] = lay_out) -> Iterator[Room]:
    """Lay out a fleet at `root` and keep its lab up while the block lasts."""
    lay_out(root)
    choose_context(root, "lab")
    world = LabWorld(root / ".assay-lab" / "world")
    build_world(load_fleet(root), world, START, rate)
    build_stub(world.home / "lib")  # both take seconds on a busy machine, and the first reading has ten
    lend_spawner()
    start_lab(world)
    try:
        yield Room(root, world, load_fleet(root, [world.home / "inventory.yml"]))
    finally:
        stop_lab(world)
