"""A run accounts for every declared check × subject, whoever fails to deliver, and is recorded whole."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import StoredRun, find_run
from assay.ledger.runs.run_manifest import hash_folders
from assay.ledger.runs.writer import OutcomeWriter
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.outcome import Outcome, SuiteRun
from assay.validate.runs.completeness import DueOutcomes, find_delivery_gaps, make_gap_errors
from assay.validate.runs.run_validation import RunOptions, run_validation
from assay.validate.runs.shard_processes import LocalProcesses
from assay.validate.runs.subjects import NodeSelection, list_declared_outcomes
from tests.support.places import ROOT

validate_app = load_verb("validate")

pytest_plugins = ["pytester"]

REMAP = "suites/seatrial/test_gpu.py::test_no_row_remap_is_due"
ZAP = len(list_declared_outcomes(load_fleet(ROOT), "n0003", ["zap"]))


class Noon:
    """A clock that stands."""

    def now(self) -> datetime:
        return datetime(2026, 11, 21, 12, tzinfo=UTC)

    def sleep(self, seconds: float) -> None:
        raise AssertionError


def run(fleet, **asked):
    asked = {"nodes": ["n0003"], "phases": ["zap", "seatrial"], "ledger": None, "clock": Noon()} | asked
    return run_validation(load_fleet(fleet.root), fleet.evidence, reports=fleet.root / "reports", **asked)


def outcomes(result) -> list[Outcome]:
    return list(result.stored.outcomes())


def missing(result) -> list[Outcome]:
    """Return the outcomes that stand for what was not delivered."""
    said = ("no outcome was delivered", "lost: ", "deadline: ")
    found = [one for one in outcomes(result) if one.reason.startswith(said)]
    assert len(found) == result.missing
    return found


def delete_test(fleet, check: str) -> None:
    """Take one test function out of the copied suites."""
    file, name = check.split("::")
    path = fleet.root / file
    text = re.sub(rf"((?:@pytest[^\n]*\n)+)def {name}\(.*?(?=\n\n\n|\Z)", "", path.read_text(), flags=re.DOTALL)
    assert name not in text
    path.write_text(text)


def test_every_declared_check_on_every_subject_ends_in_one_outcome(fleet_copy):
    fleet_copy.collected("n0003")
    result = run(fleet_copy, phases=["zap", "production"])
    due = list_declared_outcomes(load_fleet(fleet_copy.root), "n0003", ["zap", "production"])
    found = outcomes(result)
    assert {(one.check, one.subject) for one in found} == {(check.id, str(subject)) for check, subject in due}
    assert len(found) == len(due)
    assert (result.missing, result.passed, result.complete) == (0, True, True)


def test_a_deleted_test_is_missed_on_every_subject(fleet_copy):
    fleet_copy.collected("n0003")
    delete_test(fleet_copy, REMAP)
    result = run(fleet_copy, phases=["production"])
    assert not result.passed
    found = missing(result)
    assert [(one.check, one.verdict) for one in found] == [(REMAP, "error")] * 8
    assert [one.subject for one in found] == [f"h100-a/n0003/gpu{slot}" for slot in range(8)]
    assert {one.reason for one in found} == {"no outcome was delivered: no test of that name ran"}
    assert {one.fault for one in found} == {"gpu.memory.remap"}
    assert result.complete  # to go on with the run would find no more


def test_a_module_that_cannot_be_imported_is_missed_with_its_reason(fleet_copy):
    fleet_copy.collected("n0003")
    (fleet_copy.root / "suites/zap/test_firmware.py").write_text("import no_such_module\n")
    result = run(fleet_copy, phases=["zap"])
    errors = [one for one in outcomes(result) if one.verdict == "error"]
    assert 0 < len(errors) < len(outcomes(result)) == ZAP
    assert {one.check.partition("::")[0] for one in errors} == {"suites/zap/test_firmware.py"}
    (reason,) = {one.reason for one in errors}
    assert reason.startswith("suites/zap/test_firmware.py cannot be imported: ModuleNotFoundError: No module named")
    assert result.complete


def test_a_hung_check_meets_the_deadline_and_what_was_done_is_kept(fleet_copy):
    fleet_copy.collected("n0003")
    path = fleet_copy.root / "suites/zap/test_firmware.py"
    hung = fleet_copy.root / "hung"
    text = path.read_text().replace("    wrong =", f"    open({str(hung)!r}, 'w')\n    time.sleep(60)\n    wrong =")
    path.write_text("import time\n" + text)

    class Late(LocalProcesses):
        """Whose deadline passes when the check hangs, and not before."""

        def collect_ended(self):
            if hung.exists():
                self._running = [replace(one, deadline=0.0) for one in self._running]
            return super().collect_ended()

    result = run(fleet_copy, phases=["zap"], options=RunOptions(Late(1), deadline_s=6000))
    assert set(result.counts) == {"pass", "error"}
    assert result.counts.total() == ZAP
    assert {one.reason for one in missing(result)} == {"deadline: its shard did not end within 6000 s"}
    assert not result.complete


def test_what_nobody_declared_is_an_error_even_when_it_passes(fleet_copy):
    fleet_copy.collected("n0003")
    path = fleet_copy.root / "suites/zap/test_configuration.py"
    path.write_text(path.read_text() + "\n\ndef test_new(node):\n    assert node.host.kernel\n")
    result = run(fleet_copy, phases=["zap"])
    (new,) = [one for one in outcomes(result) if one.check.endswith("test_new")]
    assert (new.verdict, new.reason) == (
        "error",
        "the check is not declared by any CheckCatalog; declare it in specs/checks (its result was pass)",
    )


def test_what_the_user_leaves_out_with_k_is_not_missed(fleet_copy):
    fleet_copy.collected("n0003")
    result = run(fleet_copy, extra=["-k", "pcie and gpu3"], phases=[])
    assert [(one.subject, one.verdict) for one in outcomes(result)] == [("h100-a/n0003/gpu3", "pass")] * 3
    assert result.passed


@pytest.mark.slow
def test_shares_in_several_processes_come_to_the_same(fleet_copy):
    fleet_copy.collected("n0005", "n0006", "n0007", "n0008")
    nodes = ["n0005", "n0006", "n0007", "n0008"]
    one, three = (run(fleet_copy, nodes=nodes, phases=["zap", "production"], jobs=jobs) for jobs in (1, 3))
    seen = [
        {(outcome.check, outcome.subject, outcome.verdict) for outcome in outcomes(result)} for result in (one, three)
    ]
    assert seen[0] == seen[1]
    assert ("suites/production/test_rack.py::test_rack_breathes_evenly", "h100-a/rack-r02", "pass") in seen[0]
    assert len(outcomes(one)) == len(outcomes(three))


def test_a_run_says_what_it_was_and_is_kept_whole(fleet_copy):
    fleet_copy.collected("n0003")
    ledger = Ledger.open(fleet_copy.root / ".assay" / "ledger.sqlite")
    result = run(fleet_copy, phases=["zap"], ledger=ledger)
    assert result.run.id.startswith("20261121T120000.000-")
    assert (result.run.nodes, result.run.phases) == (("n0003",), ("zap",))
    assert result.run.suite_hash == hash_folders(fleet_copy.root / "suites")
    assert result.run.who
    home = fleet_copy.root / "reports" / "runs" / result.run.id
    assert sorted(path.name for path in home.iterdir()) == ["run.sqlite", "share-1.log"]
    assert result.stored.path == home / "run.sqlite"
    assert result.stored.about.keys() >= {"assay", "python", "pytest", "evidence", "extra", "ended"}
    assert result.stored.documents().keys() == {"n0003"}
    kept = outcomes(result)
    assert sorted(
        (one.outcome.check, one.outcome.subject, one.outcome.verdict) for one in ledger.outcomes(result.run.id)
    ) == sorted((one.check, one.subject, one.verdict) for one in kept)
    assert len(kept) == ZAP


def test_the_log_of_a_shard_repeats_no_outcomes_and_its_run_file_has_no_gaps(fleet_copy):
    fleet_copy.collected("n0003")
    result = run(fleet_copy, phases=["zap"])
    home = result.stored.path.parent
    (summary,) = [line for line in (home / "share-1.log").read_text().splitlines() if line]
    assert re.fullmatch(r"(\d+ \w+, )*\d+ \w+ in [\d.]+s", summary)
    with sqlite3.connect(result.stored.path) as connection:
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)


def test_the_suite_hash_follows_the_suites_and_nothing_else(fleet_copy):
    suites = fleet_copy.root / "suites"
    before = hash_folders(suites)
    (suites / "__pycache__").mkdir()
    (suites / "__pycache__" / "x.pyc").write_bytes(b"1")
    assert hash_folders(suites) == before
    (suites / "zap" / "test_firmware.py").rename(suites / "zap" / "test_firmwares.py")
    assert hash_folders(suites) != before


def test_nothing_to_run_is_trouble_and_not_well(fleet_copy):
    with pytest.raises(AssayError, match="no declared check is selected"):
        run(fleet_copy, nodes=[])


def test_reconciling_finds_what_is_missing_twice_or_unknown(fleet_copy, tmp_path):
    due = DueOutcomes.of_selection(NodeSelection(load_fleet(fleet_copy.root), ("n0003",)), ["zap"])
    wanted = [
        Outcome(check.id, subject, node, "pass")
        for check in due.checks
        for subject, node in due.subjects[check.id].items()
    ]
    assert len(wanted) == len(due) == ZAP

    def compared(*delivered: Outcome) -> list[tuple[str, str]]:
        (tmp_path / "own.sqlite").unlink(missing_ok=True)
        writer = OutcomeWriter(tmp_path / "own.sqlite", SuiteRun("r", "2026-11-21T12:00:00+00:00"))
        for one in delivered:
            writer(one)
        writer.close()
        with StoredRun.open(tmp_path / "own.sqlite") as stored:
            twice = [(one.verdict, one.reason) for one in stored.outcomes(verdicts=["error"])]
            found = find_delivery_gaps(due, stored)
            return twice + [
                (one.verdict, one.reason) for one in make_gap_errors(due, found, stored, "lost: it stopped")
            ]

    assert compared(*wanted) == []
    assert compared(*wanted[1:], wanted[2]) == [
        ("error", "the check was judged twice in one run: two functions of its module have this name"),
        ("error", "lost: it stopped"),
    ]
    elsewhere = Outcome(wanted[0].check, "h100-a/n0099", "n0099", "pass")
    assert compared(*wanted, elsewhere) == [
        ("error", "the check is not declared for this subject; declare it in specs/checks (its result was pass)")
    ]
    unknown = Outcome("suites/zap/test_x.py::test_x", wanted[0].subject, "n0003", "fail", "bad")
    assert compared(*wanted, unknown) == [
        (
            "error",
            "the check is not declared by any CheckCatalog; declare it in specs/checks (its result was fail: bad)",
        )
    ]


def command(fleet, *arguments: str):
    return CliRunner().invoke(validate_app, ["--fleet", str(fleet.root), *arguments])


def test_the_command_ends_with_0_when_all_passed(fleet_copy):
    fleet_copy.collected("n0003")
    done = command(fleet_copy, "--node", "n0003", "--phase", "zap", "--format", "json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["counts"] == {"pass": ZAP, "fail": 0, "error": 0, "skip": 0}
    assert len(document["outcomes"]) == ZAP


def test_the_command_ends_with_1_and_says_why_in_a_line(fleet_copy):
    fleet_copy.collected("n0003")
    document = json.loads((fleet_copy.evidence / "n0003.json").read_text())
    document["channels"]["probe"]["gpu"]["driver"] = {"value": "550.54.15"}
    (fleet_copy.evidence / "n0003.json").write_text(json.dumps(document))
    done = command(fleet_copy, "--node", "n0003", "--phase", "zap")
    assert done.exit_code == 1
    assert "zap/test_configuration.py::test_driver_version  driver 550.54.15, expected 570.172.08" in done.stdout
    assert f"{ZAP} outcomes on 1 node: {ZAP - 1} passed, 1 failed" in done.stdout
    with StoredRun.open(find_run(fleet_copy.root / "reports", "last")) as stored:
        assert stored.about["selection"] == "--node n0003 --phase zap"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--node", "n003"], "there is no node"), (["--pool", "x"], "there is no pool"), (["--phase", "x"], "no phase")],
)
def test_the_command_refuses_names_that_do_not_exist(fleet_copy, arguments, says):
    done = command(fleet_copy, *arguments)
    assert isinstance(done.exception, AssayError)
    assert says in str(done.exception)
