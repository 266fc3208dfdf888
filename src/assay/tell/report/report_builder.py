"""Builds the reports of a fleet: what changed since yesterday, and Allure's of all latest outcomes.

Allure writes Google's tag manager into each report and has no option against it. The tag is removed, so that no page
tells another host who reads it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import assay
from assay.act.ingest.silent_nodes import read_unknown_times, read_unread_nodes
from assay.act.loop.snapshot import FaultWaveTraits
from assay.act.tickets.ticket_diff import TICKETS
from assay.decide.state.node_projection import NODE_STATES
from assay.decide.state.node_state import NodeState
from assay.ledger.ledger_reader import read_projection
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.page import render_page
from assay.model.ticket import Ticket
from assay.observe.evidence_store import EvidenceStore
from assay.tell.report import overview_phrases
from assay.tell.report.allure import (
    ALLURE_PAGE,
    MAX_POINT_RESULTS,
    MAX_POINTS,
    MIN_POINTS,
    NO_ALLURE,
    AllureLinks,
    ReportAttachments,
    count_judgements_once,
    list_categories,
    list_history_points,
    write_allure_results,
)
from assay.tell.report.fleet_week import WEEK
from assay.tell.report.latest_outcomes import LatestOutcomes
from assay.tell.report.overview_model import FleetOverview, build_overview, group_by_pool_and_rack
from assay.tell.report.status_changes import DAY_S, NO_ROLLOUT, RolloutWaits
from assay.tell.views.next_step import list_open_tickets
from assay.validate.runs.run_validation import list_fresh_hours

ALLURE_HISTORY = "allure-history.jsonl"
ALLURE_TIMEOUT_S = 300
_FOREIGN_SCRIPT = re.compile(
    r"""<script\b[^>]*\ssrc\s*=\s*["']?([a-z]+:)?//[^>]*>.*?</script\s*>""", re.DOTALL | re.IGNORECASE
)
MAX_ROOMY_NODES, MIN_DENSE_NODES = 120, 2500
"""Up to the first number, each cell of the map shows the node's name. From the second number on, cells are small."""
ALLURE_CHARTS = ("currentStatus", "statusDynamics", "statusTransitions")


@dataclass(frozen=True)
class AllureTools:
    """Node and the Allure command line."""

    node: str
    allure: Path

    @classmethod
    def require_installed(cls, root: Path) -> AllureTools:
        """Return the tools of this environment, checkout or fleet. Raises AssayError where they are not installed."""
        tools = cls.find_installed(root)
        if tools is None:
            fix = "install Node, then type `npm ci` in the fleet repository; in a checkout of assay: make run"
            raise AssayError("the Allure report needs Node and the npm package allure", fix=fix)
        return tools

    @classmethod
    def find_installed(cls, root: Path) -> AllureTools | None:
        """Return the tools of this environment, checkout or fleet, None where they are not installed."""
        beside = Path(sys.executable).parent / "node"
        node = str(beside) if beside.exists() else shutil.which("node")
        homes = (root, Path(assay.__file__).parents[2], Path.cwd())
        allure = next((path for home in homes if (path := home / "node_modules/allure/cli.js").exists()), None)
        return None if node is None or allure is None else cls(node, allure)


@dataclass(frozen=True)
class ReportPages:
    """The first page of each report, and messages on runs that could not be read. A damaged run hides no other."""

    overview: Path
    allure: Path
    unread: list[str]


def build_reports(
    fleet: Fleet,
    ledger: Ledger | None,
    reports: Path,
    evidence: Path,
    window_s: float = DAY_S,
    rollout: RolloutWaits = NO_ROLLOUT,
    now: datetime | None = None,
) -> ReportPages:
    """Build `reports/index.html` and `allure` of what stands by the ledger; return their pages.

    `evidence` is the folder of the evidence store, which holds artefacts of failures. If the ledger has grown since the
    last report, Allure's pages are made again. The overview shows what changed within `window_s` seconds before the
    newest run, and its week beside the one before. Failures that the `rollout` explains are counted apart.
    Raises AssayError; the overview is written even where Allure is not installed.
    """
    if ledger is None or not ledger.outcomes_head():
        raise AssayError("there is no run in the ledger to report on", fix="run `assay validate` first")
    unread: list[str] = []
    pages = ReportPages(reports / "index.html", reports / ALLURE_PAGE, unread)
    checks, holders, fresh_hours = _list_declared(fleet)
    with LatestOutcomes(ledger, reports, fresh_hours) as latest:
        latest.delete_undeclared(checks, holders)
        newest = latest.list_reported_runs()[-1]
        links = AllureLinks(newest.run if AllureTools.find_installed(fleet.root) else "")
        states = read_projection(ledger, NODE_STATES).node_states()
        traits = FaultWaveTraits(fleet, ledger, EvidenceStore(evidence))
        tickets = read_projection(ledger, TICKETS).values()
        unseen = read_unread_nodes(fleet, evidence.parent, states.values(), now) if now else {}
        unknown = read_unknown_times(fleet, ledger, states.values(), now - 2 * WEEK, now, unseen) if now else {}
        overview = build_overview(fleet, latest, window_s, rollout, states, traits, tickets, now, unknown)
        unread += latest.unread
        pages.overview.write_text(render_overview(overview, links, in_lab=fleet.is_lab))
        made_of, entries = reports / "allure" / "made-of", f"entry {ledger.head()}, outcome {ledger.outcomes_head()}"
        if not made_of.exists() or made_of.read_text() != entries:
            points = read_points(reports / ALLURE_HISTORY)
            _generate_allure(fleet, reports, evidence, latest, points, list_open_tickets(tickets), states)
            made_of.write_text(entries)
    return pages


