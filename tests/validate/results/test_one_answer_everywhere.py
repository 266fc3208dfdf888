"""One run has one answer: in each format and verb the same exit code, and words that agree with it."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.cli.verbs.results import GATE_FORMATTERS
from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.writer import OutcomeWriter
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.outcome import Outcome, SuiteRun
from assay.tell.report.latest_outcomes import LatestOutcomes
from assay.tell.report.overview_model import build_overview
from assay.tell.report.registry import RESULT_FORMATS, FormatName
from assay.tell.report.report_builder import render_overview
from tests.support.places import ROOT

NOW = datetime.now(UTC)
CHECK = "suites/production/test_cooling.py::test_temperatures"
ISSUE = "https://example.net/issues/41"
MANY = 20_001
"""With one failure among so many, a share that is rounded to two digits reads 100.00 %."""


@dataclass(frozen=True)
class Case:
    """A run, and the answer to it: assay's exit code, and whether its gates hold.

    `verdicts` and their excuses are those of the outcomes; `about` says how the run ended.
    """

    verdicts: tuple[str, ...]
    code: int
    gates: int
    known: str = ""
    observed: bool = False
    ended: str = "whole"
    age_hours: float = 1


CASES = {
    "all pass": Case(("pass",) * 9, 0, 0),
    "one of many fails": Case(("fail", *["pass"] * MANY), 1, 1),
    "one cannot be judged": Case(("error", "pass"), 1, 1),
    "a failure and an error": Case(("fail", "error", "pass"), 1, 1),
    "a known failure": Case(("fail", "pass"), 0, 0, known=ISSUE),
    "a failure on trial": Case(("fail", "pass"), 0, 0, observed=True),
    "some skipped": Case(("skip", "pass"), 0, 0),
    "all skipped": Case(("skip",) * 3, 1, 1),
    "old evidence": Case(("pass",) * 3, 1, 1, age_hours=99),
    "not ended": Case(("pass",) * 3, 1, 2, ended=""),
    "ended in part": Case(("error", "pass"), 1, 1, ended="in part"),
}
STRICT_GATES = """\
kind: Gates
name: strict
description: Everything passes.
owner: fleet-engineering
sources: [our own choice]
pools: {any: {success_percent: 100, unknown_percent: 0}}
"""
WELL = re.compile(r"\b100(\.0+)? ?%|\ball (checks )?(passed|well)\b")
"""Words that only a run without any failure may have."""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A fleet for each case, with its run."""
    return {name: store_run(tmp_path_factory.mktemp("fleet"), case) for name, case in CASES.items()}


def store_run(home: Path, case: Case) -> Path:
    for folder in ("inventory", "suites"):
        (home / folder).symlink_to(ROOT / folder)
    shutil.copytree(ROOT / "specs", home / "specs")
    for gates in (home / "specs" / "gates").glob("*.yaml"):
        gates.unlink()
    (home / "specs" / "gates").mkdir(exist_ok=True)
    (home / "specs" / "gates" / "strict.yaml").write_text(STRICT_GATES)
    run = SuiteRun(f"{NOW:%Y%m%dT%H%M%S}.000-abcdef", NOW.isoformat(), ("production",), ("n0003",), who="test")
    file = home / "reports" / "runs" / run.id / "run.sqlite"
    file.parent.mkdir(parents=True)
    about = {"fresh_hours": json.dumps({CHECK: 48})} | ({"ended": case.ended} if case.ended else {})
    writer = OutcomeWriter(file, run, about)
    at = (NOW - timedelta(hours=case.age_hours)).isoformat()
    for number, verdict in enumerate(case.verdicts):
        excuse = {"known": case.known, "observed": case.observed} if verdict in ("fail", "error") else {}
        subject, reason = f"h100-a/n0003/part{number}", "" if verdict == "pass" else f"{verdict} as planted"
        writer(
            Outcome(
                CHECK,
                subject,
                "n0003",
                verdict,
                reason,
                phases=("production",),
                evidence="0" * 64,
                evidence_at=at,
                **excuse,
            )
        )
    writer.close()
    return home


def call(home: Path, *words: str) -> tuple[int, str]:
    """Call assay; an error for people is exit code 2, as `main` has it."""
    done = CliRunner().invoke(app, [*words, "--fleet", str(home)])
    if isinstance(done.exception, AssayError):
        return 2, str(done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.output


@pytest.mark.parametrize("form", get_args(FormatName))
@pytest.mark.parametrize("name", CASES)
def test_every_format_gives_the_same_answer(homes: dict[str, Path], name: str, form: FormatName) -> None:
    case = CASES[name]
    code, output = call(homes[name], "results", "--format", form)
    assert code == case.code
    if case.code:
        assert not WELL.search(output), output[:2000]


@pytest.mark.parametrize("name", CASES)
def test_gates_agree(homes: dict[str, Path], name: str) -> None:
    case = CASES[name]
    code, output = call(homes[name], "gate")
    assert code == case.gates, output
    if case.code and {"fail", "error"} & set(case.verdicts):
        assert not re.search(r"\b100(\.0+)? ?% of", output), output


@pytest.mark.parametrize("name", ["all pass", "one of many fails"])
def test_gates_agree_in_every_format(homes: dict[str, Path], name: str) -> None:
    assert {call(homes[name], "gate", "--format", form)[0] for form in GATE_FORMATTERS} == {CASES[name].gates}


def test_no_percentage_reads_100_with_a_failure(homes: dict[str, Path]) -> None:
    home = homes["one of many fails"]
    (run,) = (home / "reports" / "runs").glob("*/run.sqlite")
    with closing(Ledger.open(home / "ledger.sqlite")) as ledger, StoredRun.open(run) as stored:
        ledger.record(stored.run, stored.outcomes())
        latest = LatestOutcomes(ledger, home / "reports", {})
        page = render_overview(build_overview(load_fleet(ROOT), latest))
    assert "1 incident on 1 node" in page
    assert not WELL.search(re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))


@pytest.mark.parametrize("name", [name for name in CASES if name != "one of many fails"])
def test_a_run_compared_with_itself_is_no_better_than_it_is(homes: dict[str, Path], name: str) -> None:
    """Nothing became worse, so the code is the same in every format."""
    home = homes[name]
    forms = [form for form, functions in RESULT_FORMATS.items() if functions.comparison]
    codes = {form: call(home, "results", "--against", "last", "--format", form)[0] for form in forms}
    assert len(set(codes.values())) == 1, codes
