"""Evaluates a week of a fabric's stored scans: keeps it as evidence, which checks judge, and writes its report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from assay.fabric.design.compiler import compile_topology
from assay.fabric.design.devices import map_adapter_rails
from assay.fabric.fabric_answers import WeekChanges
from assay.fabric.scan import format_fabric_subject, list_discovery_remarks
from assay.fabric.weekly.aggregation import aggregate_week
from assay.fabric.weekly.evaluation import WeeklyEvaluation, compare_weeks, evaluate_fabric_week
from assay.fabric.weekly.text_report import format_weekly_text
from assay.fabric.weekly.week import DAYS, FabricWeek
from assay.fabric.weekly.week_evidence import (
    StoredWeek,
    choose_week_before,
    forget_old_weeks,
    format_week_subject,
    list_stored_weeks,
    make_week_evidence,
    read_week_evidence,
)
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.gc_pause import pause_gc
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.observe.evidence_store import EvidenceStore, write_atomically


class RecordedWeek(NamedTuple):
    """An evaluated week, and what changed since the week before, None without one."""

    evaluation: WeeklyEvaluation
    changes: WeekChanges | None


def record_fabric_week(
    fleet: Fleet, store: EvidenceStore, reports: Path, now: datetime, design: FabricDesign, days: float = DAYS
) -> RecordedWeek:
    """Evaluate the stored scans of the last `days`; keep a whole week as evidence and as text in `reports/weekly/`.

    Another number of days is not kept. Raises AssayError for a fabric that was never scanned.
    """
    latest = store.latest(format_fabric_subject(design))
    if latest is None:
        raise AssayError(f"the fabric {design.name} was never scanned", fix=f"run `assay fabric scan {design.name}`")
    topology = compile_topology(design, fleet)
    cables, rails = list(topology.cables), map_adapter_rails(fleet, design)
    with pause_gc():
        week = aggregate_week(design.name, cables, latest, store.get, now, days)
        last = store.latest(format_week_subject(design.name))
        stored = forget_old_weeks(list_stored_weeks(last) if last else (), week.end)
        document = make_week_evidence(week, stored)
        evaluation = evaluate_fabric_week(read_week_evidence(document), cables, rails, design.limits)
        before = _read_week_before(store, stored, week.end)
        earlier = evaluate_fabric_week(before, cables, rails, design.limits) if before else None
    changes = compare_weeks(earlier, evaluation)
    evaluation = replace(evaluation, remarks=list_discovery_remarks(latest))
    if days == DAYS:
        store.store_latest(document)
        write_atomically(locate_week_report(reports, design), f"{format_weekly_text(evaluation, changes)}\n".encode())
    return RecordedWeek(evaluation, changes)


def _read_week_before(store: EvidenceStore, stored: Iterable[StoredWeek], end: datetime) -> FabricWeek | None:
    """Return the week before, None where no week was stored then, or where it is no longer there."""
    chosen = choose_week_before(stored, end)
    try:
        return read_week_evidence(store.get(chosen.digest)) if chosen else None
    except AssayError:
        return None


def locate_week_report(reports: Path, design: FabricDesign) -> Path:
    """Return the path of a fabric's weekly report."""
    return reports / "weekly" / f"{design.name}.txt"


def find_due_weeks(
    fleet: Fleet, store: EvidenceStore, nodes: Iterable[str], *, refresh: bool = False
) -> Iterator[FabricDesign]:
    """Yield the designs of the nodes' fabrics that were scanned since their last stored week; with `refresh`, ever."""
    names = dict.fromkeys(fleet.nodes[node].settings.fabric or "" for node in nodes)
    for design in (fleet.designs[name] for name in names if name in fleet.designs):
        latest = store.latest(format_fabric_subject(design))
        week = None if refresh else store.latest(format_week_subject(design.name))
        if latest is not None and (week is None or week.read("week", "newest").value != latest.digest()):
            yield design
