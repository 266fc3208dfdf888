"""How property tests choose their examples, which tests come first, and what several rooms share.

Property tests are repeatable: the same code is tried with the same examples everywhere, however busy the machine is.
`make explore` tries others.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
from collections import Counter
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings

from assay.declare.yaml import ParseCache
from tests.support.collected_once import fork_workers
from tests.support.cpu_budget import CpuBudget
from tests.support.forked_assay import end_importer, lend_spawner
from tests.support.forked_python import start_modules_by
from tests.support.judged_answers import ShownAnswers, judge_runner
from tests.support.shared_folders import SHARED_FOLDERS, FolderScheduling, find_work_unit
from tests.support.shared_reading import share_what_is_read

collect_ignore = ["data"]

share_what_is_read(ParseCache())
start_modules_by(lend_spawner)
judge_runner()

LONGEST_FIRST = ("stories", "chaos")
"""Folders of tests that take minutes."""
MOST_FILES = 300
"""So many may be open between two files of tests."""
MEMORY_FOLDER = Path("/dev/shm")
MEMORY_BYTES = 6 * 2**30
"""How much must be free in memory for the tests' folders: a virtual fleet is 24,000 small files, and there are many."""


def _use_memory_for_folders() -> None:
    """Put `tmp_path` into memory where that is possible: on a slow disk, making files is half of what a lab costs."""
    if "PYTEST_DEBUG_TEMPROOT" in os.environ or not MEMORY_FOLDER.is_dir():
        return
    room = os.statvfs(MEMORY_FOLDER)
    if room.f_bavail * room.f_frsize >= MEMORY_BYTES and not room.f_flag & (os.ST_NOEXEC | os.ST_RDONLY):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY_FOLDER)


_use_memory_for_folders()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts background jobs so, and Ctrl-C ends our children
    signal.signal(signal.SIGINT, signal.default_int_handler)

BY_THE_CLOCK = [HealthCheck.too_slow]
settings.register_profile(
    "repeatable",
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=BY_THE_CLOCK,
)
settings.register_profile(
    "explore", max_examples=1000, deadline=None, print_blob=True, suppress_health_check=BY_THE_CLOCK
)
settings.load_profile("repeatable")


yaml.safe_load = partial(yaml.load, Loader=yaml.CSafeLoader)  # the same, in a tenth of the time
yaml.safe_load_all = partial(yaml.load_all, Loader=yaml.CSafeLoader)
re._MAXCACHE = 100_000  # a catalogue of faults has more patterns than Python keeps, and hundreds of tests read one


gc.set_threshold(10_000, 20, 20)  # looking for garbage often is a tenth of the tests' CPU time
atexit.register(gc.unfreeze)  # native modules complain of what is left


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let no collection of garbage look at what is imported and collected: that would be a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest of the chosen tests, so that no worker is left alone with them at the end."""
    minutes = Counter[Path]()
    for item in items:
        minutes[item.path] = max(minutes[item.path], _minutes_of_file(item))
    items.sort(key=lambda item: (-minutes[item.path], not _is_in_a_long_folder(item)))


def _is_in_a_long_folder(item: pytest.Item) -> bool:
    return item.path.parent.name in LONGEST_FIRST or find_work_unit(item.nodeid) in SHARED_FOLDERS


def _minutes_of_file(item: pytest.Item) -> int:
    """Return what the mark of a slow test says about its file, one minute where it says nothing."""
    mark = item.get_closest_marker("slow")
    return int(mark.kwargs.get("minutes", 1)) if mark else 0


def pytest_configure(config: pytest.Config) -> None:
    """Watch the CPU time of what `make test` runs, and keep together what shares something dear."""
    config.pluginmanager.register(ShownAnswers(), "shown-answers")
    if config.option.markexpr == "not slow":
        config.pluginmanager.register(CpuBudget(), "cpu-budget")
        config.pluginmanager.register(_FolderSchedule(), "folder-schedule")


class _FolderSchedule:
    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> FolderScheduling | None:
        return FolderScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let go of ledgers that were not closed: `ulimit -n` is 1,024 in many places."""
    if (nextitem is None or nextitem.path != item.path) and len(list(Path("/dev/fd").iterdir())) > MOST_FILES:
        gc.collect()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Import the tests before xdist starts its workers."""
    fork_workers(session.config)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """End what the tests share until the last of them has run."""
    end_importer()
