"""How good `assay trends` is on planted fleets, with other methods beside it on the same fleets and the same budget."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from assay.decide.trends.measurement_tables import TrendFiles, open_tables
from assay.decide.trends.trend_answer import find_trends
from bench.measurement import Measurement
from bench.trend_judge import Judgement, Series, add_judgements, judge_warnings
from bench.trend_methods import (
    BUDGET,
    Scorer,
    has_scikit_learn,
    make_isolation_forest,
    name_above,
    rank_scores,
    score_by_cusum,
    score_by_ewma,
    score_by_growth,
    score_by_level,
    score_by_slope,
    set_threshold,
)
from bench.trend_mixed import MIXED, make_mixed
from bench.trend_worlds import KINDS, RACK_NODES, START, World, make_world, write_world

FIRST_DAY, EVERY = 95, 5
JUDGED, LEARNT = range(2), range(100, 102)
"""Seeds. Nobody sets anything on the first; the other methods get their thresholds from the second."""
LEAST_LEAD, MOST_FALSE = 8.0, 2 * BUDGET
"""A world has a few false alarms at most: twice the budget is within what chance does."""


@dataclass(frozen=True)
class AskedWorld:
    """What `assay trends` said of a world: how good that was, how much of the warmed rack it named as its group."""

    judgement: Judgement
    grouped: float


def measurements(folder: Path) -> Iterator[Measurement]:
    """Judge ours and others' methods on each kind of world; print the table of docs on stderr."""
    table = ["| world | method | found | of all | false per 1,000 node-days | precision | lead (nine in ten) |"]
    for kind in (*KINDS, *MIXED):
        worlds = [make(kind, seed) for seed in JUDGED]
        days = list(range(FIRST_DAY, worlds[0].days, EVERY))
        begun = time.process_time()
        asked = [ask_world(world, folder / f"{kind}{world.seed}", days) for world in worlds]
        cpu_s = (time.process_time() - begun) / (len(days) * len(worlds))
        ours = add_judgements([one.judgement for one in asked])
        others = judge_others(kind, worlds, days)
        table.append(_write_row(kind, "**assay trends**", ours))
        table += [_write_row(kind, name, one) for name, one in others.items()]
        yield from _measure(kind, ours, others, cpu_s, min(one.grouped for one in asked))
    if not has_scikit_learn():
        table.append("the isolation forest is left out: `pip install scikit-learn` to have it")
    print("\n".join(table), file=sys.stderr)  # noqa: T201 — for people


def make(kind: str, seed: int) -> World:
    """Return a world of a kind."""
    return make_mixed(kind, seed) if kind in MIXED else make_world(kind, seed)


def ask_world(world: World, folder: Path, days: Sequence[int]) -> AskedWorld:
    """Ask what gets worse as of each day. The group is asked for once a quarter of the rack is named."""
    files = TrendFiles(*write_world(world, folder))
    named: dict[int, list[Series]] = {}
    grouped: list[bool] = []
    warmed = world.find_warmed()
    for day in days:
        as_of = START + timedelta(days=day, hours=1)
        with open_tables(files, as_of) as database:
            answer = find_trends(database, as_of, recognise_counters=True)
        known = {name: at for at, name in enumerate(world.names)}  # lost readings are no measurement of the world
        named[day] = [(int(one.score.node[1:]), known.get(one.score.name, -1)) for one in answer.warnings]
        said = list(zip(named[day], answer.warnings, strict=True))
        groups = [one.group for series, one in said if series in warmed]
        if len(groups) >= RACK_NODES // 4:
            grouped += [group.startswith(f"rack r{world.warm_rack}:") for group in groups]
    share = sum(grouped) / len(grouped) if grouped else 1.0
    return AskedWorld(judge_warnings(world, days, named), share)


def judge_others(kind: str, worlds: Sequence[World], days: Sequence[int]) -> Mapping[str, Judgement]:
    """Return the judgement of every other method, each at its own threshold for the same budget."""
    learnt = [make(kind, seed) for seed in LEARNT]
    methods: dict[str, Scorer] = {
        "level of 7 days": score_by_level,
        "EWMA, fast less slow": score_by_ewma,
        "Theil-Sen of 30 days": score_by_slope,
        "growth in 14 days": score_by_growth,
        "CUSUM": score_by_cusum,
    }
    if has_scikit_learn():
        methods["isolation forest"] = make_isolation_forest(learnt, days)
    judged = {}
    for name, method in methods.items():
        scorer = rank_scores(method, learnt, days)
        threshold = set_threshold(scorer, learnt, days)
        found = [judge_warnings(world, days, name_above(scorer(world), days, threshold)) for world in worlds]
        judged[name] = add_judgements(found)
    return judged


def _measure(
    kind: str, ours: Judgement, others: Mapping[str, Judgement], cpu_s: float, grouped: float
) -> Iterator[Measurement]:
    title = f"assay trends, {kind} world"
    middle, low = ours.lead
    best = max(one.recall for one in others.values())
    figures = {"failures": ours.foreseeable, "of_all": ours.recall_of_all, "precision": ours.precision, "cpu_s": cpu_s}
    yield Measurement(f"{title}: found", ours.recall, "of failures, as many as by any other", "at least", best, figures)
    yield Measurement(
        f"{title}: false alarms", ours.false_rate, "per 1,000 node-days", "at most", MOST_FALSE, {"false": ours.false}
    )
    yield Measurement(f"{title}: lead", middle, "days", "at least", LEAST_LEAD, {"nine_in_ten": low})
    if kind in KINDS:
        yield Measurement(f"{title}: warmed rack as one group", grouped, "of its warnings", "at least", 0.9)


def _write_row(kind: str, method: str, one: Judgement) -> str:
    middle, low = one.lead
    shown = f"{one.recall:.2f} | {one.recall_of_all:.2f} | {one.false_rate:.3f} | {one.precision:.2f}"
    return f"| {kind} | {method} | {shown} | {middle:.0f} d ({low:.0f}) |"
