"""The reports of a fleet: an overview of what broke since yesterday, and Allure's of where every check stands.

Takes out of a page what would tell a stranger who reads it: scripts that it loads from elsewhere.

Allure writes Google's tag manager into each report, and cannot be told not to. Who reads of a fleet, nobody counts.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import assay
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.results.report.allure_results import ReportAttachments, write_allure_results
from assay.results.report.html_page import render_overview
from assay.results.report.latest_outcomes import LatestOutcomes
from assay.results.report.overview_model import build_overview
from assay.results.report.status_changes import DAY_S
from assay.results.store.reader import StoredRun
from assay.results.store.run_lookup import list_runs
from assay.results.store.run_manifest import ENDED_KEY


def remove_foreign_scripts(page: str) -> str:
    """Return the page without the scripts of other hosts, and else the same to the letter."""
    found = _ForeignScripts(page)
    found.feed(page)
    found.close()
    for start, end in reversed(found.spans):
        page = page[:start] + page[end:]
    return page


class _ForeignScripts(HTMLParser):
    """Notes where elements begin and end that are scripts of other hosts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.spans: list[tuple[int, int]] = []
        self._lines = [0, *accumulate(len(line) + 1 for line in page.split("\n"))]
        self._begun: int | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin at a script whose source names a host."""
        if tag == "script" and urlsplit(dict(attrs).get("src") or "").netloc:
            self._begun = self._at()

    def handle_endtag(self, tag: str) -> None:
        """End with it."""
        if tag == "script" and self._begun is not None:
            self.spans.append((self._begun, self._at() + len("</script>")))
            self._begun = None

    def _at(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column


ALLURE_HISTORY, ALLURE_HISTORY_LIMIT = "allure-history.jsonl", 20
ALLURE_TIMEOUT_S = 300
ALLURE_CHARTS = ("currentStatus", "statusDynamics", "statusTransitions")
_NAMED = re.compile(r'"name":\s*"run ([^"\s]+)"')


@dataclass(frozen=True)
class AllureTools:
    """Node and the Allure command line."""

    node: str
    allure: Path

    @classmethod
    def require_installed(cls, root: Path) -> AllureTools:
        """Return the tools of this environment, checkout or fleet. Raises Trouble where they are not installed."""
        found = cls.find_installed(root)
        if found is None:
            raise AssayError(
                "the Allure report needs Node and the npm package allure",
                fix="in a checkout of assay, `.venv/bin/npm ci` installs it (make run and make test do that)",
            )
        return found

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
    """The first page of each report, and what could not be read for it: a damaged run hides no other."""

    overview: Path
    allure: Path
    unread: list[str]


def build_reports(fleet: Fleet, reports: Path, evidence: Path, points: int = 3, window_s: float = DAY_S) -> ReportPages:
    """Build `reports/index.html` and `reports/allure` from the runs so far and return their pages.

    `evidence` is the folder of the evidence store, which holds what was kept of failures. Each run since the last
    report, of the newest `points`, adds a point to Allure's history. The overview tells what changed within `window_s`
    before the newest run. Raises Trouble; where only Allure is missing, the overview is there all the same.
    """
    runs, unread = list_ended_runs(reports)
    pages = ReportPages(reports / "index.html", reports / "allure" / "index.html", unread)
    pointed = [name for run in runs if (name := run.parent.name) > find_last_reported(reports / ALLURE_HISTORY)][
        -points:
    ]
    with LatestOutcomes.open(reports / "standing.sqlite") as standing:
        allure = AllureReport(fleet, reports, (reports / "artefacts", evidence / "objects"), standing)
        for run in _add_new_runs(standing, runs, unread):
            standing.delete_undeclared(*_declared(fleet))
            if run.parent.name in pointed and run != runs[-1] and allure.tools:
                allure.generate(run.parent.name, plugins={})
        told = standing.list_reported_runs()
        if not told:
            raise AssayError(f"there is no run in {reports / 'runs'} to report on", fix="run `assay validate` first")
        pages.overview.write_text(render_overview(build_overview(fleet, standing, window_s)))
        if told[-1].run in pointed or not pages.allure.exists():
            allure.generate(told[-1].run, plugins=_plugins(fleet))
    return pages


def _add_new_runs(standing: LatestOutcomes, runs: Iterable[Path], unread: list[str]) -> Iterator[Path]:
    """Lay each run that was not told of yet over the ones before, and yield it; note in `unread` what is damaged."""
    told = {point.run for point in standing.list_reported_runs()}
    for run in runs:
        if run.parent.name not in told:
            try:
                standing.add_run(run)
            except AssayError as trouble:
                unread.append(str(trouble))
            else:
                yield run


def list_ended_runs(reports: Path) -> tuple[list[Path], list[str]]:
    """Return the file of every run that came to its end, oldest first, and what to say of those that are damaged."""
    found, unread = list[Path](), list[str]()
    for path in list_runs(reports):
        try:
            with StoredRun.open(path) as stored:
                found += [path] if ENDED_KEY in stored.about else []
        except (AssayError, sqlite3.DatabaseError) as error:
            unread.append(
                str(error) if isinstance(error, AssayError) else f"{path}: is no run that can be read: {error}"
            )
    return found, unread


def find_last_reported(history: Path) -> str:
    """Return the newest run that Allure's history has a point for, "" for none; a point is named after its run."""
    if not history.exists():
        return ""
    with history.open() as file:
        return max((found[1] for line in file if (found := _NAMED.search(line, 0, 300))), default="")


