"""`python -m bench.bmc_lab FOLDER COUNT` runs COUNT virtual BMCs of the lab in one process, until it is killed.

FOLDER/ports.json has the port of each, FOLDER/lab/ca.pem the CA certificate.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from assay.declare.loader import load_fleet
from assay.lab.bmc.server import VirtualBmcs
from assay.lab.node.virtual_node import make_initial_state
from assay.lab.world import LabWorld
from bench.programs import ROOT

USER, PASSWORD = "bench", "only-for-the-lab"


def make_world(folder: Path, count: int) -> LabWorld:
    """Make and return a world of healthy nodes, `b0000` and so on."""
    fleet, now = load_fleet(ROOT), datetime.now(UTC)
    declared = fleet.nodes["n0003"]
    world = LabWorld(folder / "lab")
    world.home.mkdir(parents=True, exist_ok=True)
    world.set_clock(now, 1)
    for number in range(count):
        node = replace(declared, name=f"b{number:04}")
        with world.change(node.name) as state:
            state.clear()
            state.update(make_initial_state(node, fleet.spec_of("n0003"), fleet.bundle_of("n0003"), now))
    return world


async def serve(folder: Path, count: int) -> None:
    """Run the BMCs until the process is killed."""
    bmcs = VirtualBmcs(make_world(folder, count), credentials=f"{USER}:{PASSWORD}")
    (folder / "ports.new").write_text(json.dumps(await bmcs.start()))
    (folder / "ports.new").rename(folder / "ports.json")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
