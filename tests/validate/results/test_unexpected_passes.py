"""At the end of a run, a known issue that nothing bears out is reported; a list that cannot be read ends it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.errors import AssayError
from assay.model.outcome import Outcome, SuiteRun
from assay.validate.results.stale import find_stale_issues
from assay.validate.runs.run_validation import run_validation as validate_run

pytest_plugins = ["pytester"]

CHECK = "suites/zap/test_firmware.py::test_no_firmware_waits"
ISSUE = """  - issue: https://git.example/issues/{number}
    match: {{check: "{check}", {more}}}
    reason: it waits for a reset
    owner: ann
    expires: "{expires}"
"""


def listed(*entries: str) -> str:
    return "kind: KnownIssues\nname: fleet\nissues:\n" + "".join(entries)


def entry(
    number: int, check: str = "*::test_no_firmware_waits", more: str = "node: n0003", expires="2999-01-01"
) -> str:
    return ISSUE.format(number=number, check=check, more=more, expires=expires)


@pytest.fixture
def ran(fleet_copy, tmp_path):
    """Store a run with these verdicts by node and return what is unexpected in it."""

    def told(text: str, verdicts: dict[str, str], nodes: tuple[str, ...] = (), **run) -> list[tuple[str, int]]:
        (fleet_copy.root / "specs" / "known-issues.yaml").write_text(text)
        fleet = load_fleet(fleet_copy.root)
        path = tmp_path / "run.sqlite"
        path.unlink(missing_ok=True)
        writer = OutcomeWriter(path, SuiteRun("R", datetime(2026, 11, 21, tzinfo=UTC).isoformat(), nodes=nodes, **run))
        for node, verdict in verdicts.items():
            writer(Outcome(CHECK, f"h100-a/{node}", node, verdict, "" if verdict == "pass" else "so"))
        writer.close()
        with StoredRun.open(path) as stored:
            return [(one.issue.issue.rpartition("/")[2], one.passes) for one in find_stale_issues(stored, fleet)]

    return told


@pytest.mark.parametrize(
    ("verdicts", "found"),
    [
        ({"n0003": "pass"}, [("1", 1)]),
        ({"n0003": "fail"}, []),
        ({"n0003": "error"}, []),
        ({"n0003": "skip"}, []),
        ({"n0004": "pass"}, []),
    ],
)
def test_an_entry_whose_failures_pass_is_unexpected(verdicts, found, ran):
    assert ran(listed(entry(1)), verdicts) == found


def test_one_failure_among_passes_bears_an_entry_out(ran):
    text = listed(entry(1, more="pool: h100-a"))
    assert ran(text, {"n0003": "pass", "n0004": "fail"}) == []
    assert ran(text, {"n0003": "pass", "n0004": "pass"}) == [("1", 2)]


def test_an_entry_that_had_expired_when_the_run_was_excused_nothing_and_is_not_told_of(ran):
    assert ran(listed(entry(1, expires="2026-11-21")), {"n0003": "pass"}) == []
    assert ran(listed(entry(1, expires="2026-11-22")), {"n0003": "pass"}) == [("1", 1)]


def test_only_a_run_of_the_whole_fleet_can_tell_that_an_entry_fits_nothing(ran, fleet_copy):
    text, every = listed(entry(1, check="*::test_gone")), tuple(load_fleet(fleet_copy.root).nodes)
    assert ran(text, {"n0003": "pass"}, every) == [("1", 0)]
    assert ran(text, {"n0003": "pass"}, every[1:]) == []
    assert ran(text, {"n0003": "pass"}, every, phases=("zap",)) == []


def validate(fleet_copy, *more: str):
    where = ["--node", "n0003", "--phase", "zap", "--fleet", str(fleet_copy.root)]
    return CliRunner().invoke(app, ["validate", *where, *more], catch_exceptions=False)


def test_the_run_s_exit_code_and_last_lines_follow_what_is_known(fleet_copy):
    fleet_copy.collected("n0003")
    document = json.loads((fleet_copy.evidence / "n0003.json").read_text())
    document["channels"]["bmc"]["firmware_pending"] = {"BIOS_0": {"value": "9.9"}}
    (fleet_copy.evidence / "n0003.json").write_text(json.dumps(document))
    known = fleet_copy.root / "specs" / "known-issues.yaml"
    assert load_fleet(fleet_copy.root).known_issues == ()
    assert validate(fleet_copy).exit_code == 1
    known.write_text(listed(entry(1), entry(2, check="*::test_driver_version")))
    told = validate(fleet_copy)
    assert told.exit_code == 0
    assert told.stdout.startswith("known h100-a/n0003")
    assert "[https://git.example/issues/1]" in told.stdout
    assert "https://git.example/issues/2 excuses nothing: the only outcome that it matches passed" in told.stdout
    document = json.loads(validate(fleet_copy, "--format", "json").stdout)
    assert document["unexpected"] == [{"issue": "https://git.example/issues/2", "passes": 1}]
    (failed,) = [one for one in document["outcomes"] if one["verdict"] == "fail"]
    assert (failed["known"], document["deciding"]) == ("https://git.example/issues/1", 0)


class Then:
    """A clock that stands."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        raise AssertionError


@pytest.mark.parametrize(("seconds", "well"), [(-1, True), (0, False)])
def test_it_is_the_time_of_the_run_by_which_an_entry_expires(seconds, well, fleet_copy):
    fleet_copy.collected("n0003")
    document = json.loads((fleet_copy.evidence / "n0003.json").read_text())
    document["channels"]["bmc"]["firmware_pending"] = {"BIOS_0": {"value": "9.9"}}
    (fleet_copy.evidence / "n0003.json").write_text(json.dumps(document))
    (fleet_copy.root / "specs" / "known-issues.yaml").write_text(listed(entry(1, expires="2001-01-01")))
    clock = Then(datetime(2001, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds))
    asked = {"nodes": ["n0003"], "phases": ["zap"], "ledger": None, "clock": clock}
    fleet = load_fleet(fleet_copy.root)
    result = validate_run(fleet, fleet_copy.evidence, reports=fleet_copy.root / "reports", **asked)
    assert (result.counts["fail"], result.passed) == (1, well)


@pytest.mark.parametrize("verb", [["validate"], ["reconcile", "--once"]], ids=" ".join)
def test_a_list_that_cannot_be_read_stops_everything_before_it_begins(verb, fleet_copy):
    fleet_copy.collected("n0003")
    (fleet_copy.root / "specs" / "known-issues.yaml").write_text(listed(entry(1)).replace("owner", "ovner"))
    with pytest.raises(AssayError, match=r"specs/known-issues\.yaml:4:5"):
        CliRunner().invoke(app, [*verb, "--node", "n0003", "--fleet", str(fleet_copy.root)], catch_exceptions=False)
    assert not (fleet_copy.root / "reports").exists()
    assert not (fleet_copy.root / ".assay" / "ledger.sqlite").exists()
