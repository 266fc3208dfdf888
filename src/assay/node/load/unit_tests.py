"""One test of the battery: how its arrays are made, what an engine needs for it, and how large its units are.

Sizes are small for a CPU and for tests of the battery, full for a GPU.
"""

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
    `keyed_as`: tests with the same one have the same inputs, and so the same right digest.
    """

    name: str
    compute: Callable[[Lane], Any]
    stages: tuple[Stage, ...] = ()
    needs: tuple[str, ...] = ()
    blocks: int = 1
    spoils_itself: bool = False
    keyed_as: str = ""

    def first_stage(self, lane: Lane) -> Any:
        """Return the arrays, with the planted fault."""
        made = self.compute(lane)
        return made if self.spoils_itself else lane.spoil(made)


@dataclass(frozen=True)
class BatterySizes:
    """Edges of matrices, lengths of vectors, blocks of memory (each 4 bytes × `block`), and the training step.

    `piece`: words that go from one device to another.
    """

    name: str
    edge: int
    edge_float64: int
    odd: int
    vector: int
    bins: int
    rows: int
    columns: int
    piece: int
    block: int
    blocks: int
    vocabulary: int
    width: int
    layers: int
    tokens: int
    batch: int
    steps: int


SMALL = BatterySizes(
    name="small",
    edge=48,
    edge_float64=32,
    odd=33,
    vector=2048,
    bins=64,
    rows=16,
    columns=65,
    piece=1024,
    block=4096,
    blocks=2,
    vocabulary=32,
    width=16,
    layers=2,
    tokens=8,
    batch=2,
    steps=4,
)
FULL = BatterySizes(
    name="full",
    edge=8192,
    edge_float64=4096,
    odd=4095,
    vector=1 << 24,
    bins=4096,
    rows=4096,
    columns=4097,
    piece=1 << 22,
    block=1 << 28,
    blocks=4,
    vocabulary=4096,
    width=1024,
    layers=4,
    tokens=512,
    batch=8,
    steps=4,
)
SIZES = {sizes.name: sizes for sizes in (SMALL, FULL)}