def read_points(history: Path) -> dict[str, dict[str, Any]]:
    """Return the points of Allure's history that assay made, by run. A damaged file has none: it is made again."""
    try:
        points = map(json.loads, history.read_text(encoding="utf-8").splitlines()) if history.exists() else ()
        return {point["uuid"]: point for point in points if point["name"] == f"run {point['uuid']}"}
    except (ValueError, TypeError, KeyError):
        return {}


def render_overview(overview: FleetOverview, links: AllureLinks = NO_ALLURE, *, in_lab: bool = False) -> str:
    """Return the HTML, in one file. All text is escaped."""
    newly, lost = (0, 0) if overview.first else (len(overview.broke), len(overview.lost))
    nodes = [holder for holder in overview.holders if holder.node]
    size = len(overview.holders)
    return render_page(
        __package__,
        "overview.html.j2",
        in_lab=in_lab,
        overview=overview,
        words=overview_phrases,
        link=links,
        pools=group_by_pool_and_rack(overview.holders),
        density="roomy" if size <= MAX_ROOMY_NODES else "dense" if size >= MIN_DENSE_NODES else "",
        nodes=len(nodes),
        lost_on=len({change.holder for change in overview.lost}),
        ill=sum(holder.is_ill for holder in nodes),
        still=sum(holder.failing for holder in overview.holders) - newly,
        still_unknown=sum(holder.unknown for holder in overview.holders) - lost,
    )


def _generate_allure(
    fleet: Fleet,
    reports: Path,
    evidence: Path,
    latest: LatestOutcomes,
    known: Mapping[str, dict[str, Any]],
    tickets: Mapping[str, Mapping[str, Ticket]],
    states: Mapping[str, NodeState],
) -> None:
    """Write Allure's pages, and the history that they show: a point for each run but the newest. Raises AssayError."""
    tools = AllureTools.require_installed(fleet.root)
    output, runs, holders = reports / "allure", latest.list_reported_runs(), list(latest.read_holders())
    most = min(max(MAX_POINT_RESULTS // len(holders), MIN_POINTS), MAX_POINTS)
    points = list(list_history_points(latest, known, runs[-most:]))
    with tempfile.TemporaryDirectory(prefix="assay-report-") as scratch:
        home, run = Path(scratch), runs[-1].run
        attachments = ReportAttachments((reports / "artefacts", evidence / "objects"))
        incidents = write_allure_results(home / "results", fleet, holders, run, attachments, tickets, states)
        earlier = (point for point in points if point["uuid"] != run)
        once = count_judgements_once(earlier, {holder.name: holder.measured for holder in holders})
        _write_points(home / ALLURE_HISTORY, once)
        config = {
            "name": f"run {run}",
            "output": str(output),
            "historyPath": str(home / ALLURE_HISTORY),
            "appendHistory": False,
            "categories": list_categories(fleet, incidents),
            "plugins": _page_plugins(fleet, most),
        }
        (home / "allurerc.json").write_text(json.dumps(config))
        shutil.rmtree(output, ignore_errors=True)
        _run_allure(tools, home, reports)
    _write_points(reports / ALLURE_HISTORY, points)
    page = output / "index.html"
    if page.exists():
        page.write_text(remove_foreign_scripts(page.read_text(encoding="utf-8")), encoding="utf-8")


def _write_points(file: Path, points: Iterable[dict[str, Any]]) -> None:
    file.write_text("".join(f"{json.dumps(point)}\n" for point in points), encoding="utf-8")


def _list_declared(fleet: Fleet) -> tuple[set[str], set[str], Mapping[str, float]]:
    """Return the ids of declared checks, the names of nodes, racks and fabrics, and how old a check's pass may be."""
    checks = {check.id for catalog in fleet.check_catalogs.values() for check in catalog.checks}
    racks = {f"{node.pool}/rack-{node.rack}" for node in fleet.nodes.values()}
    fabrics = {f"fabric/{node.settings.fabric}" for node in fleet.nodes.values() if node.settings.fabric}
    return checks, {*fleet.nodes, *racks, *fabrics}, list_fresh_hours(fleet, ())


def _page_plugins(fleet: Fleet, points: int) -> dict[str, Any]:
    """Return Allure's plugin for the page: charts over so many runs first, and a tree by pool and rack."""
    charts = [{"type": chart, "limit": points} for chart in ALLURE_CHARTS]
    name = f"{fleet.root.name} at {fleet.commit[:12] or 'no commit'}"
    options = {"reportName": name, "groupBy": ["pool", "rack"], "reportLanguage": "en", "charts": charts}
    options |= {"sections": ["charts", "timeline"], "defaultSection": "charts"}
    return {"awesome": {"options": options}}


def _run_allure(tools: AllureTools, home: Path, reports: Path) -> None:
    results, config = str(home / "results"), str(home / "allurerc.json")
    command = [tools.node, str(tools.allure), "generate", results, "--config", config]
    try:
        done = subprocess.run(
            command, cwd=reports, capture_output=True, text=True, timeout=ALLURE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise AssayError(f"allure took longer than {ALLURE_TIMEOUT_S} s", fix="report fewer nodes") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise AssayError(f"allure ended with {done.returncode}{f': {lines[-1]}' if lines else ' and printed nothing'}")


def remove_foreign_scripts(page: str) -> str:
    """Return the page without the scripts of other hosts, and otherwise unchanged."""
    return _FOREIGN_SCRIPT.sub("", page)
