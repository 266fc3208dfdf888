"""A process that ends in the middle, however it ends, costs the check that ended it, and never looks like success."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from assay.model.clock import SystemClock
from assay.validate.judging.unjudged_checks import CurrentCheck, JudgingNote, locate_note, read_note
from assay.validate.runs.run_validation import resume_run

pytest_plugins = ["pytester"]

SUITE = """
import os, signal, sys
import pytest

pytestmark = pytest.mark.phase("zap")


def test_before(gpu):
    assert gpu.pcie.width == 16


def test_poison(gpu, subject{more}):
    width = gpu.pcie.width
    if subject.endswith(("gpu3", "gpu5")):
        {crash}


def test_poor(gpu):
    assert gpu.pcie.width == 9, "narrow"
"""
KINDS = {"test_before": "gpu", "test_poison": "gpu", "test_poor": "gpu"}
SEGFAULT = "import ctypes; ctypes.string_at(0)"


def reasons(result) -> dict[tuple[str, str], str]:
    """Return why something could not be judged, by check and subject."""
    errors = result.stored.outcomes(verdicts=["error"])
    return {(one.check.rpartition("::")[2], one.subject.rpartition("/")[2]): one.reason for one in errors}


ENDINGS = {
    "exit_0": ("os._exit(0)", "pytest ended with 0"),
    "exit_1": ("os._exit(1)", "pytest ended with 1"),
    "segfault": (SEGFAULT, "pytest was killed by SIGSEGV"),
    "interrupt": ("raise KeyboardInterrupt", "pytest ended with 2"),
    "leave": ("pytest.exit('enough', returncode=0)", "pytest ended with 1"),  # an earlier check failed
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", "pytest was killed by SIGKILL"),
    "terminate": ("os.kill(os.getpid(), signal.SIGTERM)", "pytest ended with 2"),
}
"""What ends a process in the middle of a check, and how that is told."""


@pytest.mark.slow
def test_a_crash_costs_the_check_that_crashed_and_the_rest_goes_on(fleet_copy):
    poison = "def test_{}(gpu, subject):\n    if gpu.pcie.width and subject.endswith('gpu3'): {}\n\n\n"
    suite = SUITE.format(crash="pass", more="") + "\n\n"
    suite += "".join(poison.format(name, crash) for name, (crash, _) in ENDINGS.items())
    fleet_copy.declared(suite, **KINDS, **{f"test_{name}": "gpu" for name in ENDINGS})
    fleet_copy.collected("n0003")
    result = fleet_copy.judge("n0003")
    assert reasons(result) == {
        (f"test_{name}", "gpu3"): f"the check crashed: {how} meanwhile" for name, (_, how) in ENDINGS.items()
    }
    assert result.counts == {"pass": 16 + 7 * len(ENDINGS), "fail": 8, "error": len(ENDINGS)}
    assert (result.complete, result.passed) == (True, False)
    assert {path.suffix for path in result.stored.path.parent.iterdir()} == {".log", ".sqlite"}


def test_an_ordinary_item_that_crashes_costs_no_other(fleet_copy):
    fleet_copy.declared(SUITE.format(crash="os._exit(1)", more=", tmp_path"), **KINDS)
    fleet_copy.collected("n0003")
    assert reasons(fleet_copy.judge("n0003")).keys() == {("test_poison", "gpu3"), ("test_poison", "gpu5")}


def test_a_check_that_always_crashes_is_given_up_and_costs_no_other(fleet_copy):
    fleet_copy.declared(
        SUITE.format(crash="pass", more="").replace("    width =", "    os._exit(3)\n    width ="), **KINDS
    )
    fleet_copy.collected("n0003", "n0004")
    result = fleet_copy.judge("n0003", "n0004")
    assert result.counts == {"pass": 16, "fail": 16, "error": 16}
    told = [one.reason for one in result.stored.outcomes(verdicts=["error"])]
    assert told.count("the check crashed: pytest ended with 3 meanwhile") == 3
    assert told.count("not judged: the check has crashed 3 times, at last pytest ended with 3") == 13


BROKEN = {
    "absent": ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
    "syntax": ("def broken(:", "SyntaxError: invalid syntax"),
    "skipped": ("import pytest; pytest.importorskip('no_such_module')", "Skipped: could not import 'no_such_module'"),
    "exits": ("import os; os._exit(0)", "pytest ended with 0 meanwhile"),
    "leaves": ("import sys; sys.exit(0)", "pytest ended with"),
    "crashes": (SEGFAULT, "pytest was killed by SIGSEGV meanwhile"),
}
"""The first line of a module that cannot be imported, and what is told of it."""


@pytest.mark.slow
def test_a_module_that_cannot_be_imported_costs_its_own_checks(fleet_copy):
    fleet_copy.suite(SUITE.format(crash="pass", more=""))
    for name, (line, _) in BROKEN.items():
        (fleet_copy.root / "suites" / f"test_{name}.py").write_text(f"{line}\ndef test_more(node):\n    pass\n")
    own = {f"suites/test_own.py::{name}": "gpu" for name in KINDS}
    fleet_copy.declare(own | {f"suites/test_{name}.py::test_more": "node" for name in BROKEN})
    fleet_copy.collected("n0003")
    result = fleet_copy.judge("n0003")
    told = {one.check.split("test_")[1].split(".")[0]: one.reason for one in result.stored.outcomes(verdicts=["error"])}
    for name, (_, why) in BROKEN.items():
        assert told[name].startswith(f"suites/test_{name}.py cannot be imported: ")
        assert why in told[name]
    assert (result.counts, result.complete) == ({"pass": 16, "fail": 8, "error": len(BROKEN)}, True)


def test_text_that_is_no_text_is_stored_escaped(fleet_copy):
    suite = SUITE.format(crash="measure('\\udc80', 1); assert False, 'never \\udc80'", more=", measure")
    fleet_copy.declared(suite, **KINDS)
    fleet_copy.collected("n0003")
    result = fleet_copy.judge("n0003")
    assert result.counts == {"pass": 14, "fail": 10}
    told = [one for one in result.stored.outcomes(verdicts=["fail"]) if "poison" in one.check]
    assert [one.reason for one in told] == ["never \\udc80"] * 2
    assert [one.measurements[0].name for one in told] == ["\\udc80"] * 2


@pytest.mark.parametrize(
    ("ending", "hook"),
    [("os._exit(0)", "pytest_sessionstart()"), ("pytest.exit('no', returncode=0)", "pytest_collection_finish()")],
)
def test_a_session_that_ends_early_with_0_is_lost_and_can_be_resumed(fleet_copy, ending, hook):
    fleet_copy.declared(SUITE.format(crash="pass", more=""), **KINDS)
    conftest = fleet_copy.root / "conftest.py"
    gate = fleet_copy.root / "gate"
    gate.touch()
    conftest.write_text(f"import os, pytest\ndef {hook}:\n    if os.path.exists({str(gate)!r}): {ending}\n")
    fleet_copy.collected("n0003")
    result = fleet_copy.judge("n0003")
    assert (result.counts, result.complete) == ({"error": 24}, False)
    assert all(reason.startswith("lost: pytest ended with ") for reason in reasons(result).values())
    gate.unlink()
    again = resume_run(
        load_fleet(fleet_copy.root), "last", reports=fleet_copy.root / "reports", ledger=None, clock=SystemClock()
    )
    assert (again.counts, again.complete) == ({"pass": 16, "fail": 8}, True)


def test_stopping_at_the_first_failure_leaves_the_rest_to_be_resumed(fleet_copy):
    fleet_copy.declared(SUITE.format(crash="pass", more=""), **KINDS)
    fleet_copy.collected("n0003")
    result = fleet_copy.judge("n0003", extra=["-x"])
    assert not result.complete
    assert all(reason.startswith("lost: pytest ended with 1") for reason in reasons(result).values())


def test_the_note_outlives_the_process_and_says_what_it_judged(tmp_path: Path):
    store = tmp_path / "share-1.sqlite"
    assert read_note(store) is None
    pid = os.fork()
    if not pid:
        current = CurrentCheck(store)
        current.begin("suites/a.py::test_long_name", "a/n1/gpu7")
        current.end()
        current.begin("suites/a.py::test_b", "a/n1")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert read_note(store) == JudgingNote("suites/a.py::test_b", "a/n1")
    current = CurrentCheck(store)
    assert read_note(store) is None
    current.begin("suites/a.py")
    current.note_signal()
    assert read_note(store) == JudgingNote("suites/a.py", "", signalled=True)
    assert locate_note(store).name == "share-1.now"
