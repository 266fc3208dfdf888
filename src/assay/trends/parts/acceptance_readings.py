"""What each part read in its burn-in, by the ledger: one number for each measure, a higher one is worse. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from assay.burnin.drift import list_increments, list_points
from assay.burnin.fleet_comparison import compute_gpu_rates
from assay.burnin.slopes import estimate_slope
from assay.lifecycle.burn_in_record import BurnInRecord, advance_burn_in
from assay.model.entries.burn_in_entries import BurnInEndedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.load.burn_in_spec import BurnIn, DriftMeasure
from assay.model.load.burn_in_window import BurnInWindow
from assay.model.timestamps import parse_time
from assay.trends.parts.part_stays import days_of

MEASURES: Mapping[str, str] = {
    "gflops": "lower Gflop/s",
    "gflops_slope": "falling Gflop/s, against its neighbours",
    "temperature": "warmer than its neighbours at equal power",
    "temperature_slope": "warming, against its neighbours at equal power",
    "corrected": "more corrected memory errors",
}
"""The measures, and what is worse."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A part at the end of its burn-in, `ended` in days since 1970, with the measures that could be told."""

    node: str
    subject: str
    serial: str
    ended: float
    readings: Mapping[str, float]


def list_acceptances(node: str, entries: Iterable[LedgerEntry], specs: Mapping[str, BurnIn]) -> Iterator[Acceptance]:
    """Yield the parts of each burn-in of a node that was done, from its entries of `BURN_IN_KINDS`.

    `specs`: the burn-ins that the fleet declares; of another one, no change over the hours is told.
    """
    record: BurnInRecord | None = None
    for entry in entries:
        before, record = record, advance_burn_in(record, entry, "")
        if entry.kind == BurnInEndedEntry.kind and before and before.is_running and record and record.outcome == "done":
            yield from _read_parts(node, before, days_of(parse_time(entry.at)), specs.get(before.spec))


def _read_parts(node: str, record: BurnInRecord, ended: float, spec: BurnIn | None) -> Iterator[Acceptance]:
    windows, rates = record.windows, compute_gpu_rates(record.windows)
    for subject in sorted({name for window in windows for name in (*window.gpus, *window.corrected)}):
        readings = dict(_read_changes(spec, windows, subject)) if spec else {}
        readings |= {"gflops": -rates[subject]} if subject in rates else {}
        if increments := list(list_increments(windows, subject)):
            readings["corrected"] = float(sum(count for _, count in increments))
        yield Acceptance(node, subject, record.serials.get(subject, ""), ended, readings)


def _read_changes(spec: BurnIn, windows: Sequence[BurnInWindow], subject: str) -> Iterator[tuple[str, float]]:
    """Yield level and slopes against the neighbours, where enough windows tell them."""
    changes: tuple[tuple[DriftMeasure, int], ...] = (("temperature", 1), ("gflops", -1))
    for measure, sign in changes:
        points = list(list_points(spec, windows, measure, subject))
        if len(points) < spec.drift.points_at_least:
            continue
        if measure == "temperature":
            yield "temperature", median(point.value for point in points)
        if slope := estimate_slope(points, spec.drift.confidence):
            yield f"{measure}_slope", sign * slope.per_day
