"""The pytest plugin, as pytest sees it in every session: options, markers, and a door.

Loaded wherever assay is installed, so it imports next to nothing and does nothing until pytest opens a module
below a fleet's `suites/`. Only then `assay.harness.items.suite_hooks` is loaded and takes over those modules' functions.
Options live here and never in a conftest, where pytest would mistake their values for test paths.

A shard's process ends with the one that started it, however that ends: nobody is left to hear what it finds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Any, Never

import pytest

CHECK_MARKERS = (
    "phase(*names): the phases of the lifecycle in which this check runs",
    "fault(class): the fault class that a failure of this check means",
    "active: needs a workload on the node to have been run",
    "passive: reads only what the node says anyway",
)
VERDICT_SIGNS = {"pass": ".", "fail": "F", "error": "E", "skip": "s"}
PARENT_PID_VARIABLE = "ASSAY_STARTED_BY"
"""The process id of who started a shard, in its environment."""
VERDICT_WORDS = {"pass": "passed", "fail": "failed", "error": "error", "skip": "skipped"}


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
    if PARENT_PID_VARIABLE in os.environ:
        end_with_parent()
    for line in CHECK_MARKERS:
        config.addinivalue_line("markers", line)
    if config.getoption("--store") and not hasattr(config, "workerinput"):
        _merge_worker_files(config)  # of workers that were killed


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Wake the suites when pytest opens the first module of a fleet."""
    config = parent.config
    if "suites" not in module_path.parts or config.pluginmanager.has_plugin("assay-suites"):
        return
    found = _find_fleet(module_path, config)
    if found is None:
        return
    from assay.harness.items.suite_hooks import open_suites

    config.pluginmanager.register(open_suites(config, *found), "assay-suites")


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    """Name a check's result by its verdict, also where a worker process judged it."""
    verdict = getattr(report, "verdict", None)
    if verdict is None:
        return None
    return VERDICT_WORDS[verdict], VERDICT_SIGNS[verdict], VERDICT_WORDS[verdict].upper()


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """Let `--dist loadgroup` keep what is judged of one node in one worker of xdist."""
    home = Path(config.getoption("--fleet") or config.rootpath)
    if config.getoption("dist") != "loadgroup" or not (home / "inventory").is_dir() or not (home / "suites").is_dir():
        return None
    from assay.harness.xdist_scheduler import NodeGroupScheduler

    return NodeGroupScheduler(config, log)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Bring together what worker processes wrote; what was judged in an earlier session counts as much as in this."""
    given = session.config.getoption("--store")
    refused = session.exitstatus in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR)
    if not given or refused or hasattr(session.config, "workerinput"):
        return
    if suites := session.config.pluginmanager.get_plugin("assay-suites"):
        suites.deliver_no_more()
    _merge_worker_files(session.config)
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and Path(given).exists():
        session.exitstatus = _exit_status_of(Path(given), session.exitstatus)


def _merge_worker_files(config: pytest.Config) -> None:
    from assay.harness.judging.outcome_delivery import merge_worker_files

    merge_worker_files(Path(config.getoption("--store")))


def _exit_status_of(file: Path, otherwise: int) -> int:
    from assay.harness.judging.outcome_delivery import has_deciding_outcomes

    found = has_deciding_outcomes(file)
    return otherwise if found is None else int(found)


def _find_fleet(module: Path, config: pytest.Config) -> tuple[Path, Path] | None:
    """Return the folder of suites that a module lies in and the fleet it judges, None for a module that is no suite."""
    suites = next(folder for folder in module.parents if folder.name == "suites")
    named = config.getoption("--fleet")
    home = Path(named).resolve() if named else suites.parent
    return (suites, home) if (home / "inventory").is_dir() and (home / "specs").is_dir() else None


PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Let the kernel kill this process when the one that is named in the environment, its parent, ends.

    Told to end by SIGINT or SIGTERM, it puts on disk what was judged; whoever tells it twice, as a cluster does that
    tells all processes of a job, tells it once. What this process starts itself is told nothing. Raises SystemExit
    where the parent has ended already.
    """
    parent = os.environ.pop(PARENT_PID_VARIABLE, "")
    if not parent:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        raise SystemExit(f"process {parent}, which started this shard, has ended")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt_once)


def _interrupt_once(*_: object) -> Never:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
