"""How good probation and positions are on the public sets of `trend_sets`: `make bench TRENDS=FOLDER`.

Always by time: what a day is told follows from earlier days alone, and is judged by later ones.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from assay.model.specs.trend_rules import PositionDetector, ReturnDetector
from assay.trends.parts.part_stays import FailureTimes
from assay.trends.parts.position_hazard import rank_positions
from assay.trends.parts.probation import list_probation
from assay.trends.parts.service_returns import follow_returns, measure_return_hazard, merge_outages
from bench.measurement import Measurement
from bench.survival_judge import measure_survival
from bench.trend_sets import DAY_S, NodeTrace, TitanLives, read_titan, read_trace

SERVERS, FIRST_WEEK, WEEK, TESTED = 400, 28, 7, 5
HALF_LIFE = 14.0
TITAN_FROM, TITAN_EVERY, TITAN_AHEAD = datetime(2015, 5, 1, tzinfo=UTC).timestamp() / DAY_S, 60, 60
LEAST_PRECISION, LEAST_LIFT_5, LEAST_LIFT_1_PERCENT = 0.12, 5.0, 7.5
"""What a count with a half-life of 14 days, and delivery × position × cabinet, reached before these detectors."""


class Ranked(NamedTuple):
    """Scores of one day, and which of them failed later."""

    scores: list[float]
    failed: list[bool]


def measurements(_: Path) -> Iterator[Measurement]:
    """Compare with lifelines where it is installed; replay the sets in the folder that TRENDS names, if it does."""
    yield from measure_survival()
    folder = os.environ.get("TRENDS")
    if not folder:
        print("no public sets: `make bench TRENDS=FOLDER`", file=sys.stderr)  # noqa: T201 — for people
        return
    if trace := read_trace(Path(folder)):
        yield from judge_probation(trace)
    if titan := read_titan(Path(folder)):
        yield from judge_positions(titan)


def judge_probation(trace: NodeTrace) -> Iterator[Measurement]:
    """Each week, test the first five nodes on probation, and see how many fail within 7 and 30 days.

    Beside it stands a count: each node's failures, of which each loses half its weight in 14 days.
    """
    outages = list_outages(trace)
    last = int(max(one.at for one in trace.failures))
    for ahead, precision, lift in ((7, LEAST_PRECISION, LEAST_LIFT_5), (30, 0.0, 0.0)):
        weeks = range(FIRST_WEEK, last - ahead + 1, WEEK)
        days = [rank_nodes(trace, outages, float(day), ahead) for day in weeks]
        counted = [count_nodes(outages, float(day), ahead) for day in weeks]
        hit, base = find_precision(days, lambda _: TESTED), find_base(days)
        other = find_precision(counted, lambda _: TESTED)
        what = f"InfiniteHBD: first {TESTED} on probation, {ahead} days"
        figures = {"weeks": len(days), "by_count": other}
        yield Measurement(f"{what}: fail", hit, "of those tested", "at least", precision, figures)
        figures = {"base": base, "by_count": other / base}
        yield Measurement(f"{what}: lift", hit / base, "times the base rate", "at least", lift, figures)


def list_outages(trace: NodeTrace) -> dict[str, list[float]]:
    """Return when each of the servers failed. A failure within a day of a return belongs to the outage before."""
    back: dict[str, list[float]] = defaultdict(list)
    for one in trace.returns:
        back[one.node].append(one.at)
    names = {one.node for one in trace.failures}
    found: dict[str, list[float]] = {name: [] for name in names}
    found |= {f"never {number}": [] for number in range(SERVERS - len(names))}
    for failure in trace.failures:
        if not count_between(back[failure.node], failure.at - 1, failure.at):
            found[failure.node].append(failure.at)
    return found


def count_nodes(outages: Mapping[str, Sequence[float]], day: float, ahead: int) -> Ranked:
    """Return the nodes by the number of their outages, of which each loses half its weight in 14 days."""
    scores = [sum(0.5 ** ((day - at) / HALF_LIFE) for at in times if at <= day) for times in outages.values()]
    return Ranked(scores, [count_between(times, day, day + ahead) > 0 for times in outages.values()])


def rank_nodes(trace: NodeTrace, outages: Mapping[str, Sequence[float]], day: float, ahead: int) -> Ranked:
    """Return the nodes by the order of their tests on one day: the first has the highest score."""
    returns = [one for one in trace.returns if one.at <= day]
    past = merge_outages((one for one in trace.failures if one.at <= day), returns)
    followed = follow_returns(returns, past, day)
    hazard = measure_return_hazard(followed, sum(map(len, past.values())), SERVERS * day)
    order = [one.returned.node for one in list_probation(followed, day, ReturnDetector(), hazard)]
    scores = {node: float(len(order) - place) for place, node in enumerate(order)}
    failed = [count_between(times, day, day + ahead) > 0 for times in outages.values()]
    return Ranked([scores.get(node, 0.0) for node in outages], failed)


def judge_positions(titan: TitanLives) -> Iterator[Measurement]:
    """Every two months, rank all GPUs by their positions, and see how many of the worst fail within 60 days."""
    last = max(one.until for one in titan.stays)
    dates = []
    while TITAN_FROM + TITAN_EVERY * len(dates) + TITAN_AHEAD <= last:
        dates.append(TITAN_FROM + TITAN_EVERY * len(dates))
    days = [rank_gpus(titan, day) for day in dates]
    base = find_base(days)
    worst = find_precision(days, lambda size: max(1, size // 100))
    five = find_precision(days, lambda size: max(1, size // 20))
    figures = {"base": base, "precision": worst, "dates": len(days), "failures": sum(sum(day.failed) for day in days)}
    what = "Titan: worst positions, 60 days"
    yield Measurement(f"{what}: worst 1 %", worst / base, "lift", "at least", LEAST_LIFT_1_PERCENT, figures)
    yield Measurement(f"{what}: worst 5 %", five / base, "lift", "at least", 1.0, {"recall": five / base * 0.05})
    yield Measurement(f"{what}: AUC", find_auc(days), "of pairs", "at least", 0.5)


def rank_gpus(titan: TitanLives, day: float) -> Ranked:
    """Return the GPUs that were there on one day, by the hazard of their positions in the half year before."""
    past = FailureTimes.collect(one for one in titan.failures if one.at <= day)
    known = [stay._replace(until=min(stay.until, day + 1)) for stay in titan.stays if stay.since <= day]
    hazards = rank_positions(known, past, day, PositionDetector())
    times: dict[str, list[float]] = defaultdict(list)
    for one in titan.failures:
        times[one.node].append(one.at)
    there = [stay for stay in titan.stays if stay.since <= day < stay.until]
    failed = [count_between(times[stay.node], day, min(stay.until, day + TITAN_AHEAD)) > 0 for stay in there]
    return Ranked([hazards.find(stay) for stay in there], failed)


def count_between(times: Sequence[float], after: float, until: float) -> int:
    """Return how many times, oldest first, are after one moment and not after another."""
    return bisect_right(times, until) - bisect_right(times, after)


def find_base(days: Sequence[Ranked]) -> float:
    """Return the share that failed, of all days."""
    return sum(sum(day.failed) for day in days) / max(1, sum(len(day.failed) for day in days))


def find_precision(days: Sequence[Ranked], choose: Callable[[int], int]) -> float:
    """Return the share that failed of the highest scores; of equal scores at the edge, their mean counts."""
    hits = tested = 0.0
    for scores, failed in days:
        count = choose(len(scores))
        edge = sorted(scores, reverse=True)[count - 1]
        above = [fails for score, fails in zip(scores, failed, strict=True) if score > edge]
        equal = [fails for score, fails in zip(scores, failed, strict=True) if score == edge]
        hits += sum(above) + (count - len(above)) * sum(equal) / len(equal)
        tested += count
    return hits / tested


def find_auc(days: Sequence[Ranked]) -> float:
    """Return in how many pairs of one that failed and one that did not the first has the higher score."""
    won = pairs = 0.0
    for scores, failed in days:
        others = sorted(score for score, fails in zip(scores, failed, strict=True) if not fails)
        for score, fails in zip(scores, failed, strict=True):
            if fails:
                won += (bisect_left(others, score) + bisect_right(others, score)) / 2
                pairs += len(others)
    return won / max(1.0, pairs)
