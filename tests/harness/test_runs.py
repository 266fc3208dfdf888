"""A run accounts for every declared check × subject, whoever fails to deliver, and is recorded whole."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.validate import app
from assay.fleet.load import load_fleet
from assay.harness.declared import Selection, declared, promised
from assay.harness.reconcile import reconcile
from assay.harness.run import read_outcomes, suite_hash, validate
from assay.ledger.store import Ledger
from assay.model.errors import Trouble
from assay.model.outcome import Outcome

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
REMAP = "suites/seatrial/test_gpu.py::test_no_row_remap_is_due"
ZAP = len(declared(load_fleet(ROOT), "n0003", ["zap"]))


class Noon:
    """A clock that stands."""

    def now(self) -> datetime:
        return datetime(2026, 11, 21, 12, tzinfo=UTC)

    def sleep(self, seconds: float) -> None:
        raise AssertionError


def run(fleet, **asked):
    asked = {"nodes": ["n0003"], "phases": ["zap", "seatrial"], "ledger": None, "clock": Noon()} | asked
    return validate(load_fleet(fleet.root), fleet.evidence, reports=fleet.root / "reports", **asked)


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
    due = declared(load_fleet(fleet_copy.root), "n0003", ["zap", "production"])
    assert {(one.check, one.subject) for one in result.outcomes} == {(check.id, str(subject)) for check, subject in due}
    assert len(result.outcomes) == len(due)
    assert (result.missing, result.well) == ([], True)


def test_a_deleted_test_is_missed_on_every_subject(fleet_copy):
    fleet_copy.collected("n0003")
    delete_test(fleet_copy, REMAP)
    result = run(fleet_copy, phases=["production"])
    assert not result.well
    assert [(one.check, one.verdict) for one in result.missing] == [(REMAP, "error")] * 8
    assert [one.subject for one in result.missing] == [f"h100-a/n0003/gpu{slot}" for slot in range(8)]
    assert all(one.reason.startswith("no outcome was delivered: no test of that name ran") for one in result.missing)
    assert all(one.fault == "gpu.memory.remap" for one in result.missing)


def test_a_module_that_cannot_be_imported_is_missed_with_its_reason(fleet_copy):
    fleet_copy.collected("n0003")
    (fleet_copy.root / "suites/zap/test_firmware.py").write_text("import no_such_module\n")
    result = run(fleet_copy, phases=["zap"])
    assert len(result.missing) == len(result.outcomes) == ZAP
    assert all("pytest ended with 2: ERROR" in one.reason for one in result.missing)
    assert "suites/zap/test_firmware.py  ModuleNotFoundError: No module named" in result.missing[0].reason


def test_a_hung_check_meets_the_deadline_and_what_was_done_is_kept(fleet_copy):
    fleet_copy.collected("n0003")
    path = fleet_copy.root / "suites/zap/test_firmware.py"
    path.write_text("import time\n" + path.read_text().replace("    wrong =", "    time.sleep(60)\n    wrong ="))
    result = run(fleet_copy, phases=["zap"], deadline_s=4)
    assert set(result.counts) == {"pass", "error"}
    assert sum(result.counts.values()) == ZAP
    assert {one.reason for one in result.missing} == {"no outcome was delivered: the deadline of 4 s passed"}


def test_what_nobody_declared_is_an_error_even_when_it_passes(fleet_copy):
    fleet_copy.collected("n0003")
    path = fleet_copy.root / "suites/zap/test_configuration.py"
    path.write_text(path.read_text() + "\n\ndef test_new(node):\n    assert node.host.kernel\n")
    result = run(fleet_copy, phases=["zap"])
    (new,) = [one for one in result.outcomes if one.check.endswith("test_new")]
    assert (new.verdict, new.reason) == (
        "error",
        "the check is not declared by any CheckCatalog; declare it in specs/checks (it said pass)",
    )


def test_what_the_user_leaves_out_with_k_is_not_missed(fleet_copy):
    fleet_copy.collected("n0003")
    result = run(fleet_copy, extra=["-k", "pcie and gpu3"], phases=[])
    assert [(one.subject, one.verdict) for one in result.outcomes] == [("h100-a/n0003/gpu3", "pass")] * 3
    assert result.well


def test_shares_in_several_processes_come_to_the_same(fleet_copy):
    fleet_copy.collected("n0005", "n0006", "n0007", "n0008")
    nodes = ["n0005", "n0006", "n0007", "n0008"]
    one, three = (run(fleet_copy, nodes=nodes, phases=["zap", "production"], jobs=jobs) for jobs in (1, 3))
    seen = [
        {(outcome.check, outcome.subject, outcome.verdict) for outcome in result.outcomes} for result in (one, three)
    ]
    assert seen[0] == seen[1]
    assert ("suites/production/test_rack.py::test_rack_breathes_evenly", "h100-a/rack-r02", "pass") in seen[0]
    assert len(one.outcomes) == len(three.outcomes)


def test_a_run_says_what_it_was_and_is_kept_whole(fleet_copy):
    fleet_copy.collected("n0003")
    ledger = Ledger.open(fleet_copy.root / ".assay" / "ledger.sqlite")
    result = run(fleet_copy, phases=["zap"], ledger=ledger)
    assert result.run.id.startswith("20261121T120000.000-")
    assert (result.run.nodes, result.run.phases) == (("n0003",), ("zap",))
    assert result.run.suite_hash == suite_hash(fleet_copy.root / "suites")
    assert result.run.who
    home = fleet_copy.root / "reports" / "runs" / result.run.id
    assert read_outcomes(home / "outcomes.jsonl") == result.outcomes
    assert json.loads((home / "run.json").read_text())["id"] == result.run.id
    assert [one.outcome for one in ledger.outcomes(result.run.id)] == result.outcomes


def test_the_suite_hash_follows_the_suites_and_nothing_else(fleet_copy):
    suites = fleet_copy.root / "suites"
    before = suite_hash(suites)
    (suites / "__pycache__").mkdir()
    (suites / "__pycache__" / "x.pyc").write_bytes(b"1")
    assert suite_hash(suites) == before
    (suites / "zap" / "test_firmware.py").rename(suites / "zap" / "test_firmwares.py")
    assert suite_hash(suites) != before


def test_a_last_line_that_was_cut_short_is_no_outcome(tmp_path):
    whole = Outcome("suites/x.py::test_x", "p/n", "n", "pass")
    file = tmp_path / "share-1.jsonl"
    file.write_text(json.dumps(whole.as_json()) + "\n" + json.dumps(whole.as_json())[:40])
    assert read_outcomes(file) == [whole]
    assert read_outcomes(tmp_path / "none.jsonl") == []


def test_nothing_to_run_is_trouble_and_not_well(fleet_copy):
    with pytest.raises(Trouble, match="no declared check is selected"):
        run(fleet_copy, nodes=[])


def test_reconciling_finds_what_is_missing_twice_or_unknown(fleet_copy):
    fleet = load_fleet(fleet_copy.root)
    due = promised(Selection(fleet, ("n0003",)), ["zap"])
    delivered = [Outcome(check.id, str(subject), node, "pass") for check, subject, node in due]
    assert reconcile(due, delivered, "") == (delivered, [])
    outcomes, missing = reconcile(due, [*delivered[1:], delivered[2]], "it stopped")
    assert [one.reason for one in missing] == ["no outcome was delivered: it stopped"]
    assert sorted(one.verdict for one in outcomes) == ["error"] * 2 + ["pass"] * (ZAP - 2)
    elsewhere = Outcome(delivered[0].check, "h100-a/n0099", "n0099", "pass")
    outcomes, _ = reconcile(due, [*delivered, elsewhere], "")
    assert outcomes[-1].reason.startswith("the check is not declared for h100-a/n0099")


def command(fleet, *arguments: str):
    return CliRunner().invoke(app, ["--fleet", str(fleet.root), *arguments])


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
    assert f"{ZAP} outcomes on 1 nodes: {ZAP - 1} passed, 1 failed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--node", "n003"], "there is no node"), (["--pool", "x"], "there is no pool"), (["--phase", "x"], "no phase")],
)
def test_the_command_refuses_names_that_do_not_exist(fleet_copy, arguments, says):
    done = command(fleet_copy, *arguments)
    assert isinstance(done.exception, Trouble)
    assert says in str(done.exception)