@dataclass
class AllureReport:
    """Makes Allure's report of what stands."""

    fleet: Fleet
    reports: Path
    kept: tuple[Path, ...]
    standing: LatestOutcomes

    @cached_property
    def tools(self) -> AllureTools | None:
        """Node and Allure, None where they are not installed."""
        return AllureTools.find_installed(self.fleet.root)

    def generate(self, run: str, plugins: dict[str, Any]) -> None:
        """Add a point to the history, and make the report's pages where `plugins` says of what. Raises Trouble."""
        tools = AllureTools.require_installed(self.fleet.root)
        with tempfile.TemporaryDirectory(prefix="assay-report-") as scratch:
            home = Path(scratch)
            held, attachments = self.standing.read_holders(), ReportAttachments(self.kept)
            write_allure_results(home / "results", self.fleet, held, run, attachments)
            output = self.reports / "allure" if plugins else home / "nothing"
            config = {
                "name": f"run {run}",
                "output": str(output),
                "historyPath": str(self.reports / ALLURE_HISTORY),
                "historyLimit": ALLURE_HISTORY_LIMIT,
                "appendHistory": True,
                "plugins": plugins,
            }
            (home / "allurerc.json").write_text(json.dumps(config))
            if plugins:
                shutil.rmtree(output, ignore_errors=True)
            _run_allure(tools, home, self.reports)
            if plugins:
                _remove_trackers(output / "index.html")


def _remove_trackers(page: Path) -> None:
    """Let nobody elsewhere know that somebody reads this report."""
    if page.exists():
        page.write_text(remove_foreign_scripts(page.read_text(encoding="utf-8")), encoding="utf-8")


def _declared(fleet: Fleet) -> tuple[set[str], set[str]]:
    """Return the checks, and the nodes, racks and fabrics, of which something may stand."""
    checks = {check.id for catalogue in fleet.check_catalogs.values() for check in catalogue.checks}
    racks = {f"{node.pool}/rack-{node.rack}" for node in fleet.nodes.values()}
    fabrics = {f"fabric/{node.settings.fabric}" for node in fleet.nodes.values() if node.settings.fabric}
    return checks, {*fleet.nodes, *racks, *fabrics}


def _plugins(fleet: Fleet) -> dict[str, Any]:
    """Return what the page is made of: a tree by place, and charts over the runs."""
    charts = [{"type": chart} for chart in ALLURE_CHARTS]
    name = f"{fleet.root.name} at {fleet.commit[:12] or 'no commit'}"
    options = {"reportName": name, "groupBy": ["pool", "rack"], "reportLanguage": "en", "charts": charts}
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
        said = (done.stderr or done.stdout).strip().splitlines()
        raise AssayError(f"allure ended with {done.returncode}: {said[-1] if said else 'it said nothing'}")
