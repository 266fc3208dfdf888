"""Drift over a burn-in: what changed on one GPU or DIMM more than on its neighbours, with the uncertainty of that.

A drift says that something changes. It does not say that the part will fail, nor when. The slope comes from a robust
regression within blocks of equal load: each block has a level of its own, so that a change of load is no change of the
part. Outliers are drawn in (Huber), and the interval is widened for noise in which a value resembles the one before it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from statistics import NormalDist, mean, median

from assay.model.facts import frozen
from assay.model.specs.burn_in import BurnIn, BurnInWindow, DriftMeasure, DriftRules

MOST_LIKENESS = 0.95
HOURS_OF_A_DAY = 24.0
HUBER_SPREADS = 1.5
SPREAD_OF_MEDIAN = 1.4826
"""Turns a median of absolute deviations into a standard deviation."""
ROUNDS = 6
NEIGHBOURS_AT_LEAST = 2
RISING: frozenset[DriftMeasure] = frozenset({"temperature", "memory_temperature", "corrected"})
AT_EQUAL_POWER: frozenset[DriftMeasure] = frozenset({"temperature", "memory_temperature", "clock"})
UNITS: Mapping[DriftMeasure, str] = {
    "temperature": "°C",
    "memory_temperature": "°C",
    "clock": "%",
    "gflops": "%",
    "corrected": "errors",
}
TITLES: Mapping[DriftMeasure, str] = {
    "temperature": "temperature against its neighbours at equal power",
    "memory_temperature": "memory temperature against its neighbours at equal power",
    "clock": "clock against its neighbours at equal power",
    "gflops": "Gflop/s against its neighbours",
    "corrected": "corrected memory errors a day",
}


@frozen
class Point:
    """A value at `hours` of burn-in, under the load `block`."""

    hours: float
    value: float
    block: Hashable


@frozen
class Slope:
    """A change per day, and the interval in which it is with the confidence that was asked for."""

    per_day: float
    low: float
    high: float
    points: int


Block = list[tuple[float, float]]
"""Hours, from the block's mean, and values."""


def estimate_slope(points: Sequence[Point], confidence: float) -> Slope | None:
    """Return the slope of points, None where they do not tell one: too few, or all at one time of each block."""
    blocks = _split_blocks(points)
    lever = sum(hours**2 for block in blocks for hours, _ in block)
    if len(points) < len(blocks) + 3 or lever <= 0:
        return None
    fitted = blocks
    for _ in range(ROUNDS):
        slope, residuals = _fit(fitted, blocks, lever)
        spread = SPREAD_OF_MEDIAN * median(abs(rest) for block in residuals for rest in block)
        fitted = _draw_in(blocks, residuals, spread)
    # sensors round: below half their smallest step, a constant value is not known exactly
    values = sorted({point.value for point in points})
    step = min((after - before for before, after in pairwise(values)), default=0.0)
    spread = max(spread, step / math.sqrt(12))
    error = spread * math.sqrt(_widen(residuals) / lever)
    reach = NormalDist().inv_cdf(0.5 + confidence / 2) * error
    low, high = (HOURS_OF_A_DAY * (slope + side * reach) for side in (-1, 1))
    return Slope(HOURS_OF_A_DAY * slope, low, high, len(points))


def _split_blocks(points: Sequence[Point]) -> list[Block]:
    blocks = []
    for _, group in groupby(
        sorted(points, key=lambda point: (repr(point.block), point.hours)), key=attrgetter("block")
    ):
        block = list(group)
        middle = mean(point.hours for point in block)
        blocks.append([(point.hours - middle, point.value) for point in block])
    return blocks


def _fit(fitted: list[Block], blocks: list[Block], lever: float) -> tuple[float, list[list[float]]]:
    """Return the slope of the fitted values, and what the line leaves of the real ones, by block."""
    slope = sum(hours * value for block in fitted for hours, value in block) / lever
    residuals = []
    for block, real in zip(fitted, blocks, strict=True):
        level = mean(value for _, value in block)
        residuals.append([value - level - slope * hours for hours, value in real])
    return slope, residuals


