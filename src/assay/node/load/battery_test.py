"""One test of the battery: how its arrays are made, and what an engine needs for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.node.load.lane import Lane

Stage = Callable[[Lane, Any], Any]


@dataclass(frozen=True)
class BatteryTest:
    """One test. `compute` makes the arrays; each of `stages` then takes them from memory and gives others.

    `needs`: features that an engine may lack. `blocks`: so many arrays are held at the same time, each made with a key
    of its own. `spoils_itself`: the test puts the planted fault into a middle result, not into its arrays.
    """

    name: str
    compute: Callable[[Lane], Any]
    stages: tuple[Stage, ...] = ()
    needs: tuple[str, ...] = ()
    blocks: int = 1
    spoils_itself: bool = False

    def first_stage(self, lane: Lane) -> Any:
        """Return the arrays, with the planted fault."""
        made = self.compute(lane)
        return made if self.spoils_itself else lane.spoil(made)
