"""Only what a person typed narrows a run; settings, conftests and plugins that could are named, and stay the same."""

from __future__ import annotations

from contextlib import closing

import pytest

from assay.cli.workspace import Workspace
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.tell.views.node_explanation import explain_node, format_notes
from assay.validate.items.suite_hooks import SHIPPED_SETTINGS
from assay.validate.results.run_summary import RunSummary
from assay.validate.runs.run_validation import RunInterrupted, RunOptions, resume_run
from assay.validate.runs.shard_processes import LocalProcesses

pytest_plugins = ["pytester"]

SUITE = """
import pytest

pytestmark = pytest.mark.phase("zap")


def test_one(gpu):
    assert gpu.pcie.width == 16


def test_two(gpu):
    assert gpu.pcie.width == 16
"""
KINDS = {"test_one": "gpu", "test_two": "gpu"}
DESELECTING = """
def pytest_collection_modifyitems(config, items):
    gone = [item for item in items if "test_two" in item.name]
    items[:] = [item for item in items if item not in gone]
    config.hook.pytest_deselected(items=gone)
"""
WAYS = {
    "addopts -k": ("pytest.ini", "[pytest]\naddopts = -k one\n"),
    "addopts -m": ("pytest.toml", '[pytest]\naddopts = ["-m", "active"]\n'),
    "addopts --deselect": ("pytest.ini", "[pytest]\naddopts = --deselect suites/test_own.py::test_two\n"),
    "addopts --ignore": ("tox.ini", "[pytest]\naddopts = --ignore suites/test_own.py\n"),
    "a conftest that deselects": ("conftest.py", DESELECTING),
    "a conftest that drops": ("conftest.py", DESELECTING.replace("    config.hook", "    # config.hook")),
    "a conftest that sets -k": ("conftest.py", "def pytest_configure(config):\n    config.option.keyword = 'one'\n"),
    "a conftest that sets --deselect": (
        "conftest.py",
        "def pytest_configure(config):\n    config.option.deselect = ['suites/test_own.py::test_two']\n",
    ),
    "a conftest that ignores": ("conftest.py", "collect_ignore_glob = ['suites/*']\n"),
    "names of functions": ("pytest.ini", "[pytest]\npython_functions = test_o*\n"),
    "names of files": ("pytest.ini", "[pytest]\npython_files = check_*.py\n"),
}


@pytest.fixture
def fleet(fleet_copy):
    fleet_copy.declared(SUITE, **KINDS)
    fleet_copy.collected("n0003")
    return fleet_copy


ALWAYS = ("addopts -k", "a conftest that drops", "a conftest that ignores", "names of files")
"""One of each kind. The others, which pytest takes by the same doors, are asked among the slow tests."""


@pytest.mark.parametrize("way", [way if way in ALWAYS else pytest.param(way, marks=pytest.mark.slow) for way in WAYS])
def test_nothing_but_the_command_line_takes_a_declared_check_out_of_a_run(fleet, way):
    name, text = WAYS[way]
    (fleet.root / name).write_text(text)
    result = fleet.judge("n0003")
    assert result.counts.total() == 16
    assert result.stored.count_left_out() == 0
    if way.startswith("addopts"):  # ignored, so everything is judged
        assert (result.counts, result.passed) == ({"pass": 16}, True)
    else:
        assert result.counts["error"] >= 8
        assert not result.passed
    if "ignores" not in way and "files" not in way and "--ignore" not in way:
        assert name in result.stored.influences


def test_what_was_typed_leaves_out_and_is_counted(fleet):
    (fleet.root / "conftest.py").write_text(DESELECTING)
    result = fleet.judge("n0003", extra=["-k", "two and gpu3"])
    assert result.counts == {"error": 1}
    (error,) = result.stored.outcomes()
    assert error.reason.startswith("left out by a conftest or a plugin; only the command line may leave checks out")
    (fleet.root / "conftest.py").unlink()
    result = fleet.judge("n0003", extra=["--deselect", "suites/test_own.py::test_two"])
    assert (result.counts, result.passed) == ({"pass": 8}, True)
    counted = "8 outcomes on 1 node: 8 passed; 8 not due, or left out by the command line"
    assert RunSummary(result.stored).headline() == counted


@pytest.mark.parametrize("name", ["pytest.ini", "conftest.py", "pyproject.toml"])
def test_settings_that_changed_since_a_run_began_are_refused(fleet, name):
    class Impatient(LocalProcesses):
        def collect_ended(self):
            raise KeyboardInterrupt

    asked = {"reports": fleet.root / "reports", "ledger": None, "clock": SystemClock()}
    with pytest.raises(RunInterrupted):
        fleet.judge("n0003", options=RunOptions(Impatient(1)))
    (fleet.root / name).write_text("[pytest]\n" if name == "pytest.ini" else "")
    with pytest.raises(AssayError, match=f"{name} changed since run .* started"):
        resume_run(load_fleet(fleet.root), "last", **asked)
    (fleet.root / name).unlink()
    assert resume_run(load_fleet(fleet.root), "last", **asked).counts == {"pass": 16}