def _draw_in(blocks: list[Block], residuals: list[list[float]], spread: float) -> list[Block]:
    """Return the values, with residuals beyond `HUBER_SPREADS` drawn in to that."""
    most = HUBER_SPREADS * spread
    return [
        [(hours, value - rest + min(max(rest, -most), most)) for (hours, value), rest in zip(block, rests, strict=True)]
        for block, rests in zip(blocks, residuals, strict=True)
    ]


def _widen(residuals: list[list[float]]) -> float:
    """Return by how much the variance grows because a value resembles the one before it (lag one)."""
    products = sum(before * after for block in residuals for before, after in pairwise(block))
    squares = sum(rest * rest for block in residuals for rest in block)
    likeness = min(max(products / squares if squares else 0.0, 0.0), MOST_LIKENESS)
    return (1 + likeness) / (1 - likeness)


@frozen
class DriftFinding:
    """A measure of one subject that changes by `per_day`, between `low` and `high`; `limit` is what may be.

    `holds`: the policy keeps the node longer because of it.
    """

    measure: DriftMeasure
    subject: str
    per_day: float
    low: float
    high: float
    limit: float
    points: int
    confidence: float
    holds: bool

    def format(self) -> str:
        """Return one line for people."""
        unit = UNITS[self.measure]
        change = f"{self.per_day:+.1f} {unit} a day ({self.low:+.1f} to {self.high:+.1f} at {self.confidence:.2%})"
        return f"{self.subject}: {TITLES[self.measure]} changed by {change}, limit {self.limit:g}"


def find_drifts(spec: BurnIn, windows: Sequence[BurnInWindow]) -> list[DriftFinding]:
    """Return the drifts in the windows of one burn-in, in the order of measures and subjects."""
    drifts: list[DriftFinding] = []
    for measure, limit in spec.drift.limits.items():
        subjects = set[str]()
        for window in windows:
            subjects |= (window.corrected if measure == "corrected" else window.gpus).keys()
        for subject in sorted(subjects):
            if measure == "corrected":
                change = _judge_counter(spec, windows, subject)
            else:
                change = _judge_level(spec, windows, measure, subject)
            if change and change[0] > limit.per_day and change[1] > 0:
                per_day, low, high, points = change
                if measure not in RISING:
                    per_day, low, high = -per_day, -high, -low
                shown = (round(per_day, 2), round(low, 2), round(high, 2))
                confidence, holds = spec.drift.confidence, limit.holds
                drifts.append(
                    DriftFinding(measure, subject, *shown, limit.per_day, points, confidence, holds),
                )
    return drifts


Change = tuple[float, float, float, int]
"""Change for the worse per day, its least and greatest value, and from how many points."""


def _judge_level(spec: BurnIn, windows: Sequence[BurnInWindow], measure: DriftMeasure, subject: str) -> Change | None:
    """Return how much worse a level became against the neighbours, None where that cannot be told."""
    points = list(list_points(spec, windows, measure, subject))
    slope = estimate_slope(points, spec.drift.confidence) if len(points) >= spec.drift.points_at_least else None
    if slope is None or math.isinf(slope.low) or math.isinf(slope.high):
        return None
    if measure in RISING:
        return slope.per_day, slope.low, slope.high, slope.points
    return -slope.per_day, -slope.high, -slope.low, slope.points


def list_points(spec: BurnIn, windows: Sequence[BurnInWindow], measure: DriftMeasure, subject: str) -> Iterator[Point]:
    """Yield the difference between a GPU and the median of its neighbours: in °C, or in percent."""
    blocks = _name_blocks(spec)
    for window in windows:
        own = window.gpus.get(subject, {})
        others = [neighbour for name, neighbour in window.gpus.items() if name != subject and measure in neighbour]
        if measure not in own or len(others) < NEIGHBOURS_AT_LEAST:
            continue
        if measure in AT_EQUAL_POWER and not _has_equal_power(spec.drift, own, others):
            continue
        middle = median(neighbour[measure] for neighbour in others)
        if UNITS[measure] == "%":
            if middle > 0:
                yield Point(window.hours, 100 * (own[measure] / middle - 1), blocks.get(window.phase, window.phase))
        else:
            yield Point(window.hours, own[measure] - middle, blocks.get(window.phase, window.phase))


