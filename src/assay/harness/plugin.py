"""The pytest plugin, as pytest sees it in every session: options, markers, and a door.

Loaded wherever assay is installed, so it imports next to nothing and does nothing until pytest opens a module
below a fleet's `suites/`. Only then `assay.harness.suites` is loaded and takes over those modules' functions.
Options live here and never in a conftest, where pytest would mistake their values for test paths.
"""

from __future__ import annotations

from pathlib import Path

import pytest

MARKERS = (
    "phase(*names): the phases of the lifecycle in which this check runs",
    "fault(class): the fault class that a failure of this check means",
    "active: needs a workload on the node to have been run",
    "passive: reads only what the node says anyway",
)
SIGNS = {"pass": ".", "fail": "F", "error": "E", "skip": "s"}
WORDS = {"pass": "passed", "fail": "failed", "error": "error", "skip": "skipped"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options of fleet suites."""
    group = parser.getgroup("assay", "fleet suites (assay)")
    group.addoption("--fleet", metavar="DIR", help="fleet repository (default: where inventory/ and specs/ are)")
    group.addoption("--evidence", metavar="DIR", help="evidence by node (default: FLEET/.assay/evidence/latest)")
    group.addoption("--ledger", metavar="WHERE", help="ledger with earlier passes, for what counts since then")
    for name, what in (("node", "nodes"), ("pool", "pools"), ("rack", "racks"), ("phase", "phases")):
        group.addoption(
            f"--{name}", action="append", default=[], metavar="NAME", help=f"judge these {what} only (comma, repeat)"
        )
    group.addoption("--shard", metavar="I/N", help="judge the I-th of N shares of the nodes, counted from 1")
    group.addoption("--ordinary-items", action="store_true", help="make every check an ordinary, slower, pytest item")
    group.addoption("--outcomes", metavar="FILE", help="append one JSON line per outcome to FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for line in MARKERS:
        config.addinivalue_line("markers", line)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Wake the suites when pytest opens the first module of a fleet."""
    config = parent.config
    if "suites" not in module_path.parts or config.pluginmanager.has_plugin("assay-suites"):
        return
    found = _fleet_of(module_path, config)
    if found is None:
        return
    from assay.harness.suites import wake

    config.pluginmanager.register(wake(config, *found), "assay-suites")


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    """Name a check's result by its verdict, also where a worker process judged it."""
    verdict = getattr(report, "verdict", None)
    if verdict is None:
        return None
    return WORDS[verdict], SIGNS[verdict], WORDS[verdict].upper()


def _fleet_of(module: Path, config: pytest.Config) -> tuple[Path, Path] | None:
    """Return the folder of suites that a module lies in and the fleet it judges, None for a module that is no suite."""
    suites = next(folder for folder in module.parents if folder.name == "suites")
    named = config.getoption("--fleet")
    home = Path(named).resolve() if named else suites.parent
    return (suites, home) if (home / "inventory").is_dir() and (home / "specs").is_dir() else None
