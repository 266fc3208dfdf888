"""What passed on evidence that is too old, or was skipped altogether, is well in no verb and in no format."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
import yaml
from typer.testing import CliRunner

from assay.cli.app import app
from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import StoredRun, find_run
from assay.model.clock import SystemClock
from assay.validate.results.stale import find_stale_evidence
from assay.validate.runs.run_validation import list_fresh_hours

pytest_plugins = ["pytester"]

SUITE = """
import pytest

pytestmark = pytest.mark.phase("zap")


def test_width(gpu):
    assert gpu.pcie.width == 16
"""
SKIPPING = SUITE + "    pytest.skip('not today')\n"
FORMATS = {"text": 1, "json": 1, "junit": 1}


@pytest.fixture
def fleet(fleet_copy):
    fleet_copy.declared(SUITE, test_width="gpu")
    fleet_copy.collected("n0003")
    return fleet_copy


def command(fleet, *words: str):
    return CliRunner().invoke(app, [*words, "--fleet", str(fleet.root)])


def says_nowhere_that_it_is_well(fleet, remark: str) -> None:
    for form, code in FORMATS.items():
        done = command(fleet, "results", "--format", form)
        assert done.exit_code == code, form
        assert remark in done.output
        assert not any(word in done.output for word in ("ASSAY OK", "assay: passed"))
    gate = command(fleet, "gate")
    assert gate.exit_code == 1
    assert f"MISSED the run cannot be relied on: {remark}" in gate.output


def test_evidence_of_2020_is_well_nowhere(fleet):
    fleet.collected("n0003", at="2020-01-01T00:00:00+00:00")
    done = command(fleet, "validate", "--node", "n0003", "--phase", "zap")
    assert done.exit_code == 1
    assert "unreliable: 8 outcomes passed on old evidence: that of test_width is" in done.output
    assert "days old, and may be 6 h" in done.output
    document = json.loads(command(fleet, "results", "--format", "json").output)
    assert document["remark"].startswith("8 outcomes passed on old evidence")
    says_nowhere_that_it_is_well(fleet, "8 outcomes passed on old evidence")


def test_a_run_in_which_all_was_skipped_is_well_nowhere(fleet):
    fleet.suite(SKIPPING)
    done = command(fleet, "validate", "--node", "n0003", "--phase", "zap")
    assert done.exit_code == 1
    says_nowhere_that_it_is_well(fleet, "every outcome was skipped, so nothing was judged")
    assert command(fleet, "results", "--verdict", "skip").exit_code == 0  # asked for


def test_fresh_evidence_is_well_until_it_is_too_old(fleet):
    assert command(fleet, "validate", "--node", "n0003", "--phase", "zap").exit_code == 0
    assert [command(fleet, "results", "--format", form).exit_code for form in FORMATS] == [0] * len(FORMATS)
    gate = command(fleet, "gate")
    assert (gate.exit_code, "cannot be relied on" in gate.output) == (0, False)
    with StoredRun.open(find_run(fleet.root / "reports", "last")) as stored:
        now = SystemClock().now()
        assert find_stale_evidence(stored, now + timedelta(hours=5.9)) is None
        stale = find_stale_evidence(stored, now + timedelta(hours=6.1))
        assert (stale.passes, stale.max_hours) == (8, 6.0)
        assert find_stale_evidence(stored, now + timedelta(days=9), " WHERE o.verdict = ?", ["1"]) is None


def test_the_policy_says_how_old_evidence_may_be_and_a_check_may_say_less(fleet):
    catalogue = fleet.root / "specs" / "checks" / "own.yaml"
    plain = yaml.safe_load(catalogue.read_text())
    phases = {"zap": ["zap"], "both": ["zap", "test"], "week": ["weekly"], "fabric": ["fabric"], "brief": ["test"]}
    plain["checks"] = [
        {"id": f"suites/test_own.py::test_{name}", "subject": "gpu", "phases": of} for name, of in phases.items()
    ]
    plain["checks"][-1]["valid_hours"] = 2
    catalogue.write_text(yaml.safe_dump(plain))
    found = list_fresh_hours(load_fleet(fleet.root), [])
    assert [found[f"suites/test_own.py::test_{name}"] for name in phases] == [6, 168, 336, 24, 2]
    assert list_fresh_hours(load_fleet(fleet.root), ["zap"])["suites/test_own.py::test_both"] == 6


def test_a_run_that_lost_its_verdicts_to_skips_compares_worse(fleet):
    assert command(fleet, "validate", "--node", "n0003", "--phase", "zap").exit_code == 0
    fleet.suite(SKIPPING)
    command(fleet, "validate", "--node", "n0003", "--phase", "zap")
    done = command(fleet, "results", "--compare")
    assert done.exit_code == 1
    command(fleet, "validate", "--node", "n0003", "--phase", "zap")
    assert command(fleet, "results", "--compare").exit_code == 0  # skipped as before