def test_a_plugin_is_named_with_its_hooks(fleet, monkeypatch):
    (fleet.root / "own_plugin.py").write_text(
        "def pytest_runtest_setup(item): pass\ndef pytest_addoption(parser): pass\n"
    )
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    result = fleet.judge("n0003", extra=["-p", "own_plugin"])
    assert result.stored.influences == {"own_plugin.py": "runtest_setup"}
    assert result.counts == {"pass": 16}


AUTOMATIC = """
import pytest


@pytest.fixture(autouse=True)
def kind(request):
    request.node.obj = lambda gpu: None
"""
REPLACING = """
import pytest


@pytest.fixture
def gpu(gpu):
    return gpu
"""


@pytest.mark.parametrize(
    ("text", "way"),
    [(AUTOMATIC, "kind of suites/conftest.py runs by itself"), (REPLACING, "gpu of suites/conftest.py")],
)
def test_a_fixture_that_no_check_asks_for_makes_no_check_pass(fleet, text, way):
    (fleet.root / "suites/conftest.py").write_text(text)
    result = fleet.judge("n0003")
    assert result.counts == {"error": 16}
    assert all(f"the fixture {way}" in outcome.reason for outcome in result.stored.outcomes())


def test_a_fixture_that_a_check_asks_for_is_its_own(fleet):
    (fleet.root / "suites/conftest.py").write_text("import pytest\n\n\n@pytest.fixture\ndef lanes():\n    return 16\n")
    suite = fleet.root / "suites/test_own.py"
    suite.write_text(suite.read_text().replace("(gpu):", "(gpu, lanes):").replace("== 16", "== lanes"))
    assert fleet.judge("n0003").counts == {"pass": 16}


HELPER = "LANES = 16\n"
PASSING = """
from assay.validate.judging.verdict import CheckContext

make = CheckContext.make_outcome
CheckContext.make_outcome = lambda self, verdict, reason, duration_s: make(self, "pass", "", duration_s)
"""
LATE = """
    from assay.validate.items import slim_item_runner

    slim_item_runner.find_phase_verdict = lambda error, when: "pass"
"""


@pytest.mark.parametrize("name", ["conftest.py", "test_other.py"])
def test_a_suite_that_replaces_what_judges_is_refused_by_name(fleet, name):
    (fleet.root / "suites" / name).write_text(PASSING)
    result = fleet.judge("n0003")
    assert (result.counts, result.passed) == ({"error": 16}, False)
    said = f"CheckContext.make_outcome, by which assay judges, was replaced by suites/{name}"
    assert all(said in outcome.reason for outcome in result.stored.outcomes())


def test_a_check_that_replaces_what_judges_while_it_runs_makes_no_run_pass(fleet):
    suite = fleet.root / "suites/test_own.py"
    suite.write_text(suite.read_text().replace("def test_one(gpu):\n", f"def test_one(gpu):{LATE}", 1))
    assert not fleet.judge("n0003").passed


def test_what_a_check_imports_is_named(fleet):
    (fleet.root / "suites/conftest.py").write_text("import sys\n\nsys.path.insert(0, __file__.rpartition('/')[0])\n")
    (fleet.root / "suites/own_lanes.py").write_text(HELPER)
    suite = fleet.root / "suites/test_own.py"
    suite.write_text(suite.read_text().replace("import pytest\n", "import pytest\nfrom own_lanes import LANES\n", 1))
    result = fleet.judge("n0003")
    assert result.counts == {"pass": 16}
    assert result.stored.influences == {"suites/conftest.py": "imported", "suites/own_lanes.py": "imported"}


def test_a_module_whose_checks_are_not_due_judges_nothing(fleet):
    (fleet.root / "suites/test_later.py").write_text(SUITE.replace('"zap"', '"later"'))
    assert fleet.judge("n0003", phases=("zap",)).stored.influences == {}


@pytest.mark.parametrize(("own", "named"), [("", {}), ("# ours\n", {"pytest.ini": "settings"})])
def test_pytests_settings_are_named_where_they_are_not_as_init_wrote_them(fleet, own, named):
    (fleet.root / "pytest.ini").write_text(SHIPPED_SETTINGS.read_text() + own)
    assert fleet.judge("n0003", phases=("zap",)).stored.influences == named


def test_explain_names_what_else_judged_a_node(fleet):
    (fleet.root / "conftest.py").write_text("def pytest_runtest_setup(item): pass\n")
    node = load_fleet(fleet.root).nodes["n0003"]
    with closing(Ledger.open(fleet.root / ".assay/ledger.sqlite")) as ledger:
        at = SystemClock().now()
        ledger.append(make_enrolled_entry(node.name, node.pool, "production", at, node.serial))
        assert fleet.judge("n0003", ledger=ledger).counts == {"pass": 16}
    workspace = Workspace(fleet.root)
    (state,) = workspace.read_node_states()
    notes = [*format_notes(explain_node(workspace, state, 1))]
    assert notes[0] == "its checks were judged with conftest.py (runtest_setup)"
