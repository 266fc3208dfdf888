"""Puts together everything that a decision may look at: inventory, history, outcomes, and who uses which node."""

from __future__ import annotations

from assay.controller.desk import Desk
from assay.controller.known.memory import Memory
from assay.lifecycle.situation import Situation


def situation_of(desk: Desk) -> Situation:
    """Return the fleet as it is known now, every node by name. Nodes that the inventory no longer has are left out."""
    return Memory(desk).situation(desk.fleet.nodes)
