"""The search for faulty nodes and links, against what others do, on simulated fabrics of 64, 512 and 2,048 nodes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from assay.validate.collectives.faulty_part_search import explain
from assay.validate.collectives.search import CollectiveSearch
from bench.collective_faults import KINDS, SimulatedFabric
from bench.collective_peers import PEERS, search_all_pairs
from bench.collective_stages import measure_gate, measure_rails, measure_scale_search
from bench.measurement import Measurement

SIZES = (64, 512, 2048)
SEARCHES = {64: 400, 512: 100, 2048: 20}
"""How many searches by size: enough for a share of 98 % to be no chance."""
Plant = Callable[[SimulatedFabric], None]
SearchMethod = Callable[[SimulatedFabric], set[str]]


@dataclass
class SearchTotals:
    """What many searches found, named falsely, and took."""

    searches: int = 0
    planted: int = 0
    found: int = 0
    falsely_named: int = 0
    rounds: int = 0
    runs: int = 0
    seconds: float = 0
    by_kind: dict[str, list[int]] = field(default_factory=dict)

    @property
    def found_percent(self) -> float:
        """Of all planted faults."""
        return 100 * self.found / max(self.planted, 1)

    @property
    def figures(self) -> dict[str, float]:
        """Everything by its name, for the report of a measurement."""
        count = max(self.searches, 1)
        return {
            "found_percent": self.found_percent,
            "falsely_named": self.falsely_named / count,
            "rounds": self.rounds / count,
            "minutes": self.seconds / count / 60,
            "runs": self.runs / count,
        }


def search_matchings(fabric: SimulatedFabric) -> set[str]:
    """Matchings, explanation, confirmation: assay's own. A part that has a rival is not named."""
    search = CollectiveSearch(fabric.map, fabric.nodes, fabric.chance.randrange(2**32))
    results, ended = [], set()
    while planned := search.find_next_round(results, ended):
        results += fabric.run_round(planned.name, planned.pairs)
        ended.add(planned.name)
    return {faulty.part.name for faulty in explain(search.observe(results)).faulty if not faulty.rivals}


def simulate(size: int, plant: Plant, method: SearchMethod, searches: int = 0, **world: float) -> SearchTotals:
    """Return the totals of searches with one method. The same seeds plant the same faults for each method."""
    totals = SearchTotals()
    for seed in range(searches or SEARCHES[size]):
        fabric = SimulatedFabric(size, random.Random(f"{size} {seed}"), **world)  # noqa: S311 — a simulation
        plant(fabric)
        named = method(fabric)
        planted = {part.name for part in fabric.faults}
        totals.searches += 1
        totals.planted += len(planted)
        totals.found += len(planted & named)
        totals.falsely_named += len(named - planted)
        totals.rounds += fabric.rounds
        totals.runs += fabric.runs
        totals.seconds += fabric.seconds
    return totals


def plant_one(kind: str) -> Plant:
    """Return what plants one fault: a slow, hung or wrong node, or a slow uplink."""
    if kind == "uplink":
        return lambda fabric: fabric.plant_uplinks(1)
    return lambda fabric: fabric.plant_nodes(1, [one for one in KINDS if one == kind])


def plant_mixed(fabric: SimulatedFabric) -> None:
    """Plant seven bad nodes and three slow uplinks."""
    fabric.plant_nodes(7)
    fabric.plant_uplinks(3)


def measurements(folder: Path) -> Iterator[Measurement]:
    """Yield what is found of three bad nodes, of three slow uplinks, and when nothing is wrong."""
    del folder
    for size in SIZES:
        at = f"collectives, {size} nodes"
        nodes = simulate(size, lambda fabric: fabric.plant_nodes(3), search_matchings)
        yield Measurement(f"{at}, 3 bad: found", nodes.found_percent, "%", "at least", 98, nodes.figures)
        yield _falsely(f"{at}, 3 bad", nodes, 0.06)
        yield Measurement(f"{at}, 3 bad: takes", nodes.figures["minutes"], "min", "at most", 6)
        uplinks = simulate(size, lambda fabric: fabric.plant_uplinks(3), search_matchings)
        yield Measurement(f"{at}, 3 slow uplinks: found", uplinks.found_percent, "%", "at least", 98, uplinks.figures)
        yield _falsely(f"{at}, 3 slow uplinks", uplinks, 0.06)
        healthy = simulate(size, lambda _: None, search_matchings)
        yield _falsely(f"{at}, nothing wrong", healthy, 0)
        yield Measurement(f"{at}, nothing wrong: takes", healthy.figures["minutes"], "min", "at most", 2.5)
        yield from _compare_peers(size, nodes, uplinks)
    yield from _single_faults()
    mixed = simulate(512, plant_mixed, search_matchings)
    yield Measurement("collectives, 10 mixed of 512: found", mixed.found_percent, "%", "at least", 96, mixed.figures)
    yield _falsely("collectives, 10 mixed of 512", mixed, 0.1)
    yield from measure_scale_search()
    yield from measure_rails()
    yield from measure_gate()


def _compare_peers(size: int, nodes: SearchTotals, uplinks: SearchTotals) -> Iterator[Measurement]:
    """Yield how much more is found than by each peer's method; all pairs would take hours: three searches do."""
    for name, method in PEERS.items():
        theirs = simulate(size, lambda fabric: fabric.plant_nodes(3), method)
        more = nodes.found_percent - theirs.found_percent
        what = f"collectives, {size} nodes, 3 bad: found more than by {name}"
        yield Measurement(what, more, "points", "at least", 5, theirs.figures)
        links = simulate(size, lambda fabric: fabric.plant_uplinks(3), method)
        what = f"collectives, {size} nodes, 3 slow uplinks: found more than by {name}"
        yield Measurement(what, uplinks.found_percent - links.found_percent, "points", "at least", 90, links.figures)
    searches = 3 if size < max(SIZES) else 1
    every = simulate(size, lambda fabric: fabric.plant_nodes(3), search_all_pairs, searches)
    faster = every.figures["minutes"] / nodes.figures["minutes"]
    what = f"collectives, {size} nodes, 3 bad: times as fast as all pairs"
    yield Measurement(what, faster, "×", "at least", 5, every.figures)


def _single_faults() -> Iterator[Measurement]:
    for kind, bound in (("slow", 99), ("hung", 99), ("wrong", 92), ("uplink", 99)):
        found = simulate(512, plant_one(kind), search_matchings)
        peers = {name: simulate(512, plant_one(kind), method).found_percent for name, method in PEERS.items()}
        what = f"collectives, 512 nodes, one {kind}: found"
        yield Measurement(what, found.found_percent, "%", "at least", bound, {**found.figures, **peers})


def _falsely(what: str, totals: SearchTotals, bound: float) -> Measurement:
    figure = totals.figures["falsely_named"]
    return Measurement(f"{what}: falsely named a search", figure, "parts", "at most", bound)
