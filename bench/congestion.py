"""Searches on a fabric with other traffic: nobody may be named for it. Beside assay: halving, and random pairs.

The worlds know nothing of the search: they have racks with a switch each, ways through the fabric, and other traffic.
The search gets a map of the cables, and the results of the runs that it asks for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.validate.collectives.fabric_map import FabricMap, FabricNode
from assay.validate.collectives.report import CollectivesReport, build_staged_report
from assay.validate.collectives.results import GroupResult, PairResult
from assay.validate.collectives.rounds import PairRound
from assay.validate.collectives.search import SearchResults, StagedSearch, StageSettings
from bench.measurement import Measurement

RACK = 16
SPREAD, JITTER = 0.008, 0.012
"""How much sound nodes differ, and runs of the same nodes."""
LIMIT = 0.93
"""The methods beside assay know the usual speed, and call slow what is below this share of it."""
SIZES = (64, 512, 2048)
SEARCHES = {64: 200, 512: 60, 2048: 20}
MOST_FALSE = {"busy switch": 0.3}
"""The most parts named falsely in a search: one in twenty searches, but for traffic that stays in one place."""
LEAST_FOUND = {"busy switch": 90, "1 slow uplink": 85}
"""In per cent: fewer pairs cross one uplink than use one node."""


class Traffic:
    """Other traffic, in which one run of twenty is 5 to 40 % slower. `kind`: where and when these runs are.

    `scattered`: anywhere. `storms`: in one round of four, one run of five. `busy switch`: in one rack of eight, up to
    half of the runs that touch it, for the whole search. `none`: nowhere.
    """

    def __init__(self, kind: str, racks: int, chance: random.Random) -> None:
        self.kind = kind
        self._chance = chance
        self._storms: dict[str, bool] = {}
        self._busy = set(chance.sample(range(racks), max(1, racks // 8)))

    def slow_down(self, moment: str, racks: set[int]) -> float:
        """Return the share of its speed that is left to a run."""
        return self._chance.uniform(0.6, 0.95) if self._chance.random() < self._find_share(moment, racks) else 1.0

    def _find_share(self, moment: str, racks: set[int]) -> float:
        if self.kind == "storms":
            return 0.2 * self._storms.setdefault(moment, self._chance.random() < 0.25)
        if self.kind == "busy switch":
            return 0.3 * bool(racks & self._busy)
        return 0.05 if self.kind == "scattered" else 0.0


@dataclass
class World:
    """Nodes in racks of 16, each rack with one uplink for each place, and what is wrong there.

    `faults`: by the name of a node or cable, the share of its speed that is left; 0 hangs.
    """

    size: int
    traffic: str
    chance: random.Random
    faults: dict[str, float] = field(default_factory=dict)
    rounds: int = 0

    def __post_init__(self) -> None:
        self.nodes = [f"gpu-{at // RACK:03}-{at % RACK:02}" for at in range(self.size)]
        self._speeds = {name: self.chance.gauss(1, SPREAD) for name in self.nodes}
        self._traffic = Traffic(self.traffic, self.size // RACK, self.chance)

    def run(self, moment: str, names: Sequence[str]) -> float:
        """Return the GB/s of a run of these nodes, 0 if it hung."""
        racks = {int(name[4:7]) for name in names}
        cables = {
            f"tor-{sender[4:7]}/up{receiver[8:]}"
            for sender, receiver in zip(names, [*names[1:], names[0]], strict=True)
            if sender[4:7] != receiver[4:7]
        }
        left = min(self.faults.get(part, 1.0) for part in (*names, *cables))
        slowest = min(self._speeds[name] for name in names)
        return 360 * left * slowest * self.chance.gauss(1, JITTER) * self._traffic.slow_down(moment, racks)

    def run_groups(self, groups: Sequence[Sequence[str]]) -> list[bool]:
        """Run groups at the same time; return which were as fast as usual."""
        self.rounds += 1
        return [self.run(str(self.rounds), group) >= LIMIT * 360 for group in groups]

    def draw_uplink(self) -> str:
        """Return the name of some uplink."""
        return f"tor-{self.chance.randrange(self.size // RACK):03}/up{self.chance.randrange(RACK):02}"

    def draw_cables(self) -> FabricMap:
        """Return the cables, as a design declares them."""
        nodes = {name: FabricNode(name, (f"tor-{name[4:7]}",), (int(name[8:]),)) for name in self.nodes}
        switches = sorted({node.leaves[0] for node in nodes.values()})
        return FabricMap(nodes, {switch: [f"{switch}/up{port:02}" for port in range(RACK)] for switch in switches})


def search_by_assay(world: World) -> set[str]:
    """Whom the report names."""
    return {named.part.name for named in report_on(world).named}


def report_on(world: World) -> CollectivesReport:
    """Return the report of a search: each node alone, pairs, all together."""
    search = StagedSearch(
        world.draw_cables(), world.nodes, world.chance.randrange(2**32), stages=StageSettings(True, "last")
    )
    pairs: list[PairResult] = []
    groups: list[GroupResult] = []
    ended: set[str] = set()
    while planned := search.find_next_round(SearchResults(pairs, groups), ended):
        name = planned.name
        for group in planned.pairs if isinstance(planned, PairRound) else planned.groups:
            speed = world.run(name, group)
            ending, figures = ("ok", {"gb_s": speed, "wrong": 0}) if speed else ("deadline", {})
            if isinstance(planned, PairRound):
                pairs.append(PairResult(name, (group[0], group[1]), ending, **figures))
            else:
                groups.append(GroupResult(name, tuple(group), ending, **figures))
        ended.add(name)
    world.rounds = len(ended)
    return build_staged_report(search, SearchResults(pairs, groups))


def search_by_halves(world: World) -> set[str]:
    """All nodes, the halves of what was slow, and so on: a node is named that is slow beside one from a good half."""
    suspect, good = [list(world.nodes)], list(world.nodes[:0])
    while any(len(group) > 1 for group in suspect):
        groups = [group[at::2] for group in suspect for at in (0, 1) if group[at::2]] if world.rounds else suspect
        tested = [group if len(group) > 1 or not good else [group[0], good[-1]] for group in groups]
        outcomes = world.run_groups(tested)
        good += [name for group, is_good in zip(groups, outcomes, strict=True) if is_good for name in group]
        suspect = [group for group, is_good in zip(groups, outcomes, strict=True) if not is_good]
    return {group[0] for group in suspect}


def search_by_random_pairs(world: World) -> set[str]:
    """Three rounds of random pairs; who was slow twice runs again, with a node that never was."""
    slow: Counter[str] = Counter()
    for _ in range(3):
        row = world.chance.sample(world.nodes, world.size)
        pairs = list(zip(row[::2], row[1::2], strict=True))
        for pair, is_good in zip(pairs, world.run_groups(pairs), strict=True):
            slow.update(() if is_good else pair)
    suspects = [name for name, count in slow.items() if count > 1]
    partners = [name for name in world.nodes if not slow[name]]
    again = list(zip(suspects, partners, strict=False))
    return {pair[0] for pair, is_good in zip(again, world.run_groups(again), strict=True) if not is_good}


METHODS: dict[str, Callable[[World], set[str]]] = {
    "assay": search_by_assay,
    "halving": search_by_halves,
    "random pairs": search_by_random_pairs,
}
FAULTS: dict[str, Callable[[World], dict[str, float]]] = {
    "nothing wrong": lambda _: {},
    "1 slow": lambda world: {world.chance.choice(world.nodes): world.chance.uniform(0.5, 0.85)},
    "1 hung": lambda world: {world.chance.choice(world.nodes): 0.0},
    "3 slow": lambda world: {name: world.chance.uniform(0.5, 0.85) for name in world.chance.sample(world.nodes, 3)},
    "1 slow uplink": lambda world: {world.draw_uplink(): world.chance.uniform(0.5, 0.85)},
}


@dataclass
class Totals:
    """What many searches planted, found and named falsely, and their rounds."""

    planted: int = 0
    found: int = 0
    falsely: int = 0
    rounds: int = 0
    searches: int = 0

    @property
    def figures(self) -> dict[str, float]:
        """By their names, of one search on average; `found` of all that was planted."""
        count = max(self.searches, 1)
        found = 100 * self.found / self.planted if self.planted else 100.0
        return {"found_percent": found, "falsely_named": self.falsely / count, "rounds": self.rounds / count}


def simulate(method: str, size: int, traffic: str, fault: str, searches: int) -> Totals:
    """Return the totals of searches. The same seeds make the same worlds for each method."""
    totals = Totals(searches=searches)
    for seed in range(searches):
        world = World(size, traffic, random.Random(f"{size} {traffic} {fault} {seed}"))  # noqa: S311 — a simulation
        world.faults.update(FAULTS[fault](world))
        named = METHODS[method](world)
        totals.planted += len(world.faults)
        totals.found += len(named & world.faults.keys())
        totals.falsely += len(named - world.faults.keys())
        totals.rounds += world.rounds
    return totals


def measurements(folder: Path) -> Iterator[Measurement]:
    """Yield who is named falsely and who is found, by size, traffic and fault, with what the other methods do."""
    del folder
    for size in SIZES:
        for traffic in ("none", "scattered", "storms", "busy switch"):
            for fault in FAULTS:
                own, *others = (simulate(name, size, traffic, fault, SEARCHES[size]).figures for name in METHODS)
                figures = {
                    f"{name}: {key}": figure
                    for name, theirs in zip(list(METHODS)[1:], others, strict=True)
                    for key, figure in theirs.items()
                }
                what = f"congestion, {size} nodes, traffic: {traffic}, {fault}"
                falsely, most = own["falsely_named"], MOST_FALSE.get(traffic, 0.05)
                yield Measurement(f"{what}: falsely named a search", falsely, "parts", "at most", most, figures)
                least = min(LEAST_FOUND.get(traffic, 97), LEAST_FOUND.get(fault, 97))
                yield Measurement(f"{what}: found", own["found_percent"], "%", "at least", least, own)
