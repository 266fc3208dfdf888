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
from assay.lab.process_control import prepare_lab, start_lab, stop_lab
from assay.lab.world import LabWorld


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
            path.write_text(f"{schema}\n{yaml.safe_dump(pools, sort_keys=False, default_flow_style=None)}")


@contextmanager
def run_hall(folder: Path, fleet: Path) -> Iterator[Hall]:
    """Run the machines that a repository describes, as they are described now."""
    world = LabWorld(folder / "world")
    prepare_lab(load_fleet(fleet), world, datetime.now(UTC), 1.0, None)
    start_lab(world)
    try:
        yield Hall(world, yaml.safe_load((world.home / "inventory.yml").read_text())["all"]["hosts"])
    finally:
        stop_lab(world)
