"""A run is held to the gates by what decides, pool by pool; excuses break none, and silence is no success."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from assay.cli.app import app
from assay.ledger.runs.reader import list_runs
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.errors import AssayError
from assay.model.outcome import SuiteRun
from assay.model.specs.check_catalog import Gates, PoolGate
from assay.validate.results.run_gates import PoolCounts, _check_success, _check_unknown, check_gates, find_previous_run
from tests.support.places import ROOT

NODES = [f"n{number:04}" for number in range(1, 11)]
FOREVER_HOURS = 1_000_000
"""The command goes by the clock on the wall; the runs of these tests are of one day in 2026."""
EXCUSES = [{"known": "https://example.net/1"}, {"observed": True}]


def gates(new: int | None = None, **pools: dict[str, float]) -> Gates:
    return Gates(kind="Gates", name="ours", sources=["us"], pools={k: PoolGate(**v) for k, v in pools.items()},
                 new_failures=new)  # fmt: skip


def ten(runs, hours: float, *amiss, **more) -> Path:
    """Store a run of ten nodes, of which the first ones are `amiss` (what differs from a pass)."""
    told = [runs.outcome(node, hours=hours, **(amiss[at] if at < len(amiss) else {})) for at, node in enumerate(NODES)]
    return runs.run(hours, *told, nodes=tuple(NODES), **more)


def held(runs, path: Path, one: Gates) -> list[tuple[str, str, float | None, bool]]:
    judged = check_gates(runs.fleet, [one], path, list_runs(runs.folder))
    return [(bound.pool, bound.what, bound.seen, bound.holds) for bound in judged.bounds]


def test_the_share_of_a_pool_that_passes_is_held_to_its_bound(runs):
    path = ten(runs, 0, {"verdict": "fail"})
    assert held(runs, path, gates(any={"success_percent": 90})) == [("h100-a", "success", 90.0, True)]
    assert held(runs, path, gates(any={"success_percent": 90.1})) == [("h100-a", "success", 90.0, False)]


def test_what_could_not_be_judged_is_no_success_and_is_bounded_itself(runs):
    path = ten(runs, 0, {"verdict": "error"})
    one = gates(any={"success_percent": 95, "unknown_percent": 5})
    assert held(runs, path, one) == [("h100-a", "success", 90.0, False), ("h100-a", "unknown", 10.0, False)]


@pytest.mark.parametrize("excuse", EXCUSES)
def test_what_is_excused_or_on_trial_breaks_no_gate(runs, excuse):
    path = ten(runs, 0, {"verdict": "fail", **excuse})
    ten(runs, -1)
    one = gates(0, any={"success_percent": 100})
    assert held(runs, path, one) == [("h100-a", "success", 100.0, True), ("", "new_failures", 0, True)]


def test_a_pool_s_own_bound_stands_in_place_of_that_of_any(runs):
    path = ten(runs, 0, {"verdict": "fail"})
    one = gates(any={"success_percent": 99, "unknown_percent": 1}, **{"h100-a": {"success_percent": 50}})
    assert held(runs, path, one) == [("h100-a", "success", 90.0, True), ("h100-a", "unknown", 0.0, True)]


def test_a_pool_that_was_asked_for_and_told_nothing_misses_its_gate(runs):
    path = runs.run(0, runs.outcome("n0001"), nodes=("n0001", "n0017"))
    assert held(runs, path, gates(any={"success_percent": 1})) == [
        ("byo-b", "success", None, False), ("h100-a", "success", 100.0, True),
    ]  # fmt: skip


def test_skips_alone_are_no_success(runs):
    path = ten(runs, 0, *[{"verdict": "skip"}] * 10)
    assert held(runs, path, gates(any={"success_percent": 1})) == [("h100-a", "success", None, False)]


def test_a_failure_is_new_where_the_last_run_of_the_same_selection_has_none(runs):
    ten(runs, -2, {"verdict": "fail"})
    runs.run(-1, runs.outcome("n0002", hours=-1), nodes=("n0002",))  # of another selection
    path = ten(runs, 0, {"verdict": "fail"}, {"verdict": "fail"})
    (bound,) = check_gates(runs.fleet, [gates(0)], path, list_runs(runs.folder)).bounds
    assert (bound.seen, bound.holds) == (1, False)
    assert "h100-a/n0002 test_temperatures: fail as planted" in bound.says
    assert held(runs, path, gates(1)) == [("", "new_failures", 1, True)]


def test_the_first_run_of_a_selection_has_no_new_failure_and_says_so(runs):
    path = ten(runs, 0, {"verdict": "fail"})
    (bound,) = check_gates(runs.fleet, [gates(0)], path, list_runs(runs.folder)).bounds
    assert (bound.seen, bound.holds) == (None, True)
    assert "no earlier run" in bound.says


def test_a_run_that_was_cut_short_is_compared_with_by_nobody_and_held_to_nothing(runs):
    whole = ten(runs, -2)
    cut = runs.folder / "runs" / "20261121T110000.000-abcdef" / "run.sqlite"
    cut.parent.mkdir(parents=True)
    OutcomeWriter(cut, SuiteRun(cut.parent.name, "2026-11-21T11:00:00+00:00", nodes=tuple(NODES))).close()
    assert find_previous_run(ten(runs, 0), list_runs(runs.folder)) == whole
    with pytest.raises(AssayError, match="has not ended"):
        check_gates(runs.fleet, [gates(0)], cut, list_runs(runs.folder))


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.floats(0.001, 99.9))
def test_a_share_holds_exactly_where_the_counts_say_so(passed, failed, unknown, percent):
    counts = PoolCounts(passed, failed, unknown)
    success = _check_success(gates(0), "p", counts, percent, "")
    lost = _check_unknown(gates(0), "p", counts, percent, "")
    decided = passed + failed + unknown
    assert success.holds == (decided > 0 and passed * 100 >= percent * decided)
    assert lost.holds == (decided > 0 and unknown * 100 <= percent * decided)
    assert ("missed by" in success.says) == (not success.holds and decided > 0)


def copied(runs, path: Path) -> Path:
    """Return a fleet repository with the runs of the test."""
    root = path / "fleet"
    root.mkdir()
    for name in ("inventory", "specs"):
        (root / name).symlink_to(ROOT / name)
    (root / "reports").symlink_to(runs.folder)
    return root


def test_the_command_says_which_bound_is_missed_by_how_much_and_where_it_is_written(runs, tmp_path):
    runs.fresh_hours = FOREVER_HOURS
    ten(runs, 0, {"verdict": "fail"})
    root = copied(runs, tmp_path)
    result = CliRunner().invoke(app, ["gate", "--fleet", str(root)])
    assert result.exit_code == 1
    line = "MISSED h100-a: 90 % of 10 outcomes passed, at least 99 % is required: missed by 9 points"
    assert f"{line}  specs/gates/default.yaml:" in result.stdout
    plain = json.loads(CliRunner().invoke(app, ["gate", "last", "--fleet", str(root), "--format", "json"]).stdout)
    assert (plain["holds"], [bound["holds"] for bound in plain["bounds"]]) == (False, [False, True, True])
    annotated = CliRunner().invoke(app, ["gate", "--fleet", str(root), "--format", "github"]).stdout
    assert annotated.startswith("::error file=specs/gates/default.yaml,line=")


def test_the_command_ends_with_0_where_every_bound_holds(runs, tmp_path):
    runs.fresh_hours = FOREVER_HOURS
    ten(runs, 0)
    result = CliRunner().invoke(app, ["gate", "--fleet", str(copied(runs, tmp_path))])
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (
        0,
        "run 20261121T120000.000-abcdef: all 3 bounds hold",
    )


def test_a_run_that_is_not_there_is_told(runs, tmp_path):
    ten(runs, 0)
    result = CliRunner().invoke(app, ["gate", "nonsense", "--fleet", str(copied(runs, tmp_path))])
    assert isinstance(result.exception, AssayError)
    assert "no run" in str(result.exception)


def test_a_fleet_without_gates_is_told_what_to_write(runs, tmp_path):
    root = copied(runs, tmp_path)
    (root / "specs").unlink()
    (root / "specs").mkdir()
    for name in ("nodes", "firmware", "profiles"):
        (root / "specs" / name).symlink_to(ROOT / "specs" / name)
    result = CliRunner().invoke(app, ["gate", "--fleet", str(root)])
    assert "the fleet has no gates" in str(result.exception)
