"""The pytest plugin of assay: its options and markers, and the hook that finds suites.

pytest loads it in every session where assay is installed. So it imports little, and does nothing until pytest opens a
module below a fleet's `suites/`; then it loads `assay.validate.items.suite_hooks`, which takes over their functions.
The options are registered here because pytest takes the values of a conftest's options for test paths.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from assay.model.gc_pause import collect_rarely
from assay.validate.markers import CHECK_MARKERS
from assay.validate.pytest_internals import IS_SILENT_KEY, exempt_assay_from_rewriting
from assay.validate.runs.parent_process import PARENT_PID_VARIABLE, end_with_parent
from assay.validate.runs.typed_selection import TYPED_SELECTION_KEY, TypedSelection

IS_THROUGH_KEY = pytest.StashKey[bool]()
VERDICT_SIGNS = {"pass": ".", "fail": "F", "error": "E", "skip": "s"}
VERDICT_WORDS = {"pass": "passed", "fail": "failed", "error": "error", "skip": "skipped"}


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the options of fleet suites."""
    exempt_assay_from_rewriting(pluginmanager)
    group = parser.getgroup("assay", "fleet suites (assay)")
    group.addoption("--assay-fleet", metavar="DIR", help="fleet repository (default: the folder that holds suites/)")
    group.addoption("--assay-evidence", metavar="DIR", help="evidence by node (default: FLEET/.assay/evidence/latest)")
    group.addoption("--assay-ledger", metavar="WHERE", help="ledger with earlier passes, for `since_last_pass`")
    for name, plural in (("node", "nodes"), ("pool", "pools"), ("rack", "racks"), ("phase", "phases")):
        wanted = f"judge only these {plural} (comma, repeat)"
        group.addoption(f"--assay-{name}", action="append", default=[], metavar="NAME", help=wanted)
    group.addoption("--assay-shard", metavar="I/N", help="judge the I-th of N shards of the nodes, counted from 1")
    group.addoption("--assay-ordinary-items", action="store_true", help="make every check an ordinary item: slower")
    group.addoption("--assay-store", metavar="FILE", help="store outcomes in FILE; what it holds is not judged again")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Keep what was typed, before a conftest can change it."""
    typed = early_config.known_args_namespace
    early_config.stash[TYPED_SELECTION_KEY] = TypedSelection(typed.keyword, typed.markexpr, tuple(typed.deselect or ()))


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, tie a shard to the run that started it, and merge what killed workers left."""
    if PARENT_PID_VARIABLE in os.environ:
        collect_rarely()
        end_with_parent()
        config.stash[IS_SILENT_KEY] = config.option.verbose <= 0  # the run shows the progress, from what is stored
    for line in CHECK_MARKERS:
        config.addinivalue_line("markers", line)
    if config.getoption("--assay-store") and not hasattr(config, "workerinput"):
        _merge_worker_files(config)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Load the suites' hooks when pytest opens the first module of a fleet."""
    config = parent.config
    if "suites" not in module_path.parts or config.pluginmanager.has_plugin("assay-suites"):
        return
    fleet = _find_fleet(module_path, config)
    if fleet is None:
        return
    from assay.validate.items.suite_hooks import open_suites

    config.pluginmanager.register(open_suites(config, *fleet), "assay-suites")


def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport, config: pytest.Config
) -> tuple[str, str, str] | None:
    """Show a check's result as its verdict, also where a worker process judged it."""
    verdict = getattr(report, "verdict", None)
    if verdict is None:
        return None
    if config.stash.get(IS_SILENT_KEY, False):
        return VERDICT_WORDS[verdict], "", ""
    return VERDICT_WORDS[verdict], VERDICT_SIGNS[verdict], VERDICT_WORDS[verdict].upper()


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """Let `--dist loadgroup` judge all items of a node in one worker."""
    home = Path(config.getoption("--assay-fleet") or config.rootpath)
    if config.getoption("dist") != "loadgroup" or not (home / "inventory").is_dir() or not (home / "suites").is_dir():
        return None
    from assay.validate.xdist_scheduler import NodeGroupScheduler

    return NodeGroupScheduler(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Note that the loop has ended by itself: nothing else says that all items were judged."""
    ran = yield
    session.stash[IS_THROUGH_KEY] = not (session.shouldfail or session.shouldstop)
    return ran


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Merge the files of worker processes, and set the exit status by all outcomes of the file, earlier ones too."""
    if session.config.getoption("--assay-shard"):
        gc.freeze()  # the process ends now, and pytest would look for garbage ten times on the way
    file = session.config.getoption("--assay-store")
    refused = session.exitstatus in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR)
    if not file or refused:
        return
    if suites := session.config.pluginmanager.get_plugin("assay-suites"):
        suites.close_delivery()  # in a worker too: its session merges the files as soon as it hears that this one ended
    if hasattr(session.config, "workerinput"):
        return
    _merge_worker_files(session.config)
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and Path(file).exists():
        from assay.validate.judging.session_outcome_file import has_deciding_outcomes

        has_deciding = has_deciding_outcomes(Path(file))
        session.exitstatus = session.exitstatus if has_deciding is None else int(has_deciding)
    if session.config.getoption("--assay-shard") and session.stash.get(IS_THROUGH_KEY, False):
        from assay.validate.judging.session_outcome_file import mark_judged

        mark_judged(Path(file))


def _merge_worker_files(config: pytest.Config) -> None:
    from assay.validate.judging.session_outcome_file import merge_worker_files

    merge_worker_files(Path(config.getoption("--assay-store")))


def _find_fleet(module: Path, config: pytest.Config) -> tuple[Path, Path] | None:
    """Return the suites folder of a module and the fleet that it judges, None for a module that is no suite."""
    suites = next(folder for folder in module.parents if folder.name == "suites")
    named = config.getoption("--assay-fleet")
    home = Path(named).resolve() if named else suites.parent
    return (suites, home) if (home / "inventory").is_dir() and (home / "specs").is_dir() else None
