"""A simulated fabric with planted faults, in which pairs and groups of nodes run a collective. Every draw is seeded.

Units of 32 nodes, one rail, routing by destination. Each run is noisy (σ 1.5 %), and each node dips once in 10,000
runs. A slow part has 0.5 to 0.88 of its speed, a hung one never ends, a wrong one is wrong in 0.7 of its runs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from assay.validate.collectives.fabric_map import FabricMap, FabricNode, FabricPart
from assay.validate.collectives.results import PairResult

FaultKind = Literal["slow", "hung", "wrong"]
KINDS: tuple[FaultKind, ...] = ("slow", "hung", "wrong")
UNIT = 32
SLOWEST, LEAST_SLOW, WRONG_SHARE, DIP = 0.5, 0.88, 0.7, 0.8
LAUNCH_S, SETUP_S, NODE_S, MEASURE_S, HANG_S = 30, 5, 0.03, 15, 60
SLOW = 0.93
SPEED_GB_S = 40.0


@dataclass(frozen=True)
class PlantedFault:
    """One fault of a part. `factor` is the share of its speed that a slow part has."""

    part: FabricPart
    kind: FaultKind
    factor: float = 1.0


@dataclass
class SimulatedFabric:
    """A fabric of `size` nodes. `seconds` adds up what the runs would have taken."""

    size: int
    chance: random.Random
    noise: float = 0.015
    dips: float = 1e-4
    faults: dict[FabricPart, PlantedFault] = field(default_factory=dict)
    seconds: float = LAUNCH_S
    rounds: int = 0
    runs: int = 0

    def __post_init__(self) -> None:
        self.map = build_map(self.size)
        self.nodes = list(self.map.nodes)

    def plant(self, kind: FaultKind, part: FabricPart) -> None:
        """Plant a fault."""
        self.faults[part] = PlantedFault(part, kind, self.chance.uniform(SLOWEST, LEAST_SLOW))

    def plant_nodes(self, count: int, kinds: Sequence[FaultKind] = KINDS) -> None:
        """Plant faults of random kinds into different nodes."""
        for name in self.chance.sample(self.nodes, count):
            self.plant(self.chance.choice(kinds), FabricPart("node", name))

    def plant_uplinks(self, count: int) -> None:
        """Make different uplinks slow."""
        every = [name for names in self.map.uplinks.values() for name in names]
        for name in self.chance.sample(every, count):
            self.plant("slow", FabricPart("uplink", name))

    def run_round(self, name: str, pairs: Iterable[tuple[str, str]]) -> list[PairResult]:
        """Run pairs at the same time."""
        results = [self._run_pair(name, pair) for pair in pairs]
        self.end_round(2, any(result.ended == "deadline" for result in results))
        return results

    def run_groups(self, groups: Iterable[Sequence[str]], is_new_job: bool = True) -> list[bool]:
        """Run one ring in each group at the same time; return which of them were good. A ring crosses few uplinks."""
        endings = [self._run(group, self._ring_uplinks(group)) for group in groups]
        self.end_round(max(map(len, groups), default=0), any(ending == "deadline" for ending, *_ in endings))
        self.seconds += LAUNCH_S if is_new_job and self.rounds > 1 else 0
        return [ending == "ok" and not wrong and speed >= SLOW for ending, wrong, speed in endings]

    def end_round(self, nodes: int, is_hung: bool) -> None:
        """Add what one round takes."""
        self.rounds += 1
        self.seconds += HANG_S if is_hung else SETUP_S + NODE_S * nodes + MEASURE_S

    def _run_pair(self, name: str, pair: tuple[str, str]) -> PairResult:
        uplinks = self.map.list_uplinks_between(*pair, 0)
        ending, wrong, speed = self._run(pair, uplinks)
        if ending != "ok":
            return PairResult(name, pair, ending)
        return PairResult(name, pair, "ok", gb_s=SPEED_GB_S * speed, wrong=wrong)

    def _run(self, names: Sequence[str], uplinks: Sequence[FabricPart]) -> tuple[str, int, float]:
        """Return how a run ended, the wrong results, and the speed as a share of the usual one."""
        self.runs += 1
        used = [self.faults.get(part) for part in (*(FabricPart("node", name) for name in names), *uplinks)]
        faults = [fault for fault in used if fault]
        if any(fault.kind == "hung" for fault in faults):
            return "deadline", 0, 0.0
        wrong = sum(fault.kind == "wrong" and self.chance.random() < WRONG_SHARE for fault in faults)
        slowest = min((fault.factor for fault in faults if fault.kind == "slow"), default=1.0)
        dips = self.chance.random() < 1 - (1 - self.dips) ** len(names)
        return "ok", 7 * wrong, slowest * self.chance.gauss(1, self.noise) * (DIP if dips else 1)

    def _ring_uplinks(self, group: Sequence[str]) -> list[FabricPart]:
        if not self.faults or all(part.kind == "node" for part in self.faults):
            return []
        hops = zip(group, [*group[1:], group[0]], strict=True)
        return [part for a, b in hops if a != b for part in self.map.list_uplinks_between(a, b, 0)[:1]]


_MAPS: dict[int, FabricMap] = {}


def build_map(size: int) -> FabricMap:
    """Return a fabric of full units."""
    if size not in _MAPS:
        nodes = (FabricNode(f"n{at:04}", (f"leaf-{at // UNIT:02}",), (at % UNIT,)) for at in range(size))
        leaves = [f"leaf-{unit:02}" for unit in range(-(-size // UNIT))]
        uplinks = {leaf: [f"{leaf}[{UNIT + 1 + port}]" for port in range(UNIT)] for leaf in leaves}
        _MAPS[size] = FabricMap({node.name: node for node in nodes}, uplinks)
    return _MAPS[size]
