"""Verbs that no other test asks for JSON: each answer has content, and the schema of its command."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.act.loop.reconcile_pass import PassReport
from assay.cli.app import app
from assay.cli.verbs import reconcile, upgrade
from assay.model.entries.node_entries import TransitionEntry
from assay.model.entries.tickets import TicketOpenedEntry
from assay.model.ticket import Ticket, TicketPlace
from assay.tell.report.report_builder import ReportPages
from tests.support.judged_answers import JUDGED, judge_answer
from tests.support.person import Person

TAMPERING = "DROP TRIGGER entry_no_update; UPDATE entry SET at = replace(at, '2026', '2025') WHERE seq = 2"
BECAUSE = ("--reason", "bisecting a kernel bug")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("hold", "n0001", *BECAUSE, "--for", "3d"), "hold"),
        (("move", "n0003", "draining", *BECAUSE, "--now"), "move"),
        (("certify", "n0002", *BECAUSE), "certified"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_an_order_is_answered_with_what_was_recorded(ann: Person, words: Sequence[str], kind: str) -> None:
    (told,) = ann.reads(*words)["words"]
    assert (told["entry"]["kind"], told["entry"]["body"]["who"], told["new"]) == (kind, "ann", True)
    assert (words[0], "OrdersAnswer") in JUDGED


def test_a_release_is_answered_like_the_hold(ann: Person) -> None:
    ann.types("hold", "n0001", *BECAUSE)
    assert ann.reads("release", "n0001", *BECAUSE)["words"][0]["entry"]["kind"] == "release"


def test_a_ticket_is_told_with_its_places(ann: Person) -> None:
    place = TicketPlace("n0003", "dc1", "r01", 12, "3/1", "n0003-hca3")
    ticket = Ticket("t-1", "cable:n0003", "Plug in n0003", "n0003", (place,), steps="plug it in", files="a  b")
    ledger = ann.ledger()
    ledger.append(TicketOpenedEntry(ticket).make_entry("o", "2026-11-21T12:05:00+00:00", "n0003"))
    ledger.close()
    (told,) = ann.reads("tickets")["tickets"]
    assert told["places"][0]["label"] == "n0003-hca3"
    assert told["files"] == "a  b"


def test_the_ledger_is_sealed_copied_and_found_broken(ann: Person) -> None:
    assert ann.reads("ledger", "seal", "--anchor", f"file:{ann.root / 'seals'}")["anchors"][0]["refusal"] == ""
    assert ann.reads("ledger", "backup", str(ann.root / "copy"))["entries"] == 4
    assert ann.reads("ledger", "archive", str(ann.root / "a.gz"), "--before", "2026-11-22")["moved"] is False
    for file in (ann.root / ".assay" / "ledger.sqlite", ann.root / "copy"):
        with sqlite3.connect(file) as database:
            database.executescript(TAMPERING)
    for words in (
        ("backup", str(ann.root / "other")),
        ("archive", str(ann.root / "a.gz"), "--before", "2026-11-22", "--yes"),
    ):
        code, told = ask(ann, "ledger", *words)
        assert (code, bool(told["problems"])) == (1, True)
    (ann.root / ".assay" / "ledger.sqlite").unlink()
    assert ask(ann, "ledger", "restore", str(ann.root / "copy"))[1]["problems"]


def test_a_round_of_the_controller_tells_its_entries(capsys: pytest.CaptureFixture[str]) -> None:
    moved = TransitionEntry("production", "triage", "d-1").make_entry("t-1", "2026-11-21T12:05:00+00:00", "n0003")
    reconcile._print_passes([PassReport(moved.at, [moved], ["run-1"])], [], "json")
    judge_answer(["reconcile", "--once", "--format", "json"], capsys.readouterr().out)
    reconcile._make_change_printer("json")([moved, moved])
    judge_answer(["reconcile", "--format", "json"], capsys.readouterr().out)
    assert {("reconcile", "ReconcileAnswer"), ("reconcile", "LedgerEntry")} <= JUDGED


def test_an_upgrade_that_was_broken_off_tells_its_conflicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert upgrade._print_finished(["suites/test/test_gpu.py"], "json") == 1
    judge_answer(["upgrade", "--format", "json"], capsys.readouterr().out)
    assert ("upgrade", "UpgradeAnswer") in JUDGED


def test_a_report_tells_where_its_pages_are(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = ReportPages(Path("reports/index.html"), Path("reports/allure"), [])
    monkeypatch.setattr("assay.tell.report.report_builder.build_reports", lambda *_: pages)
    assert ask(ann, "report") == (
        0,
        {"overview": "reports/index.html", "allure": "reports/allure", "context": "fleet"},
    )


def ask(ann: Person, *words: str) -> tuple[int, Any]:
    """Return the exit code and the answer in JSON, also of a verb that fails."""
    answer = CliRunner().invoke(app, [*words, "--fleet", str(ann.root), "--format", "json"])
    assert answer.stdout, answer.output
    return answer.exit_code, json.loads(answer.stdout)
