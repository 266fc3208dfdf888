"""The distribution of a measurement over like nodes, and the parts that are unlike them, as history has them.

Nodes are like each other if their SKU, firmware bundle and driver are the same, as their spec declares them. An outlier
is on the worse side of its limit, by the modified z-score (Iglewicz and Hoaglin), and far enough from the median to
matter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median, quantiles
from typing import Any

from assay.fabric.weekly.peers import MIN_PEERS, compute_z_scores
from assay.ledger.history.parquet_files import MEASUREMENTS_TABLE, RUNS_TABLE
from assay.ledger.history.queries import HistoryRow, OutcomeHistory
from assay.model.facts import fact, inline
from assay.model.fleet import Fleet
from assay.model.reading import format_value
from assay.model.text.lists import format_count, format_percent
from assay.validate.results.outcome_lines import SUBJECT_WIDTH, escape_control, shorten_check

OUTLIER_SCORE = 3.5
TUKEY_FENCE = 1.5
"""An outlier is beyond the middle half by so many times its width: where values fall into two groups, none is."""
MIN_DISTANCE = 0.02
"""An outlier is at least this share of the median away from it: among equal values, any noise has a high score."""
HISTOGRAM_BARS = 24
COURSE_RUNS = 30
BLOCKS = " ▁▂▃▄▅▆▇█"
MAX_OUTLIERS = 20


@dataclass(frozen=True, slots=True, order=True)
class NodeKind:
    """What like nodes share."""

    sku: str
    """The node spec."""
    firmware: str
    """The firmware bundle."""
    driver: str
    """The driver that the spec declares; "" if none."""

    def __str__(self) -> str:
        return f"{self.sku}, firmware {self.firmware}, driver {self.driver}"


def list_node_kinds(fleet: Fleet) -> dict[str, NodeKind]:
    """Return the kind of each node that has a spec."""
    kinds = {
        name: NodeKind(name, spec.firmware or "not declared", spec.driver or "not declared")
        for name, spec in fleet.node_specs.items()
    }
    return {node.name: kinds[node.spec] for node in fleet.nodes.values() if node.spec in kinds}


@fact
class ValueLimit:
    """The limit of a measurement."""

    at_least: float | None
    """The lower limit; null for none."""
    at_most: float | None
    """The upper limit; null for none."""
    source: str
    """The file and line of the limit; "" for none."""

    def __str__(self) -> str:
        bounds = [f"at least {format_value(self.at_least)}"] if self.at_least is not None else []
        bounds += [f"at most {format_value(self.at_most)}"] if self.at_most is not None else []
        return " and ".join(bounds) + (f" ({self.source})" if bounds and self.source else "")

    @property
    def worse_side(self) -> int:
        """-1 where low values are worse, 1 where high ones are, 0 where both are."""
        return (self.at_most is not None) - (self.at_least is not None)


@fact
class PartValue:
    """The newest value of a part."""

    subject: str
    """The part."""
    node: str
    """Its node."""
    at: str
    """When it was measured last: ISO 8601."""
    value: float
    """The newest value."""
    limit: ValueLimit
    """The limit of the value."""
    before: float | None = None
    """The mean before the last change of specs; null if the part was not measured then."""
    after: float | None = None
    """The mean after the last change of specs; null if the part was not measured since."""


@fact
class RunMedian:
    """The median over like nodes in a run."""

    run: str
    """The id of the run."""
    at: str
    """When it was measured: ISO 8601."""
    value: float
    """The median, in the unit of the measurement."""


@fact
class SpecChange:
    """What the last change of specs did to the measurement."""

    was: str
    """The specs before the change."""
    now: str
    """The specs after the change."""
    before: float
    """The median before the change, of the parts that were measured before and after it."""
    after: float
    """Their median after the change."""
    parts: int
    """How many parts these are."""

    @property
    def share(self) -> float | None:
        """The change as a share of the value before, None where that was 0."""
        return (self.after - self.before) / abs(self.before) if self.before else None


@fact
class PeerOutlier:
    """A part that is unlike its peers. Values are in the unit of the measurement."""

    part: PartValue = inline()
    score: float
    """How many deviations it is away from the median of its peers: the modified z-score of Iglewicz and Hoaglin."""
    reason: str
    """The same in words."""


@fact
class PeerDistribution:
    """A measurement over the parts of like nodes."""

    check: str
    """The id of the check that measures it."""
    name: str
    """The name of the measurement."""
    unit: str
    """The unit of all values; "" for a count or a ratio."""
    kind: NodeKind
    """What the nodes share."""
    parts: int
    """How many parts were measured."""
    nodes: int
    """On how many nodes they are."""
    levels: tuple[float, ...]
    """Minimum, three quartiles and maximum of the newest values."""
    bars: tuple[int, ...]
    """How many parts have a value in each of 24 equal intervals from the minimum to the maximum."""
    limit: ValueLimit
    """The limit of the newest value."""
    outliers: tuple[PeerOutlier, ...]
    """The parts that are unlike their peers, the farthest first."""
    course: tuple[RunMedian, ...] = ()
    """The medians of the last runs, oldest first."""
    change: SpecChange | None = None
    """What the last change of specs did; null if there was none."""


def describe_values(
    check: str,
    name: str,
    unit: str,
    kind: NodeKind,
    parts: Sequence[PartValue],
    course: Sequence[RunMedian] = (),
    specs: tuple[str, str] | None = None,
) -> PeerDistribution:
    """Return the distribution of at least one part. `specs`: those before and after the change, None without one."""
    values = [part.value for part in parts]
    newest = max(parts, key=lambda part: part.at)
    return PeerDistribution(
        check=check,
        name=name,
        unit=unit,
        kind=kind,
        parts=len(parts),
        nodes=len({part.node for part in parts}),
        levels=_measure_levels(values),
        bars=_count_bars(values),
        limit=newest.limit,
        outliers=tuple(_find_outliers(name, unit, parts)),
        course=tuple(course),
        change=_compare_specs(parts, specs) if specs else None,
    )


def _measure_levels(values: Sequence[float]) -> tuple[float, float, float, float, float]:
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return min(values), low, middle, high, max(values)


def _count_bars(values: Sequence[float]) -> tuple[int, ...]:
    low, high = min(values), max(values)
    edges = [low + (high - low) * number / HISTOGRAM_BARS for number in range(1, HISTOGRAM_BARS)]
    counts = [0] * HISTOGRAM_BARS
    for value in values:
        counts[bisect_right(edges, value) if high > low else HISTOGRAM_BARS // 2] += 1
    return tuple(counts)


def _find_outliers(name: str, unit: str, parts: Sequence[PartValue]) -> list[PeerOutlier]:
    """Return the outliers, the farthest first; none among too few peers."""
    if len(parts) < MIN_PEERS:
        return []
    values = [part.value for part in parts]
    _, low, middle, high, _ = _measure_levels(values)
    fence = TUKEY_FENCE * (high - low)
    outliers = []
    for part, score in zip(parts, compute_z_scores(values), strict=True):
        is_worse = not part.limit.worse_side or part.limit.worse_side * score > 0
        is_outside = not low - fence <= part.value <= high + fence
        is_far = is_outside and abs(part.value - middle) >= MIN_DISTANCE * abs(middle)
        if is_worse and is_far and abs(score) > OUTLIER_SCORE:
            reason = _describe_outlier(name, unit, part, len(parts), middle, score)
            outliers.append(PeerOutlier(part, score, reason))
    return sorted(outliers, key=lambda outlier: (-abs(outlier.score), outlier.part.subject))


def _describe_outlier(name: str, unit: str, part: PartValue, parts: int, middle: float, score: float) -> str:
    side = "above" if score > 0 else "below"
    value = f"{name} {format_value(round(part.value, 3))} {unit}".rstrip()
    peers = f"the median of {parts:,} parts on like nodes is {format_value(round(middle, 3))}"
    return f"{value}, where {peers}: {abs(score):.1f} deviations {side}"


def _compare_specs(parts: Sequence[PartValue], specs: tuple[str, str]) -> SpecChange | None:
    """Return the change over the parts that both specs measured, None for no such part."""
    pairs = [(part.before, part.after) for part in parts if part.before is not None and part.after is not None]
    if not pairs:
        return None
    before, after = (median(values) for values in zip(*pairs, strict=True))
    return SpecChange(*specs, before, after, len(pairs))


_RUNS = "SELECT run, spec_commit, dirty FROM read_parquet($files, hive_partitioning = true) ORDER BY run"
_VALUES = """
WITH kinds AS (SELECT unnest($kind_nodes) AS node, unnest($kind_numbers) AS kind),
epochs AS (SELECT unnest($epoch_runs) AS run, unnest($epoch_numbers) AS epoch),
measured AS (
  SELECT m.*, k.kind, coalesce(e.epoch, 0) AS epoch
  FROM among($files, $nodes, $subjects, $checks, $pattern) m JOIN kinds k USING (node) LEFT JOIN epochs e USING (run)
  WHERE isfinite(value) AND ($what = '' OR name GLOB $what OR check_ GLOB $what OR check_ GLOB 'suites/' || $what
    OR split_part(check_, '::', 2) GLOB $what OR split_part(check_, '::', 2) GLOB 'test_' || $what)
)
"""
_NEWEST = (
    _VALUES
    + """
