"""The Allure report: where every check stands now, with one point of history for each run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import assay
from assay.harness.allure import write_results
from assay.harness.run import read_outcomes
from assay.model.errors import Trouble
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, Run

HISTORY_LIMIT = 20
DEADLINE_S = 300
CHARTS = ("currentStatus", "statusDynamics", "statusTransitions")
Told = tuple[Run, Outcome]


@dataclass(frozen=True)
class Tools:
    """Node and the Allure command line."""

    node: str
    allure: Path

    @classmethod
    def find(cls, root: Path) -> Tools:
        """Return the tools of this environment, checkout or fleet. Raises Trouble where they are not installed."""
        beside = Path(sys.executable).parent / "node"
        node = str(beside) if beside.exists() else shutil.which("node")
        homes = (root, Path(assay.__file__).parents[2], Path.cwd())
        allure = next((path for home in homes if (path := home / "node_modules/allure/cli.js").exists()), None)
        if node is None or allure is None:
            raise Trouble(
                "the Allure report needs Node and the npm package allure",
                fix="in a checkout of assay, `.venv/bin/npm ci` installs it (make run and make test do that)",
            )
        return cls(node, allure)


def build(fleet: Fleet, reports: Path, points: int = 3) -> Path:
    """Build `reports/allure` from the runs so far and return its page.

    Each run since the last report, of the newest `points`, adds a point to the history. Raises Trouble.
    """
    runs = read_runs(reports / "runs")
    if not runs:
        raise Trouble(f"there is no run in {reports / 'runs'} to report on", fix="run `assay validate` first")
    page = reports / "allure" / "index.html"
    last = last_told(reports / "history.jsonl")
    new = [run for run, _ in runs if run.id > last][-points:]
    if not new and page.exists():
        return page
    tools = Tools.find(fleet.root)
    for run in new or [runs[-1][0]]:
        picture = newest(runs, run.id)
        _generate(tools, fleet, reports, run, picture, plugins=_plugins(fleet) if run.id == runs[-1][0].id else {})
    return page


def read_runs(folder: Path) -> list[tuple[Run, Path]]:
    """Return every finished run below a folder, oldest first, with its outcomes' file."""
    found = []
    for about in sorted(folder.glob("*/run.json")):
        plain: dict[str, Any] = json.loads(about.read_text())
        plain |= {"phases": tuple(plain["phases"]), "nodes": tuple(plain["nodes"])}
        found.append((Run(**plain), about.with_name("outcomes.jsonl")))
    return found


def newest(runs: Sequence[tuple[Run, Path]], until: str) -> list[Told]:
    """Return the newest outcome of each check × subject, by the evidence's time, of the runs up to one."""
    latest: dict[tuple[str, str], Told] = {}
    for run, file in runs:
        if run.id > until:
            continue
        for outcome in read_outcomes(file):
            key = (outcome.check, outcome.subject)
            if key not in latest or _measured(run, outcome) >= _measured(*latest[key]):
                latest[key] = (run, outcome)
    return list(latest.values())


def last_told(history: Path) -> str:
    """Return the newest run that Allure's history has a point for, "" for none; a point is named after its run."""
    if not history.exists():
        return ""
    with history.open() as file:
        return max((json.loads(line)["name"].split()[-1] for line in file if line.strip()), default="")


def _measured(run: Run, outcome: Outcome) -> str:
    return outcome.evidence_at or run.at


def _plugins(fleet: Fleet) -> dict[str, Any]:
    """Return what the page is made of: a tree by place, and charts over the runs."""
    charts = [{"type": chart} for chart in CHARTS]
    name = f"{fleet.root.name} at {fleet.commit[:12] or 'no commit'}"
    options = {"reportName": name, "groupBy": ["pool", "rack", "node"], "reportLanguage": "en", "charts": charts}
    return {"awesome": {"options": options}}


def _generate(
    tools: Tools, fleet: Fleet, reports: Path, run: Run, picture: Iterable[Told], plugins: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory(prefix="assay-report-") as scratch:
        home = Path(scratch)
        write_results(home / "results", fleet, picture)
        output = reports / "allure" if plugins else home / "nothing"
        config = {
            "name": f"run {run.id}",
            "output": str(output),
            "historyPath": str(reports / "history.jsonl"),
            "historyLimit": HISTORY_LIMIT,
            "appendHistory": True,
            "plugins": plugins,
        }
        (home / "allurerc.json").write_text(json.dumps(config))
        if plugins:
            shutil.rmtree(output, ignore_errors=True)
        _run(tools, home, reports)


def _run(tools: Tools, home: Path, reports: Path) -> None:
    command = [
        tools.node,
        str(tools.allure),
        "generate",
        str(home / "results"),
        "--config",
        str(home / "allurerc.json"),
    ]
    try:
        done = subprocess.run(command, cwd=reports, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise Trouble(f"allure took longer than {DEADLINE_S} s", fix="report fewer nodes") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Trouble(f"allure ended with {done.returncode}: {said[-1] if said else 'it said nothing'}")
