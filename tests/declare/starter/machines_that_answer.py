"""Machines that a fleet's own runner reaches as real ones: those of a lab, at the pace of the clock on the wall.

Their addresses stand in the repository's inventory, as a site writes them. So what the workflows call with
ASSAY_CONTEXT=fleet reads them over HTTPS and by `reach`, and no rehearsal is involved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from assay.declare.loader import load_fleet
from assay.lab.process_control import build_world, start_lab, stop_lab
from assay.lab.world import LabWorld

QUICK = {"power_on_s": 0, "boot_s": 1, "flash_s": 1, "bmc_reset_s": 1}
PACE = {"firmware_read_back_s": 1, "firmware_steady_s": 1}
"""What takes machines minutes takes these a second, and playbooks wait as long."""


@dataclass(frozen=True)
class Hall:
    """The machines. `hosts` has the variables that say how to reach each."""

    world: LabWorld
    hosts: dict[str, dict[str, Any]]

    def write_addresses(self, root: Path) -> None:
        """Let the inventory of a repository name these machines."""
        for path in sorted((root / "inventory").glob("*.yml")):
            schema, _, text = path.read_text().partition("\n")
            pools = yaml.safe_load(text)
            for pool in pools.values():
                pool["hosts"] = {name: own | self.hosts[name] for name, own in pool["hosts"].items()}
            dumped = yaml.dump(pools, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=None)
            path.write_text(f"{schema}\n{dumped}")


@contextmanager
def run_hall(folder: Path, fleet: Path) -> Iterator[Hall]:
    """Run the machines that a repository describes, as they are described now."""
    world = LabWorld(folder / "world")
    build_world(load_fleet(fleet), world, datetime.now(UTC), 1.0)
    for node in world.nodes():
        with world.change(node) as state:
            state["timing"] |= QUICK
    start_lab(world)
    try:
        hosts = yaml.safe_load((world.home / "inventory.yml").read_text())["all"]["hosts"]
        yield Hall(world, {name: _leave_out_scheduler(host) | PACE for name, host in hosts.items()})
    finally:
        stop_lab(world)


def _leave_out_scheduler(host: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of a machine without the lab's scheduler: the site's own runs its jobs."""
    return {name: value for name, value in host.items() if name not in ("workloads", "lab_scheduler")}
