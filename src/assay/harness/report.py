"""The reports of a fleet: an overview of what broke since yesterday, and Allure's of where every check stands."""

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
from pathlib import Path
from typing import Any

import assay
from assay.harness.allure import write_results
from assay.harness.attached import Attachments
from assay.harness.order import ENDED
from assay.harness.overview.changes import DAY_S
from assay.harness.overview.look import overview
from assay.harness.overview.page import as_page
from assay.harness.overview.standing import Standing
from assay.harness.store.read import Stored
from assay.harness.store.runs import all_runs
from assay.harness.unwatched import unwatched
from assay.model.errors import Trouble
from assay.model.fleet import Fleet

HISTORY, HISTORY_LIMIT = "allure-history.jsonl", 20
DEADLINE_S = 300
CHARTS = ("currentStatus", "statusDynamics", "statusTransitions")
_NAMED = re.compile(r'"name":\s*"run ([^"\s]+)"')


@dataclass(frozen=True)
class Tools:
    """Node and the Allure command line."""

    node: str
    allure: Path

    @classmethod
    def find(cls, root: Path) -> Tools:
        """Return the tools of this environment, checkout or fleet. Raises Trouble where they are not installed."""
        found = cls.found(root)
        if found is None:
            raise Trouble(
                "the Allure report needs Node and the npm package allure",
                fix="in a checkout of assay, `.venv/bin/npm ci` installs it (make run and make test do that)",
            )
        return found

    @classmethod
    def found(cls, root: Path) -> Tools | None:
        """Return the tools of this environment, checkout or fleet, None where they are not installed."""
        beside = Path(sys.executable).parent / "node"
        node = str(beside) if beside.exists() else shutil.which("node")
        homes = (root, Path(assay.__file__).parents[2], Path.cwd())
        allure = next((path for home in homes if (path := home / "node_modules/allure/cli.js").exists()), None)
        return None if node is None or allure is None else cls(node, allure)


@dataclass(frozen=True)
class Pages:
    """The first page of each report, and what could not be read for it: a damaged run hides no other."""

    overview: Path
    allure: Path
    unread: list[str]


def build(fleet: Fleet, reports: Path, evidence: Path, points: int = 3, window_s: float = DAY_S) -> Pages:
    """Build `reports/index.html` and `reports/allure` from the runs so far and return their pages.

    `evidence` is the folder of the evidence store, which holds what was kept of failures. Each run since the last
    report, of the newest `points`, adds a point to Allure's history. The overview tells what changed within `window_s`
    before the newest run. Raises Trouble; where only Allure is missing, the overview is there all the same.
    """
    runs, unread = finished(reports)
    pages = Pages(reports / "index.html", reports / "allure" / "index.html", unread)
    pointed = [name for run in runs if (name := run.parent.name) > last_told(reports / HISTORY)][-points:]
    with Standing.open(reports / "standing.sqlite") as standing:
        allure = Allure(fleet, reports, (reports / "artefacts", evidence / "objects"), standing)
        for run in _laid_over(standing, runs, unread):
            standing.forget(*_declared(fleet))
            if run.parent.name in pointed and run != runs[-1] and allure.tools:
                allure.generate(run.parent.name, plugins={})
        told = standing.points()
        if not told:
            raise Trouble(f"there is no run in {reports / 'runs'} to report on", fix="run `assay validate` first")
        pages.overview.write_text(as_page(overview(fleet, standing, window_s)))
        if told[-1].run in pointed or not pages.allure.exists():
            allure.generate(told[-1].run, plugins=_plugins(fleet))
    return pages


def _laid_over(standing: Standing, runs: Iterable[Path], unread: list[str]) -> Iterator[Path]:
    """Lay each run that was not told of yet over the ones before, and yield it; note in `unread` what is damaged."""
    told = {point.run for point in standing.points()}
    for run in runs:
        if run.parent.name not in told:
            try:
                standing.lay_over(run)
            except Trouble as trouble:
                unread.append(str(trouble))
            else:
                yield run


