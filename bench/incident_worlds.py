"""Worlds with known causes: 1 to 5 causes of 30 kinds on each of some nodes, with all that they show, some of it lost.

`python -m bench.incident_worlds` plants them, and counts incidents per cause, causes merged wrongly, and the time. The
symptoms of each cause are written here from what BMCs, drivers and checks say of it; no relation is read.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from assay.decide.faults.incidents import Incident, list_incidents
from assay.decide.state.node_state import NodeState
from assay.declare.loader import load_fleet
from assay.model.faults.fault_record import FaultRecord
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.timestamps import format_time

START = datetime(2026, 11, 1, tzinfo=UTC)
LOST = 0.1
"""The share of symptoms that nobody sees: a BMC's log that is full, a check that was not due.

What several causes of a node have in common is one reading, such as the summary of its BMC: seen of all, or of none.
"""
SECONDS = {"line": (0, 2), "event": (0, 60), "check": (0, 3600), "later": (600, 7200)}
"""When a symptom is seen, after the cause."""
KINDS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("incident_kinds.yaml").read_text())


@dataclass(frozen=True)
class World:
    """Nodes, and for each fault the causes that would show it: two of a node may have one rollup."""

    states: list[NodeState]
    causes: dict[str, set[int]]


def make_world(catalog: FaultCatalog, seed: int, nodes: int, *, apart: bool = False) -> World:
    """Return a world. `apart`: several causes on one node are hours from each other."""
    chance, number, world = random.Random(seed), 0, World([], {})  # noqa: S311 — repeatable
    for place in range(nodes):
        name, faults = f"n{place:04}", dict[tuple[str, str], FaultRecord]()
        planted, lost = list[tuple[str, str]](), dict[tuple[str, str], bool]()
        for _ in range(chance.randint(1, 5) if chance.random() < 0.3 else 1):
            kind, part = chance.choice(sorted(KINDS)), chance.randrange(8)
            own = KINDS[kind].get("part", "").format(n=part)
            like = KINDS[kind].get("like", kind)
            if any(own == part_of != "" or (like == other and "" in (own, part_of)) for other, part_of in planted):
                continue  # nobody can tell apart two causes of one part, or what the whole node shows from a part's
            planted.append((like, own))
            number += 1
            at = START + timedelta(hours=chance.uniform(0, 200) if apart else 0, seconds=chance.uniform(0, 1800))
            for fault in _show(chance, catalog, name, kind, part, at, lost):
                known = faults.setdefault(
                    (fault.fault_class, fault.subject), replace(fault, id=f"f{number}-{len(faults)}")
                )
                world.causes.setdefault(known.id, set()).add(number)
        world.states.append(NodeState(name, "a", "production", "", "", "", "", faults=tuple(faults.values())))
    return world


def _show(
    chance: random.Random,
    catalog: FaultCatalog,
    node: str,
    kind: str,
    number: int,
    at: datetime,
    lost: dict[tuple[str, str], bool],
) -> list[FaultRecord]:
    """Return what a cause shows. Something of it is always seen. `lost` is kept for the node."""
    every: list[FaultRecord] = []
    for name, place, when in KINDS[kind]["shows"]:
        parts = [place.replace("*", str(each)) for each in range(8)] if "*" in place else [place.format(n=number)]
        for part in parts:
            seen = format_time(at + timedelta(seconds=chance.uniform(*SECONDS[when])))
            treatment = catalog.find_treatment(name)
            every.append(FaultRecord(
                "", name, f"a/{node}/{part}".rstrip("/"), treatment.severity, treatment.blame, treatment.remedy,
                1, seen, seen, f"{name} of {kind}", arrived_at=seen,
            ))  # fmt: skip
    for fault in every:
        lost.setdefault((fault.fault_class, fault.subject), chance.random() < LOST)
    left = [fault for fault in every if not lost[fault.fault_class, fault.subject]] or [chance.choice(every)]
    lost.update({(fault.fault_class, fault.subject): False for fault in left})
    return left


@dataclass(frozen=True)
class Score:
    """How incidents and causes of a world agree."""

    causes: int
    incidents: int
    exact: int
    merged: int
    split: Counter[str]
    mixed: Counter[str]


def score_world(catalog: FaultCatalog, world: World) -> Score:
    """Return how many incidents hold all of one cause and nothing else, and how many causes share an incident."""
    incidents: list[Incident] = []
    for state in world.states:
        incidents += list_incidents(catalog.fault_relations, state)
    held, merged = Counter[int](), 0
    split, mixed = Counter[str](), Counter[str]()
    for incident in incidents:
        of = [world.causes[symptom.id] for symptom in incident.symptoms]
        if common := set.intersection(*of):
            held[min(common)] += 1
        else:
            merged += len(set.union(*of))
            mixed[" + ".join(sorted({symptom.detail for symptom in incident.symptoms}))] += 1
    causes = set().union(*world.causes.values())
    exact = sum(held[cause] == 1 for cause in causes)
    for incident in incidents:
        if len(common := world.causes[incident.cause.id]) == 1 and held[min(common)] > 1:
            split[incident.cause.detail] += 1
    return Score(len(causes), len(incidents), exact, merged, split, mixed)


def main() -> int:
    """Print the figures of some worlds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=400)
    given = parser.parse_args()
    catalog = load_fleet(Path(__file__).parents[1]).fault_catalog
    for apart in (False, True):
        scores = [
            score_world(catalog, make_world(catalog, seed, given.nodes, apart=apart)) for seed in range(given.seeds)
        ]
        causes, incidents = sum(s.causes for s in scores), sum(s.incidents for s in scores)
        exact, merged = sum(s.exact for s in scores), sum(s.merged for s in scores)
        when = "hours apart" if apart else "within half an hour"
        shares = (f"{incidents / causes:.3f} a cause", f"{exact / causes:.3f} exact", f"{merged / causes:.3f} merged")
        print(f"{causes} causes {when}: incidents {', '.join(shares)}")  # noqa: T201
        mixed = sum((score.mixed for score in scores), sum((score.split for score in scores), Counter[str]()))
        for name, count in mixed.most_common(12):
            print(f"  {count}: {name}")  # noqa: T201
    for size in (1, 4, 16):
        world = make_world(catalog, 1, 250 * size)
        faults, began = len(world.causes), time.process_time()
        for state in world.states:
            list_incidents(catalog.fault_relations, state)
        print(f"{faults} faults: {time.process_time() - began:.2f} CPU s")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
