"""Makes the virtual fleet of a declared one: a state and a root for every node, and the compressed clock."""

from __future__ import annotations

from datetime import datetime

from assay.fabric.design import plan
from assay.lab.fabric import lay
from assay.lab.node import initial_state
from assay.lab.world import World
from assay.model.fleet import Fleet

RATE = 60.0
"""Lab seconds in a real one: a two-minute boot takes two seconds."""


def build_world(fleet: Fleet, world: World, start: datetime, rate: float = RATE) -> None:
    """Write every node as its spec wants it, healthy and booted, at lab time `start`, and cable them as designed."""
    world.home.mkdir(parents=True, exist_ok=True)
    world.set_clock(start, rate)
    for node in fleet.nodes.values():
        fresh = initial_state(node, fleet.spec_of(node.name), fleet.bundle_of(node.name), start)
        with world.change(node.name) as state:
            state.clear()
            state.update(fresh)
    for design in fleet.designs.values():
        lay(world, plan(design, fleet))
