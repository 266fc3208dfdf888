"""Evaluates a week of a fabric's stored scans: keeps it as evidence, which checks judge, and writes its page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from assay.fabric.fabric_drawing import draw_ports
from assay.fabric.scan import format_fabric_subject
from assay.fabric.topology.adapters import map_adapter_rails
from assay.fabric.topology.design_compiler import compile_topology
from assay.fabric.weekly.evaluation import WeeklyEvaluation, evaluate_fabric_week
from assay.fabric.weekly.page import render_weekly_page
from assay.fabric.weekly.week import DAYS
from assay.fabric.weekly.week_aggregation import aggregate_week
from assay.fabric.weekly.week_evidence import format_week_subject, make_week_evidence, read_week_evidence
from assay.model.errors import AssayError
from assay.model.fabric.fabric_design import FabricDesign
from assay.model.fleet import Fleet
from assay.model.gc_pause import pause_gc
from assay.observe.evidence_store import EvidenceStore, write_atomically


def record_fabric_week(
    fleet: Fleet, store: EvidenceStore, reports: Path, now: datetime, design: FabricDesign, days: float = DAYS
) -> WeeklyEvaluation:
    """Evaluate the stored scans of the last `days`; keep a whole week as evidence and as a page in `reports/weekly/`.

    Another number of days is not kept. Raises AssayError for a fabric that was never scanned.
    """
    latest = store.latest(format_fabric_subject(design))
    if latest is None:
        raise AssayError(f"the fabric {design.name} was never scanned", fix=f"run `assay fabric scan {design.name}`")
    topology = compile_topology(design, fleet)
    cables = list(topology.cables)
    with pause_gc():
        document = make_week_evidence(aggregate_week(design.name, cables, latest, store.get, now, days))
        evaluation = evaluate_fabric_week(
            read_week_evidence(document), cables, map_adapter_rails(fleet, design), design.limits
        )
    worst = [ranked.port.end.port_id for ranked in evaluation.worst]
    evaluation = replace(evaluation, drawing=draw_ports(topology, worst))
    if days == DAYS:
        store.store_latest(document)
        write_atomically(locate_week_page(reports, design), render_weekly_page(evaluation).encode())
    return evaluation


def locate_week_page(reports: Path, design: FabricDesign) -> Path:
    """Return the path of a fabric's weekly page."""
    return reports / "weekly" / f"{design.name}.html"


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
