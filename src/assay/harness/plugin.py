"""The pytest plugin, as pytest sees it in every session: options, markers, and a door.

Loaded wherever assay is installed, so it imports next to nothing and does nothing until pytest opens a module
below a fleet's `suites/`. Only then `assay.harness.suites` is loaded and takes over those modules' functions.
Options live here and never in a conftest, where pytest would mistake their values for test paths.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

MARKERS = (
    "phase(*names): the phases of the lifecycle in which this check runs",
    "fault(class): the fault class that a failure of this check means",
    "active: needs a workload on the node to have been run",
    "passive: reads only what the node says anyway",
)
SIGNS = {"pass": ".", "fail": "F", "error": "E", "skip": "s"}
STARTED_BY = "ASSAY_STARTED_BY"
"""The process id of who started a shard, in its environment."""
WORDS = {"pass": "passed", "fail": "failed", "error": "error", "skip": "skipped"}


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the options of fleet suites.

    pytest would compile all of assay anew to explain its asserts, as it does with all that comes with a plugin. There
    are none to explain, and that costs more than an engineer's one check.
    """
    getattr(pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("assay")
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
    group.addoption("--store", metavar="FILE", help="keep outcomes in FILE; what is there already is not judged again")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers. A shard of a run ends with the run."""
    if STARTED_BY in os.environ:
        from assay.harness.orphan import end_with_parent

        end_with_parent()
    for line in MARKERS:
        config.addinivalue_line("markers", line)
    if config.getoption("--store") and not hasattr(config, "workerinput"):
        _take_in(config)  # of workers that were killed


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


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """Let `--dist loadgroup` keep what is judged of one node in one worker of xdist."""
    home = Path(config.getoption("--fleet") or config.rootpath)
    if config.getoption("dist") != "loadgroup" or not (home / "inventory").is_dir() or not (home / "suites").is_dir():
        return None
    from assay.harness.spread import ByNode

    return ByNode(config, log)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Bring together what worker processes wrote; what was judged in an earlier session counts as much as in this."""
    given = session.config.getoption("--store")
    refused = session.exitstatus in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR)
    if not given or refused or hasattr(session.config, "workerinput"):
        return
    if suites := session.config.pluginmanager.get_plugin("assay-suites"):
        suites.deliver_no_more()
    _take_in(session.config)
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and Path(given).exists():
        session.exitstatus = _verdict_of(Path(given), session.exitstatus)


def _take_in(config: pytest.Config) -> None:
    from assay.harness.deliver import take_in

    take_in(Path(config.getoption("--store")))


def _verdict_of(file: Path, otherwise: int) -> int:
    from assay.harness.deliver import decides

    found = decides(file)
    return otherwise if found is None else int(found)


def _fleet_of(module: Path, config: pytest.Config) -> tuple[Path, Path] | None:
    """Return the folder of suites that a module lies in and the fleet it judges, None for a module that is no suite."""
    suites = next(folder for folder in module.parents if folder.name == "suites")
    named = config.getoption("--fleet")
    home = Path(named).resolve() if named else suites.parent
    return (suites, home) if (home / "inventory").is_dir() and (home / "specs").is_dir() else None