def _has_equal_power(rules: DriftRules, own: Mapping[str, float], others: Sequence[Mapping[str, float]]) -> bool:
    powers = [neighbour["power"] for neighbour in others if "power" in neighbour]
    if "power" not in own or not powers:
        return False
    middle = median(powers)
    return abs(own["power"] - middle) <= rules.power_percent / 100 * middle


def _name_blocks(spec: BurnIn) -> dict[str, str]:
    """Return a name for the load of each phase. Phases with the same load have the same name."""
    return {
        phase.name: repr((phase.parts, phase.beside, phase.cycles, phase.swings, phase.unit_seconds))
        for phase in spec.phases
    }


def _judge_counter(spec: BurnIn, windows: Sequence[BurnInWindow], subject: str) -> Change | None:
    """Return by how much more corrected errors a day came in the second half of the time, None if too few came."""
    steps = list(list_increments(windows, subject))
    if len(steps) < spec.drift.points_at_least:
        return None
    halves = (steps[: len(steps) // 2], steps[len(steps) // 2 :])
    hours_1, hours_2 = (sum(hours for hours, _ in half) for half in halves)
    count_1, count_2 = (sum(count for _, count in half) for half in halves)
    if not (hours_1 and hours_2) or not _is_rise(count_1, count_2, hours_1, hours_2, 1 - spec.drift.confidence):
        return None
    rise = HOURS_OF_A_DAY * (count_2 / hours_2 - count_1 / hours_1)
    spread = HOURS_OF_A_DAY * math.sqrt((count_2 + 1) / hours_2**2 + (count_1 + 1) / hours_1**2)
    reach = NormalDist().inv_cdf(0.5 + spec.drift.confidence / 2) * spread
    return rise, rise - reach, rise + reach, len(steps)


def list_increments(windows: Sequence[BurnInWindow], subject: str) -> Iterator[tuple[float, int]]:
    """Yield hours and new errors from one window to the next. A counter that fell began again at 0."""
    known = [window for window in windows if subject in window.corrected]
    for earlier, later in pairwise(known):
        before, after = earlier.corrected[subject], later.corrected[subject]
        yield later.hours - earlier.hours, after - before if after >= before else after


def _is_rise(count_1: int, count_2: int, hours_1: float, hours_2: float, chance: float) -> bool:
    """Whether equal rates would give so many errors in the second time with less than this chance (normal tail).

    Both counts together are a binomial trial whose share of success is the share of time (Przyborowski, Wilenski).
    """
    total, share = count_1 + count_2, hours_2 / (hours_1 + hours_2)
    if not total:
        return False
    spread = math.sqrt(total * share * (1 - share))
    return NormalDist().cdf((count_2 - 0.5 - total * share) / spread) > 1 - chance


def compute_gpu_rates(windows: Sequence[BurnInWindow]) -> dict[str, float]:
    """Return the median Gflop/s of each GPU over a burn-in, by subject."""
    rates: dict[str, list[float]] = {}
    for window in windows:
        for subject, medians in window.gpus.items():
            if "gflops" in medians:
                rates.setdefault(subject, []).append(medians["gflops"])
    return {subject: round(median(values), 1) for subject, values in sorted(rates.items())}


def list_slow_gpus(rules: DriftRules, rates: Mapping[str, float], others: Sequence[float]) -> Iterator[str]:
    """Yield a line for each GPU that is slower than its kind. `others`: the rates of other nodes' GPUs of the kind."""
    if len(others) < rules.fleet_gpus_at_least:
        return
    middle = median(others)
    floor = middle * (1 - rules.fleet_below_percent / 100)
    for subject, rate in rates.items():
        if rate < floor:
            rank = sum(other < rate for other in others) + 1
            share = f"{100 * (rate / middle - 1):+.1f} % of the median {middle:.0f} of {len(others)} GPUs"
            yield f"{subject}: {rate:.0f} Gflop/s, {share}; rank {rank} from below"