SELECT check_, name, kind, subject, epoch, any_value(unit), any_value(node), max(run_at), arg_max(value, run_at),
  avg(value), arg_max(struct_pack(low := at_least, high := at_most, source := source), run_at)
FROM measured WHERE epoch >= $epoch_first
GROUP BY check_, name, kind, subject, epoch ORDER BY check_, name, kind, subject, epoch
"""
)
_COURSE = (
    _VALUES
    + """
SELECT check_, name, kind, run, max(run_at), median(value) FROM measured GROUP BY check_, name, kind, run ORDER BY run
"""
)
_COUNT = "SELECT count(*) FROM read_parquet($files)"
"""Parquet has the number of its rows in its footer."""

MeasuredKind = tuple[str, str, int]
"""Check, measurement, and the number of the node kind."""


def count_values(history: OutcomeHistory, *, days: int) -> int:
    """Return how many values of measurements were recorded."""
    counted = history.fetch(_COUNT, days=days, table=MEASUREMENTS_TABLE)
    return int(counted[0][0]) if counted else 0


def query_distributions(
    history: OutcomeHistory, kinds: Mapping[str, NodeKind], pattern: str = "", *, days: int
) -> list[PeerDistribution]:
    """Return the distributions of measurements by check, name and kind. `kinds` has the kind of each node.

    `pattern` is a glob of a measurement, of a check's id or of its function's name; "" is all. An epoch is a time in
    which runs used the same specs; the last two epochs of a measurement are before and after the change.
    """
    every = sorted(set(kinds.values()))
    numbers = {kind: number for number, kind in enumerate(every)}
    runs, specs = _read_epochs(history, days)
    values: dict[str, Any] = {
        "what": pattern,
        "kind_nodes": [*kinds],
        "kind_numbers": [numbers[kind] for kind in kinds.values()],
        "epoch_runs": [*runs],
        "epoch_numbers": [*runs.values()],
    }
    courses: dict[MeasuredKind, list[RunMedian]] = defaultdict(list)
    for check, name, kind, *rest in history.fetch(_COURSE, days=days, table=MEASUREMENTS_TABLE, **values):
        courses[check, name, kind].append(RunMedian(*rest))
    # older values are not compared than those of the last two epochs of some measurement
    epochs_of = [sorted({runs.get(point.run, 0) for point in course}) for course in courses.values()]
    oldest = min((epochs[-2:][0] for epochs in epochs_of), default=0)
    rows = history.fetch(_NEWEST, epoch_first=oldest, days=days, table=MEASUREMENTS_TABLE, **values)
    distributions = []
    for key, of_kind in groupby(rows, lambda row: row[:3]):
        check, name, kind = key
        listed = list(of_kind)
        epochs = sorted({row[4] for row in listed})[-2:]
        pair = (specs[epochs[0]], specs[epochs[1]]) if len(epochs) == 2 else None
        parts = list(_read_parts(listed, epochs))
        course = courses[check, name, kind][-COURSE_RUNS:]
        distributions.append(describe_values(check, name, listed[-1][5], every[kind], parts, course, pair))
    return distributions


def _read_epochs(history: OutcomeHistory, days: int) -> tuple[dict[str, int], list[str]]:
    """Return the epoch of each run, and the specs of each epoch."""
    runs, specs = dict[str, int](), [""]
    for run, commit, dirty in history.fetch(_RUNS, days=days, table=RUNS_TABLE):
        spec = f"{commit[:12] or 'no commit'}{'+changes' if dirty else ''}"
        if spec != specs[-1]:
            specs.append(spec)
        runs[run] = len(specs) - 1
    return runs, specs


def _read_parts(rows: list[HistoryRow], epochs: list[int]) -> Iterator[PartValue]:
    """Yield the parts of one kind; rows are by subject and epoch."""
    for subject, of_part in groupby(rows, lambda row: row[3]):
        by_epoch = {row[4]: row for row in of_part}
        *_, node, at, value, _, limit = by_epoch[max(by_epoch)]
        before, after = (by_epoch[epoch][9] if epoch in by_epoch else None for epoch in (epochs[0], epochs[-1]))
        if len(epochs) < 2:
            before = None
        yield PartValue(subject, node, at, value, ValueLimit(*limit.values()), before, after)


def format_distributions_text(distributions: Iterable[PeerDistribution]) -> Iterator[str]:
    """Yield the lines of each distribution."""
    for distribution in distributions:
        yield f"{distribution.name}, {shorten_check(distribution.check)}: {distribution.kind}"
        low, first, middle, third, high = map(_format_level, distribution.levels)
        places = f"{format_count(distribution.parts, 'part')} of {format_count(distribution.nodes, 'node')}"
        yield f"  {places}: median {middle} {distribution.unit}, half of them {first} to {third}".rstrip()
        yield f"  {low} {draw_bars(distribution.bars)} {high}" + (
            f"   limit {distribution.limit}" if str(distribution.limit) else ""
        )
        if len(distribution.course) > 1:
            points = [point.value for point in distribution.course]
            least, most = min(points), max(points)
            bars = draw_bars([1 + 7 * (point - least) / ((most - least) or 1) for point in points])  # from 1 to 8
            yield f"  medians of {len(points)} runs: {bars} now {_format_level(points[-1])}"
        if distribution.change:
            yield f"  {format_change(distribution.change, distribution.unit)}"
        yield from (
            f"  unlike its peers: {outlier.part.subject:<{SUBJECT_WIDTH}} {escape_control(outlier.reason)}"
            for outlier in distribution.outliers[:MAX_OUTLIERS]
        )
        if len(distribution.outliers) > MAX_OUTLIERS:
            yield f"  and {len(distribution.outliers) - MAX_OUTLIERS} more that are unlike their peers"


def format_change(change: SpecChange, unit: str) -> str:
    """Return what a change of spec did as text."""
    share = (
        f" ({'+' if change.after >= change.before else '-'}{format_percent(abs(change.share))})" if change.share else ""
    )
    medians = f"median {_format_level(change.before)} → {_format_level(change.after)} {unit}".rstrip()
    return f"specs {change.was} → {change.now}: {medians}{share} on {format_count(change.parts, 'part')}"


def draw_bars(counts: Sequence[float]) -> str:
    """Return numbers as a line of blocks; what is not 0 is never blank."""
    most = max(counts, default=0) or 1
    return "".join(BLOCKS[max(1, round(8 * count / most)) if count else 0] for count in counts)


def _format_level(value: float) -> str:
    return format_value(round(value, 3))
