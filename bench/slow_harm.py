"""Twelve worlds of harm that comes slowly, or in a shape of its own, to 400 nodes: whether people are told of each.

Each is a history of faults, replayed with the shipped policy, in which nobody answers. Whatever the remedy is, it must
open a breaker or a series, which asks a person, and stop there. S9 is an ordinary year, and S12 two years of chance:
they open none. What comes after a quiet half year is told by what this fleet is used to (S10).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from assay.decide.replay.history import read_history
from assay.decide.replay.replay_nodes import ReplayDurations, ReplayRules, collect_replay_nodes
from assay.decide.replay.result import make_replay_answer
from assay.decide.replay.simulator import run_replay
from assay.declare.loader import load_fleet
from assay.model.facts import to_json
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings, ServiceImport
from bench.measurement import Measurement
from bench.programs import ROOT

NODES, RACK = 400, 8
HOUR = 3600.0
DAY, QUARTER = 24 * HOUR, 960.0
Event = dict[str, Any]
XID = "gpu.xid.79"
CLASSES = (XID, "gpu.xid.95", "gpu.xid.48", "gpu.xid.119", "gpu.nvlink.down", "gpu.thermal", "gpu.xid.63", "gpu.xid.64")


@dataclass(frozen=True)
class World:
    """What happens, and how often a person is asked about many nodes at once: at least, and at most.

    `alone`: the most reboots and tickets of single nodes.
    """

    what: str
    make: Callable[[], Iterator[Event]]
    least: int = 1
    most: int = 3
    alone: int = 20


def happen(at: float, number: int, name: str, lasts: float = HOUR) -> Iterator[Event]:
    """Yield a fault of one node, and its end; it never ends where it `lasts` 0."""
    told = {"node": f"n{number % NODES:03}", "fault": name}
    yield {"time": at, "event": "fault", **told}
    if lasts:
        yield {"time": at + lasts, "event": "clear", **told}


def each_day(days: int, nodes: int, classes: tuple[str, ...] = (XID,)) -> Iterator[Event]:
    """So many nodes a day, one after the other, with one class a day in turn."""
    number = count()
    for day in range(days):
        for index in range(nodes):
            yield from happen(day * DAY + index * DAY / nodes, next(number), classes[day % len(classes)])


def one_by_one(name: str, gap_s: float, lasts: float) -> Iterator[Event]:
    """The whole fleet, one node after the other."""
    for number in range(NODES):
        yield from happen(number * gap_s, number, name, lasts)


def in_pulses(pulses: int, nodes: int, gap_s: float) -> Iterator[Event]:
    """Many nodes at once, again and again."""
    number = count()
    for pulse in range(pulses):
        for _ in range(nodes):
            yield from happen(pulse * gap_s, next(number), XID)


def an_ordinary_year() -> Iterator[Event]:
    """259 faults of five classes in a year in which clocks go forward by an hour, and back."""
    for number in range(259):
        at = number * 365 * DAY / 259
        summer = HOUR if 90 * DAY < at < 300 * DAY else 0.0
        yield from happen(at + summer, number * 37, CLASSES[number % 5])


def week_by_week(counts: Iterable[int]) -> Iterator[Event]:
    """So many nodes with XID 79 in each week, anywhere."""
    number = count()
    for week, nodes in enumerate(counts):
        for index in range(nodes):
            yield from happen((week + index / nodes) * 7 * DAY, next(number) * 37, XID)


def by_chance(weeks: int, share: float) -> Iterator[int]:
    """Yield how many nodes fail in each week, where each does with the same chance."""
    chance = random.Random(43)  # noqa: S311 — the same figures every time
    for _ in range(weeks):
        yield sum(chance.random() < share for _ in range(NODES))


WORLDS = (
    World("S1: four nodes a day with XID 79, for 100 days", lambda: each_day(100, 4)),
    World("S2: eleven nodes a day with XID 79, three times round", lambda: each_day(109, 11)),
    World("S3: sixty nodes a day, another class each day", lambda: each_day(9, 60, CLASSES), 6, 28, 60),
    World("S4: every BMC unhealthy, one each 16 minutes", lambda: one_by_one("bmc.unhealthy", QUARTER, 0)),
    World("S5: a GPU missing on every node, one each 16 minutes", lambda: one_by_one("gpu.missing", QUARTER, 0)),
    World("S6: a GPU missing on every node at once", lambda: one_by_one("gpu.missing", 0, 0), most=1),
    World("S7: pulses of 39 nodes, 25 hours apart", lambda: in_pulses(10, 39, 25 * HOUR), most=1),
    World("S8: one rack a day", lambda: in_pulses(30, RACK, DAY)),
    World("S9: an ordinary year, in which clocks are set", an_ordinary_year, 0, 0, 259),
    World(
        "S10: two nodes a day after a quiet half year",
        lambda: week_by_week([*[1, 0] * 15, 14, 14, 14]),
        most=1,
        alone=25,
    ),
    World(
        "S11: one node more a week each month, for two years",
        lambda: week_by_week(1 + week // 4 for week in range(104)),
        most=1,
        alone=1000,
    ),
    World("S12: two years of chance, 1 % a week", lambda: week_by_week(by_chance(104, 0.01)), 0, 0, 500),
)
"""Where a series begins in a rack, one of each of two racks comes before that of the pool, which takes them in."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Replay each world, and count what people are told."""
    del folder
    fleet = load_fleet(ROOT)
    rules = ReplayRules(fleet.policy, fleet.fault_catalog, fleet.profiles, ReplayDurations(), fleet.lines)
    cast = _make_nodes()
    for world in WORLDS:
        events = sorted(world.make(), key=lambda event: float(event["time"]))
        history = read_history((json.dumps(event).encode() for event in events), "events")
        played = run_replay(rules, collect_replay_nodes(cast, history.events, rules), history.events)
        answer = to_json(make_replay_answer(history, rules, played))
        trips, totals = len(answer["breaker_trips"]), answer["totals"]
        alone = {"tickets": float(totals["tickets"]), "reboots": float(totals["actions"].get("reboot", 0))}
        faults = {event["node"] for event in events if event["event"] == "fault"}
        silent = faults - {decision["node"] for decision in answer["decisions"]}
        asked = f"{world.what}: breakers and series that ask a person"
        yield Measurement(asked, trips, "times", "at least", world.least)
        yield Measurement(f"{asked}, no more than once about the same", trips, "times", "at most", world.most)
        yield Measurement(
            f"{world.what}: reboots and tickets of single nodes",
            sum(alone.values()),
            "answers",
            "at most",
            world.alone,
            alone,
        )
        yield Measurement(f"{world.what}: nodes with a fault and no decision", len(silent), "nodes", "at most", 0)


def _make_nodes() -> dict[str, Node]:
    """Return nodes of one pool in production, in racks of eight."""
    names = [f"n{number:03}" for number in range(NODES)]
    start = NodeSettings(service_import=ServiceImport(nodes=names, reason="they serve", expires="2999-01-01"))
    first = Node(names[0], "a", "lab1", "r0", 1, "s", "hgx", "managed", settings=start)
    return {
        name: replace(first, name=name, serial=f"s-{name}", rack=f"r{number // RACK}")
        for number, name in enumerate(names)
    }
