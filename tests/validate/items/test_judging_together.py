"""Neighbours that are judged in one call look and tell as if pytest had run each of them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from assay.validate.items.slim_items import SlimItem

pytest_plugins = ["pytester"]

SUITE = """
import warnings
import pytest

pytestmark = pytest.mark.phase("production")

def test_cpu(node):
    assert node.host.cpu_threads > 0

def test_gpu(gpu):
    assert gpu.pcie.width == (4 if gpu.slot == "gpu5" else 16)

def test_warns(gpu):
    assert gpu.pcie.width
    warnings.warn("thin")
"""
ORDINARY = """
import pytest

@pytest.mark.parametrize("least", [1, 1000])
def test_repeated(node, least):
    assert node.host.cpu_threads >= least
"""
FIXED = [
    "--import-mode=importlib",
    "-p",
    "assay.validate.plugin",
    "-p",
    "no:cacheprovider",
    "--assay-node",
    "n0003,n0004",
]


class Foreign:
    """Has a say in how a report is shown, so that pytest's own reporter shows each."""

    def pytest_report_teststatus(self, report):
        """Leave it as it is."""


@pytest.fixture
def two(fleet_copy):
    """One module of slim items and one of ordinary ones, and evidence of two nodes."""
    fleet_copy.suite(SUITE)
    (fleet_copy.root / "suites" / "test_more.py").write_text(ORDINARY)
    fleet_copy.collected("n0003", "n0004")
    return fleet_copy


def shown(fleet, *options, plugins=()):
    """Return what a session prints, without times."""
    words = [*FIXED, f"--rootdir={fleet.root}", str(fleet.root / "suites"), *options]
    text = fleet.pytester.runpytest_inprocess(*words, plugins=list(plugins)).stdout.str()
    return re.sub(r"[0-9.]+s\b", "#s", text)


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (20, ("-q",)),
        (80, ()),
        (20, ("-q", "-s")),
        (20, ("-q", "-x")),
        (20, ("-q", "--color=yes")),
        (20, ("-o", "console_output_style=count")),
        (20, ("-o", "console_output_style=classic")),
        (80, ("-q", "-k", "cpu")),
    ],
)
def test_the_terminal_looks_as_pytests_own(two, monkeypatch, columns, options):
    monkeypatch.setenv("COLUMNS", str(columns))
    ours, pytests = shown(two, *options), shown(two, *options, plugins=[Foreign()])
    if "--color=yes" in options:  # one colour for many dots, where pytest begins it anew for each
        ours, pytests = (text.replace("\x1b[0m\x1b[32m", "") for text in (ours, pytests))
    assert ours == pytests


class Warnings:
    """Keeps which item each warning is of."""

    def __init__(self):
        self.of = []

    def pytest_warning_recorded(self, warning_message, nodeid):
        self.of.append((nodeid.rpartition("::")[2], str(warning_message.message)))


def test_each_warning_is_laid_to_its_own_item(two):
    heard = Warnings()
    assert "16 passed, 4 deselected, 16 warnings" in shown(two, "-k", "warns", plugins=[heard])
    assert set(heard.of) == {
        (f"test_warns[h100-a/{node}/gpu{slot}]", "thin") for node in ("n0003", "n0004") for slot in range(8)
    }


class Watching:
    """Wraps the protocol, as a plugin does that sets a deadline for each item."""

    def __init__(self):
        self.seen = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.seen.append(item.nodeid)
        return (yield)


def test_a_plugin_that_wraps_the_protocol_sees_each_item(two):
    watching = Watching()
    shown(two, plugins=[watching])
    assert len(watching.seen) == len(set(watching.seen)) == 2 * (1 + 8 + 8 + 2)


class Looking:
    """Looks back at what passed when all is over."""

    def pytest_terminal_summary(self, terminalreporter):
        self.passed = {report.nodeid.rpartition("::")[2] for report in terminalreporter.stats["passed"]}


def test_reports_of_passes_can_be_looked_at_in_the_end(two):
    looking = Looking()
    shown(two, "-k", "cpu", plugins=[looking])
    assert looking.passed == {"test_cpu[h100-a/n0003]", "test_cpu[h100-a/n0004]"}


class Collected:
    """Keeps the items."""

    def pytest_collection_modifyitems(self, items):
        self.items = list(items)


def test_a_slim_item_has_all_that_pytest_gives_to_any_item(two):
    collected = Collected()
    shown(two, "--collect-only", plugins=[collected])
    slim = next(item for item in collected.items if isinstance(item, SlimItem))
    name = slim.name
    (other,) = {item.parent for item in collected.items if item.nodeid == slim.nodeid}

    class Whole(SlimItem):
        __init__ = pytest.Item.__init__

    whole = Whole.from_parent(other, name=name, nodeid=slim.nodeid)
    of_pytest = {*vars(whole), "name", "parent", "config", "session", "path", "_id", "_store"}
    assert {what for what in of_pytest if not hasattr(slim, what)} == set()
    assert slim.id == whole.id
    assert slim.nodeid == whole.nodeid
    assert slim.ihook is whole.session.gethookproxy(whole.path)
    slim.stash[pytest.StashKey()] = 1
    assert len(slim.stash) == 1


class Attributes:
    """Looks in the end for what it left at each report, as hypothesis does."""

    def pytest_terminal_summary(self, terminalreporter):
        """Find nothing."""
        self.found = [vars(report).get("mine") for reports in terminalreporter.stats.values() for report in reports]


def test_what_a_plugin_left_at_a_report_can_be_looked_for(two):
    looking = Attributes()
    assert "1 failed" in shown(two, "-k", "test_gpu and n0003", plugins=[looking])
    assert len(looking.found) >= 8
    assert set(looking.found) == {None}


SEEN = """
import pytest, sys

class Looking:
    def pytest_configure(self, config):
        print("marked:", "assay" in config.pluginmanager.rewrite_hook._must_rewrite)
        print("found:", config.pluginmanager.has_plugin("assay"))

pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "."], plugins=[Looking()])
"""


def test_pytest_does_not_compile_assay_anew_for_each_user(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    said = subprocess.run([sys.executable, "-c", SEEN], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "marked: False" in said
    assert "found: True" in said
