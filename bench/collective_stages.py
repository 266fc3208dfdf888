"""Simulations of the stages beside the pairs: blocks that fail only together, rails measured apart, and nodes alone."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from assay.validate.collectives.fabric_map import FabricMap, FabricNode, FabricPart, format_adapter
from assay.validate.collectives.faulty_part_search import explain
from assay.validate.collectives.judging import GroupRule, observe_alone
from assay.validate.collectives.results import GroupResult, Pair, PairResult
from assay.validate.collectives.search import (
    GATE_ROUNDS,
    VOTES,
    CollectiveSearch,
    ScaleQuestion,
    find_next_question,
    judge_gate,
    plan_gate,
)
from bench.measurement import Measurement

SEARCHES, RAIL_SEARCHES = 400, 20
FLIPPED = 0.05
"""The share of answers of the scale stage that are wrong."""
RAILS, UNIT = 8, 32
NOISE, DIPS, SPEED_GB_S = 0.015, 1e-4, 40.0
KINDS = ("slow", "hung", "wrong", "hung now and then", "slow now and then")
NOW_AND_THEN = 0.7
"""The share of its runs in which an intermittent part is bad; a wrong part is wrong in so many of its runs too."""


@dataclass
class ScaleTotals:
    """What many scale searches found: how many named exactly the needed blocks, and their runs."""

    searches: int = 0
    right: int = 0
    runs: list[int] = field(default_factory=list)

    @property
    def percent(self) -> float:
        """Of all searches."""
        return 100 * self.right / self.searches

    @property
    def mean_runs(self) -> float:
        """Runs in a search."""
        return sum(self.runs) / len(self.runs)


def search_scale(count: int, flipped: float, votes: int = VOTES, searches: int = SEARCHES) -> ScaleTotals:
    """Return the totals of searches for two of `count` blocks. A share of the runs gives the wrong answer."""
    totals = ScaleTotals()
    for seed in range(searches):
        chance = random.Random(f"scale {count} {seed}")  # noqa: S311 — a simulation
        needed = set(chance.sample(range(count), 2))
        answers: list[bool | None] = []
        while isinstance(found := find_next_question(count, answers, votes), ScaleQuestion):
            answers.append((needed <= set(found.blocks)) != (chance.random() < flipped))
        totals.searches += 1
        totals.right += set(found.blocks) == needed
        totals.runs.append(len(answers))
    return totals


def measure_scale_search() -> Iterator[Measurement]:
    """Yield how often the two needed blocks are named although one run in 20 gives the wrong answer."""
    for count, single_runs in ((16, 10), (64, 14), (256, 18)):
        quiet, noisy = search_scale(count, 0.0, 1), search_scale(count, FLIPPED)
        single = search_scale(count, FLIPPED, 1)
        what = f"collectives, scale fault of 2 of {count} blocks"
        figures = {"by_single_answers": single.percent, "runs": noisy.mean_runs, "longest": max(noisy.runs)}
        yield Measurement(f"{what}: named, 5 % noise", noisy.percent, "%", "at least", 88, figures)
        yield Measurement(f"{what}: single answers, no noise", quiet.mean_runs, "runs", "at most", single_runs)


@dataclass
class RailFabric:
    """Two units of nodes with eight rails, measured apart. `bad` has the kind of each faulty part."""

    chance: random.Random
    bad: dict[FabricPart, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = [
            FabricNode(f"n{at:03}", tuple(f"leaf-{at // UNIT}-{rail}" for rail in range(RAILS)), (at % UNIT,) * RAILS)
            for at in range(2 * UNIT)
        ]
        leaves = {leaf for node in nodes for leaf in node.leaves}
        uplinks = {leaf: [f"{leaf}[{UNIT + 1 + port}]" for port in range(UNIT)] for leaf in sorted(leaves)}
        self.map = FabricMap({node.name: node for node in nodes}, uplinks)

    def plant(self, kind: str, of: str) -> None:
        """Plant a fault into a random adapter, uplink or node."""
        node, rail = self.chance.choice(sorted(self.map.nodes)), self.chance.randrange(RAILS)
        uplink = self.chance.choice([name for names in self.map.uplinks.values() for name in names])
        names = {"adapter": format_adapter(node, rail), "uplink": uplink, "node": node}
        part = next(replace(part, name=names[of]) for part in _LINK_PARTS if part.kind == of)
        self.bad[part] = kind

    def run(self, name: str, pair: Pair, rail: int) -> PairResult:
        """Run one rail of a pair."""
        parts = (*self.map.list_node_parts(*pair), *self.map.list_rail_parts(*pair, rail))
        kinds = [kind for part in parts if (kind := self.bad.get(part)) and self._is_met(kind)]
        if any(kind.startswith("hung") for kind in kinds):
            return PairResult(name, pair, "deadline", rail)
        factor = 0.7 if any(kind.startswith("slow") for kind in kinds) else 1.0
        dip = 0.8 if self.chance.random() < DIPS else 1.0
        speed = SPEED_GB_S * factor * dip * self.chance.gauss(1, NOISE)
        return PairResult(name, pair, "ok", rail, gb_s=speed, wrong=7 * ("wrong" in kinds))

    def _is_met(self, kind: str) -> bool:
        return kind in ("slow", "hung") or self.chance.random() < NOW_AND_THEN


_LINK_PARTS = (FabricPart("adapter", ""), FabricPart("uplink", ""), FabricPart("node", ""))


def search_rails(of: str, kind: str, searches: int = RAIL_SEARCHES) -> Mapping[str, float]:
    """Return the shares of faulty parts named exactly, of searches that named another, and the rounds."""
    named = falsely = rounds = 0
    for seed in range(searches):
        fabric = RailFabric(random.Random(f"rails {of} {kind} {seed}"))  # noqa: S311 — a simulation
        if of:
            fabric.plant(kind, of)
        search = CollectiveSearch(fabric.map, list(fabric.map.nodes), seed)
        results: list[PairResult] = []
        ended: set[str] = set()
        while planned := search.find_next_round(results, ended):
            results += [fabric.run(planned.name, pair, rail) for pair in planned.pairs for rail in range(RAILS)]
            ended.add(planned.name)
        found = {one.part for one in explain(search.observe(results)).faulty if not one.rivals}
        named += found == set(fabric.bad) and bool(of)
        falsely += bool(found - fabric.bad.keys())
        rounds += len(ended)
    return {"named": 100 * named / searches, "falsely": falsely / searches, "rounds": rounds / searches}


def measure_rails() -> Iterator[Measurement]:
    """Yield how often an adapter, an uplink or a node is named, and nobody else, where rails are measured apart."""
    bounds = {"slow now and then": 75, "hung now and then": 75, "wrong": 90}
    for of in ("adapter", "uplink", "node"):
        for kind in KINDS:
            if (of, kind) == ("uplink", "wrong"):
                continue  # links check each packet
            found = search_rails(of, kind)
            what = f"collectives, 64 nodes by rail, one {of} {kind}"
            yield Measurement(f"{what}: named", found["named"], "%", "at least", bounds.get(kind, 95), dict(found))
            yield Measurement(f"{what}: falsely named a search", found["falsely"], "parts", "at most", 0.1)
    nobody = search_rails("", "")
    what = "collectives, 64 nodes by rail, nothing wrong: falsely named a search"
    yield Measurement(what, nobody["falsely"], "parts", "at most", 0)


def search_alone(size: int, faulty: int, seed: int) -> tuple[int, int, int]:
    """Return how many faulty nodes the gate named, how many others, and its rounds. Faults are as those of pairs."""
    chance = random.Random(f"gate {size} {seed}")  # noqa: S311 — a simulation
    nodes = [f"n{at:04}" for at in range(size)]
    bad = {name: chance.choice(KINDS) for name in chance.sample(nodes, faulty)}
    results: list[GroupResult] = []
    rounds = 0
    for name in GATE_ROUNDS:
        planned = plan_gate([(node,) for node in nodes], observe_alone(results, GroupRule()), name)
        rounds += bool(planned.groups)
        results += [_run_alone(name, group[0], bad.get(group[0], ""), chance) for group in planned.groups]
    named = judge_gate(observe_alone(results, GroupRule())).faulty.keys()
    return len(named & bad.keys()), len(named - bad.keys()), rounds


def _run_alone(name: str, node: str, kind: str, chance: random.Random) -> GroupResult:
    is_met = kind in ("slow", "hung") or (bool(kind) and chance.random() < NOW_AND_THEN)
    if is_met and kind.startswith("hung"):
        return GroupResult(name, (node,), "deadline")
    factor = 0.7 if is_met and kind.startswith("slow") else 0.8 if chance.random() < DIPS else 1.0
    speed = 480 * factor * chance.gauss(1, NOISE)
    return GroupResult(name, (node,), "ok", gb_s=speed, wrong=7 * (is_met and kind == "wrong"))


def measure_gate() -> Iterator[Measurement]:
    """Yield how often nodes that are faulty alone are named before any pair runs."""
    for size in (64, 2048):
        runs = [search_alone(size, 3, seed) for seed in range(100)]
        found, falsely, rounds = (sum(column) for column in zip(*runs, strict=True))
        figures = {"rounds": rounds / len(runs)}
        what = f"collectives, {size} nodes, 3 faulty alone"
        yield Measurement(f"{what}: named by the gate", found / 3, "%", "at least", 75, figures)
        yield Measurement(f"{what}: falsely named a search", falsely / len(runs), "parts", "at most", 0.01)