def finished(reports: Path) -> tuple[list[Path], list[str]]:
    """Return the file of every run that came to its end, oldest first, and what to say of those that are damaged."""
    found, unread = list[Path](), list[str]()
    for path in all_runs(reports):
        try:
            with Stored.open(path) as stored:
                found += [path] if ENDED in stored.about else []
        except (Trouble, sqlite3.DatabaseError) as error:
            unread.append(str(error) if isinstance(error, Trouble) else f"{path}: is no run that can be read: {error}")
    return found, unread


def last_told(history: Path) -> str:
    """Return the newest run that Allure's history has a point for, "" for none; a point is named after its run."""
    if not history.exists():
        return ""
    with history.open() as file:
        return max((found[1] for line in file if (found := _NAMED.search(line, 0, 300))), default="")


@dataclass
class Allure:
    """Makes Allure's report of what stands."""

    fleet: Fleet
    reports: Path
    kept: tuple[Path, ...]
    standing: Standing

    @cached_property
    def tools(self) -> Tools | None:
        """Node and Allure, None where they are not installed."""
        return Tools.found(self.fleet.root)

    def generate(self, run: str, plugins: dict[str, Any]) -> None:
        """Add a point to the history, and make the report's pages where `plugins` says of what. Raises Trouble."""
        tools = Tools.find(self.fleet.root)
        with tempfile.TemporaryDirectory(prefix="assay-report-") as scratch:
            home = Path(scratch)
            held, attachments = self.standing.holders(), Attachments(self.kept)
            write_results(home / "results", self.fleet, held, run, attachments)
            output = self.reports / "allure" if plugins else home / "nothing"
            config = {
                "name": f"run {run}",
                "output": str(output),
                "historyPath": str(self.reports / HISTORY),
                "historyLimit": HISTORY_LIMIT,
                "appendHistory": True,
                "plugins": plugins,
            }
            (home / "allurerc.json").write_text(json.dumps(config))
            if plugins:
                shutil.rmtree(output, ignore_errors=True)
            _run(tools, home, self.reports)
            if plugins:
                _leave_alone(output / "index.html")


def _leave_alone(page: Path) -> None:
    """Let nobody elsewhere know that somebody reads this report."""
    if page.exists():
        page.write_text(unwatched(page.read_text(encoding="utf-8")), encoding="utf-8")


def _declared(fleet: Fleet) -> tuple[set[str], set[str]]:
    """Return the checks, and the nodes, racks and fabrics, of which something may stand."""
    checks = {check.id for catalogue in fleet.checks.values() for check in catalogue.checks}
    racks = {f"{node.pool}/rack-{node.rack}" for node in fleet.nodes.values()}
    fabrics = {f"fabric/{node.variables['fabric']}" for node in fleet.nodes.values() if node.variables.get("fabric")}
    return checks, {*fleet.nodes, *racks, *fabrics}


def _plugins(fleet: Fleet) -> dict[str, Any]:
    """Return what the page is made of: a tree by place, and charts over the runs."""
    charts = [{"type": chart} for chart in CHARTS]
    name = f"{fleet.root.name} at {fleet.commit[:12] or 'no commit'}"
    options = {"reportName": name, "groupBy": ["pool", "rack"], "reportLanguage": "en", "charts": charts}
    return {"awesome": {"options": options}}


def _run(tools: Tools, home: Path, reports: Path) -> None:
    results, config = str(home / "results"), str(home / "allurerc.json")
    command = [tools.node, str(tools.allure), "generate", results, "--config", config]
    try:
        done = subprocess.run(command, cwd=reports, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise Trouble(f"allure took longer than {DEADLINE_S} s", fix="report fewer nodes") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Trouble(f"allure ended with {done.returncode}: {said[-1] if said else 'it said nothing'}")
