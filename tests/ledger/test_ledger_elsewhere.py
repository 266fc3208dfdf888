"""ASSAY_LEDGER says where the ledger is, and each verb finds it there; `assay ledger verify` holds it to its hashes."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay.cli.app import app
from assay.cli.workspace import Workspace
from assay.ledger.location import locate_existing_ledger, locate_ledger
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from tests.support.places import ROOT

AT = "2026-11-21T12:00:00+00:00"
ENROLLED = [
    LedgerEntry(f"e{n}", AT, "node.enrolled", f"n000{n}", {"pool": "h100-a", "state": "seatrial"}) for n in (1, 2)
]
Ask = Callable[..., Result]


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, tmp_path / "fleet" / part)
    return tmp_path / "fleet"


@pytest.fixture
def ask(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("ASSAY_WHO", "ann")

    def asked(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--fleet", str(fleet)], catch_exceptions=False)

    return asked


def wrote(where: Path | str, *entries: LedgerEntry) -> None:
    ledger = Ledger.open(where)
    ledger.append(*entries)
    ledger.record(SuiteRun("r1", AT), [Outcome("c", "a/n0001", "n0001", "fail", "hot", phases=("seatrial",))])
    ledger.close()


def test_the_verbs_find_a_ledger_on_postgresql(ask, fleet, postgres_place, monkeypatch):
    monkeypatch.setenv("ASSAY_LEDGER", postgres_place)
    wrote(postgres_place, *ENROLLED)
    assert ask("hold", "n0001", "--reason", "a new fan").exit_code == 0
    told = json.loads(ask("status", "--format", "json").stdout)
    assert [(node["node"], bool(node["held"])) for node in told["nodes"]] == [("n0001", True), ("n0002", False)]
    assert "a new fan" in ask("history", "n0001").stdout
    assert "n0001" in ask("explain", "n0001").stdout
    assert "no open tickets" in ask("tickets").stdout
    assert "ledger is unchanged: 3 entries, 1 run" in ask("ledger", "verify").stdout
    assert not (fleet / ".assay" / "ledger.sqlite").exists()


def test_a_path_is_taken_as_it_is(ask, fleet, tmp_path, monkeypatch):
    other = tmp_path / "other.sqlite"
    wrote(other, *ENROLLED)
    monkeypatch.setenv("ASSAY_LEDGER", str(other))
    assert "n0002" in ask("status").stdout
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_LEDGER", "other.sqlite")
    assert locate_ledger(fleet) == other
    monkeypatch.setenv("ASSAY_LEDGER", "")
    assert locate_ledger(fleet) == fleet / "ledger.sqlite"


def test_those_who_only_read_are_told_of_no_ledger_that_is_not_there(tmp_path, monkeypatch):
    assert locate_existing_ledger(tmp_path) == ""
    wrote(tmp_path / "ledger.sqlite")
    assert locate_existing_ledger(tmp_path) == str(tmp_path / "ledger.sqlite")
    monkeypatch.setenv("ASSAY_LEDGER", "postgresql://host/fleet")
    assert locate_existing_ledger(tmp_path) == "postgresql://host/fleet"


def test_a_whole_ledger_is_said_to_be_with_its_seal(ask, fleet):
    wrote(Workspace(fleet).ledger_location, *ENROLLED)
    told = ask("ledger", "verify")
    assert told.exit_code == 0
    seal = told.stdout.rpartition(" ")[2].strip()
    assert ask("ledger", "verify", "--seal", seal).exit_code == 0
    answer = json.loads(ask("ledger", "verify", "--format", "json").stdout)
    entry, run = answer["ends"]["entry"], answer["ends"]["run"]
    assert answer == {
        "whole": True,
        "problems": [],
        "ends": {"entry": {"seq": 2, "hash": entry["hash"]}, "run": {"seq": 1, "hash": run["hash"]}},
        "seal": seal,
        "archives": [],
        "anchors": [],
        "context": "fleet",
    }
    assert seal == f"2:{entry['hash']},1:{run['hash']}"


def test_a_broken_ledger_names_the_first_line_and_what_to_do(ask, fleet):
    file = Workspace(fleet).ledger_location
    wrote(file, *ENROLLED)
    with sqlite3.connect(file) as database:
        database.executescript("DROP TRIGGER entry_no_update; UPDATE entry SET node = 'n0009' WHERE seq = 2")
    told = ask("ledger", "verify")
    assert told.exit_code == 1
    lines = told.stdout.splitlines()
    assert lines[0] == "the ledger is broken"
    assert lines[1].startswith("  entry 2 (node.enrolled of n0009")
    assert "→ keep this ledger as it is" in lines[-1]
    answer = json.loads(ask("ledger", "verify", "--format", "json").stdout)
    assert (answer["whole"], len(answer["problems"])) == (False, 1)


def test_a_ledger_that_was_made_anew_has_another_seal(ask, fleet, tmp_path):
    file = Workspace(fleet).ledger_location
    wrote(tmp_path / "true.sqlite", *ENROLLED, LedgerEntry("h", AT, "hold", "n0001", {"who": "ann", "reason": "fan"}))
    true = Ledger.open(tmp_path / "true.sqlite")
    seals = [f"{seq}:{true.hash_of(seq)},0:{'0' * 64}" for seq in (2, 3)]
    wrote(file, ENROLLED[1], ENROLLED[0])
    assert ask("ledger", "verify").exit_code == 0
    told = [ask("ledger", "verify", "--seal", seal) for seal in seals]
    assert [one.exit_code for one in told] == [1, 1]
    assert "entry 2 is not the sealed one" in told[0].stdout
    assert "entry 3, which was sealed, is missing" in told[1].stdout


@pytest.mark.parametrize("seal", ["hunter2", "3:", "x:0123456789ab", ":0123456789ab"])
def test_what_is_no_seal_is_refused(ask, fleet, seal):
    wrote(Workspace(fleet).ledger_location, *ENROLLED)
    with pytest.raises(AssayError, match="not a seal"):
        ask("ledger", "verify", "--seal", seal)


def test_a_ledger_that_is_not_there_or_cannot_be_read_is_trouble(ask, fleet):
    with pytest.raises(AssayError, match="no ledger yet"):
        ask("ledger", "verify")
    assert not (fleet / ".assay").exists(), "nothing is made"
    file = Path(Workspace(fleet).ledger_location)
    file.parent.mkdir()
    file.write_text("Dear diary, " * 400)
    with pytest.raises(AssayError, match="no ledger"):
        ask("ledger", "verify")


@pytest.mark.parametrize("url", ["postgresql://ann:hunter2@host:port/x", "://hunter2"])
def test_a_url_that_cannot_be_read_is_trouble_and_quotes_no_password(url):
    with pytest.raises(AssayError, match="URL cannot be read") as told:
        Ledger.open(url)
    assert "hun" not in str(told.value)
    assert "ter2" not in str(told.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hunter2@127.0.0.1:1/fleet",
        "postgresql://127.0.0.1:1/fleet?user=ann&password=hunter2",
        "postgresql://ann@127.0.0.1:1/fleet?sslpassword=hunter2",
    ],
)
def test_a_server_that_is_not_there_is_named_as_it_was_given_and_without_its_password(url):
    with pytest.raises(AssayError, match="check that it runs") as told:
        Ledger.open(url)
    assert "postgresql://" in str(told.value)
    assert "127.0.0.1:1/fleet" in str(told.value)
    assert "hunter2" not in str(told.value)
