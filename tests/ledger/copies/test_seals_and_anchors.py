"""A ledger that is altered as a whole fits its own hashes; the seals of anchors show it, and say what is proven."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from sqlalchemy import text
from typer.testing import CliRunner

from assay.cli.app import app
from assay.ledger.copies.anchors import parse_anchor
from assay.ledger.copies.seal import AnchoredFleet, parse_seal
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Measurement, Outcome, SuiteRun
from tests.ledger.copies.time_stamp_authority import Authority, serve_authority
from tests.ledger.forgers import delete_runs, drop_guards, flip_outcomes, rewrite_entries, roll_back
from tests.support.small_disk import run_on_small_disk

AT = "2026-11-21T12:00:00+00:00"
ANCHORS = ("file:../seals/of-this-ledger", "git-note")
Ask = Callable[..., Result]


@pytest.fixture(scope="module")
def authority() -> Iterator[Authority]:
    yield from serve_authority()


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A git repository with one commit, and a folder for seals beside it."""
    (tmp_path / "seals").mkdir()
    root = tmp_path / "fleet"
    root.mkdir()
    (root / "README").write_text("a fleet\n")
    person = ("-c", "user.name=ann", "-c", "user.email=ann@site")
    for words in (("init", "-q"), ("add", "."), (*person, "commit", "-qm", "begin")):
        subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)
    return root


@pytest.fixture
def location(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> Path | str:
    """A ledger with three entries and two runs, which ASSAY_LEDGER names."""
    return write_ledger(fleet / "home" / "ledger.sqlite", monkeypatch)


@pytest.fixture
def any_location(place: Path | str, monkeypatch: pytest.MonkeyPatch) -> Path | str:
    """Such a ledger, on SQLite and on PostgreSQL."""
    return write_ledger(place, monkeypatch)


def write_ledger(place: Path | str, monkeypatch: pytest.MonkeyPatch) -> Path | str:
    monkeypatch.setenv("ASSAY_LEDGER", str(place))
    monkeypatch.setenv("ASSAY_WHO", "ann")
    ledger = Ledger.open(place)
    ledger.append(*map(make_entry, range(1, 4)))
    record_run(ledger, "r1", "pass")
    record_run(ledger, "r2", "fail")
    ledger.close()
    return place


@pytest.fixture
def ask(fleet: Path) -> Ask:
    (fleet / "inventory").mkdir(exist_ok=True)

    def asked(*words: str) -> Result:
        return CliRunner().invoke(app, ["ledger", *words, "--fleet", str(fleet)], catch_exceptions=False)

    return asked


def make_entry(number: int) -> LedgerEntry:
    return LedgerEntry(f"e{number}", AT, "node.enrolled", f"n{number}", {"pool": "h100-a", "state": "seatrial"})


def record_run(ledger: Ledger, name: str, verdict: str) -> None:
    measured = (Measurement("gpu_temperature", 91.0, "°C", at_most=90.0),)
    told = [
        Outcome("heat", f"a/n{n}", f"n{n}", verdict, f"{name} hot", measurements=measured)  # type: ignore[arg-type]
        for n in range(3)
    ]
    ledger.record(SuiteRun(name, AT), told)


def alter(location: Path | str, forge: Callable[[Ledger], None]) -> None:
    """Forge, and prove that the ledger itself does not show it."""
    ledger = Ledger.open(location)
    forge(ledger)
    assert ledger.verify() == [], "the forger makes the chains anew"
    ledger.close()


def grow(location: Path | str) -> None:
    ledger = Ledger.open(location)
    ledger.append(make_entry(4), make_entry(5))
    record_run(ledger, "r3", "fail")
    ledger.close()


def seal_everywhere(ask: Ask, *more: str) -> str:
    words = [word for anchor in (*ANCHORS, *more) for word in ("--anchor", anchor)]
    sealed = ask("seal", *words)
    assert sealed.exit_code == 0, sealed.stdout
    return str(json.loads(ask("verify", "--format", "json").stdout)["seal"])


def name_of(authority: Authority) -> str:
    return f"rfc3161:{authority.url}#{authority.ca}"


FORGERIES = {
    "every outcome flipped": (flip_outcomes, "run 2 is not the sealed one"),
    "all runs deleted": (delete_runs, "run 2, which was sealed, is missing"),
    "all entries rewritten": (rewrite_entries, "entry 3 is not the sealed one"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_each_anchor_of_before_finds_a_ledger_that_was_made_anew(ask, any_location, authority, forgery):
    seal = seal_everywhere(ask, name_of(authority))
    grow(any_location)
    forge, sign = FORGERIES[forgery]
    alter(any_location, forge)
    for anchor in (*ANCHORS, name_of(authority)):
        told = ask("verify", "--anchor", anchor)
        assert told.exit_code == 1, anchor
        assert told.stdout.startswith("the ledger is broken"), told.stdout
        assert f"{anchor}: {sign}" in told.stdout, told.stdout
        assert "→ keep this ledger as it is" in told.stdout
    told = ask("verify", "--seal", seal)
    assert told.exit_code == 1
    assert told.stdout.count(sign) == 4, "the three anchors are known, and the seal that was given"


def test_each_anchor_of_before_finds_an_old_copy_that_was_restored(ask, any_location, authority, tmp_path):
    if isinstance(any_location, Path):
        shutil.copy(any_location, tmp_path / "old.sqlite")
    grow(any_location)
    seal = seal_everywhere(ask, name_of(authority))
    if isinstance(any_location, Path):
        shutil.copy(tmp_path / "old.sqlite", any_location)
    else:
        alter(any_location, lambda ledger: roll_back(ledger, 3, 2))
    for anchor in (*ANCHORS, name_of(authority)):
        told = ask("verify", "--anchor", anchor)
        assert told.exit_code == 1
        assert f"{anchor}: entry 5, which was sealed, is missing" in told.stdout
        assert "run 3, which was sealed, is missing" in told.stdout
    assert ask("verify", "--seal", seal).exit_code == 1
    refused = ask("seal", "--anchor", ANCHORS[0])
    assert refused.exit_code == 1, "no anchor takes a seal that contradicts its others"
    assert "entry 5, which was sealed, is missing" in refused.stdout


def test_a_ledger_begun_anew_is_found_even_after_it_has_grown_again(ask, location):
    seal_everywhere(ask)
    alter(location, delete_runs)
    ledger = Ledger.open(location)
    record_run(ledger, "again-1", "pass")
    record_run(ledger, "again-2", "pass")
    ledger.close()
    assert "run 2 is not the sealed one" in ask("verify").stdout


def test_verify_says_up_to_where_each_anchor_proves_the_ledger_and_what_came_after(ask, any_location, authority):
    seal_everywhere(ask, name_of(authority))
    grow(any_location)
    assert ask("seal", "--anchor", ANCHORS[0]).exit_code == 0
    ledger = Ledger.open(any_location)
    ledger.append(make_entry(6))
    ledger.close()
    told = ask("verify")
    assert told.exit_code == 0, told.stdout
    assert f"{ANCHORS[0]} proves it up to entry 5 and run 3, sealed 20" in told.stdout
    assert "after that came 1 entry and 0 runs" in told.stdout
    assert "git-note proves it up to entry 3 and run 2, sealed 20" in told.stdout
    assert "after that came 3 entries and 1 run" in told.stdout
    answer = json.loads(ask("verify", "--format", "json").stdout)
    assert [one["anchor"] for one in answer["anchors"]] == [*ANCHORS, name_of(authority)]
    sealed = [one["proven"]["seal"] for one in answer["anchors"]]
    assert [(seal["entry"]["seq"], seal["run"]["seq"]) for seal in sealed] == [(5, 3), (3, 2), (3, 2)]
    assert [one["seals"] for one in answer["anchors"]] == [2, 1, 1]
    assert answer["whole"]


def test_a_broken_ledger_is_proven_up_to_the_newest_seal_that_still_fits(ask, location):
    seal_everywhere(ask)
    ledger = Ledger.open(location)
    record_run(ledger, "r3", "fail")
    ledger.close()
    seal_everywhere(ask)
    alter(location, lambda ledger: roll_back(ledger, 3, 2))
    told = ask("verify", "--anchor", "git-note")
    assert told.exit_code == 1
    assert "run 3, which was sealed, is missing" in told.stdout
    assert "proven up to entry 3 and run 2, sealed 20" in told.stdout


@pytest.mark.parametrize("seal", ["3:" + "a" * 64, f"3:{'a' * 64},", f"3:{'a' * 64},1:{'b' * 64},1:{'b' * 64}"])
def test_a_seal_covers_both_chains(seal):
    with pytest.raises(AssayError, match="not a seal"):
        parse_seal(seal)


LOSSES = {
    "file": (ANCHORS[0], lambda root: (root / "../seals/of-this-ledger").unlink(), "this file is missing"),
    "emptied": (ANCHORS[0], lambda root: (root / "../seals/of-this-ledger").write_text(""), "holds no seal"),
    "damaged": (ANCHORS[0], lambda root: (root / "../seals/of-this-ledger").write_text("Dear"), "is not a stored seal"),
    "binary": (ANCHORS[0], lambda root: (root / "../seals/of-this-ledger").write_bytes(b"\xff\xfe"), "is not text"),
    "git": (ANCHORS[1], lambda root: git(root, "update-ref", "-d", "refs/notes/assay-seals"), "no seal in refs/notes"),
    "repository": (ANCHORS[1], lambda root: shutil.rmtree(root / ".git"), "git says"),
}


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_anchor_is_not_passed_over(ask, location, fleet, loss):
    seal_everywhere(ask)
    anchor, lose, sign = LOSSES[loss]
    lose(fleet)
    told = ask("verify")
    assert told.exit_code == 1
    assert "not every anchor says so" in told.stdout
    assert sign in told.stdout
    assert "→" in told.stdout, "what to do"
    answer = json.loads(ask("verify", "--format", "json").stdout)
    assert (answer["whole"], len(answer["problems"])) == (False, 1)
    refused = ask("seal", "--anchor", anchor)
    assert refused.exit_code == 1, "an anchor that was used is not begun anew in silence"
    others = [word for name in ANCHORS if name != anchor for word in ("--anchor", name)]
    assert ask("verify", *others).exit_code == 0, "who gave it up names the others"


def test_an_authority_that_is_offline_refuses_or_answers_nonsense_is_named_and_the_others_are_sealed(
    ask, location, authority
):
    offline = "rfc3161:http://127.0.0.1:9/tsr"
    told = ask("seal", "--anchor", offline, "--anchor", "git-note")
    assert told.exit_code == 2
    assert f"not sealed: {offline}: the time-stamp authority does not answer" in told.stdout
    assert "check the URL, the network and the proxy" in told.stdout
    assert "git-note keeps the seal" in told.stdout
    authority.refusal = b"Dear customer"
    told = ask("seal", "--anchor", name_of(authority))
    authority.refusal = b""
    assert told.exit_code == 2
    assert "does not hold" in told.stdout or "not a time stamp" in told.stdout
    known = json.loads(ask("verify", "--format", "json").stdout)["anchors"]
    assert [one["anchor"] for one in known] == ["git-note"], "what keeps no seal is no anchor"
    assert ask("verify", "--anchor", offline).exit_code == 1, "one that is named and keeps none is missing"


def test_a_stamp_is_proven_without_the_authority_and_with_its_own_time(ask, location, authority, fleet):
    assert ask("seal", "--anchor", name_of(authority)).exit_code == 0
    asked = authority.asked
    (proven,) = json.loads(ask("verify", "--format", "json").stdout)["anchors"]
    assert authority.asked == asked
    register = fleet / ".assay" / "seals.jsonl"
    (line,) = register.read_text().splitlines()
    register.write_text(line.replace('"at": "20', '"at": "19') + "\n")
    (again,) = json.loads(ask("verify", "--format", "json").stdout)["anchors"]
    assert again["proven"]["at"] == proven["proven"]["at"], "the register's own time counts for nothing"


def test_a_stamp_of_another_seal_or_of_a_stranger_proves_nothing(ask, location, authority, fleet, tmp_path):
    assert ask("seal", "--anchor", name_of(authority)).exit_code == 0
    register = fleet / ".assay" / "seals.jsonl"
    kept = register.read_text()
    grow(location)
    seal = json.loads(ask("verify", "--format", "json").stdout)["seal"]
    moved = json.loads(kept) | {"seal": seal}
    damaged = json.loads(kept) | {"stamp": base64.b64encode(b"no stamp").decode()}
    for line in (moved, damaged, json.loads(kept) | {"stamp": "§"}):
        register.write_text(json.dumps(line) + "\n")
        told = ask("verify")
        assert told.exit_code == 1, line
        assert "stamp" in told.stdout
    stranger = next(serving := serve_authority())
    other = f"rfc3161:{authority.url}#{stranger.ca}"
    register.write_text(json.dumps(json.loads(kept) | {"anchor": other}) + "\n")
    told = ask("verify")
    assert told.exit_code == 1
    assert "name the authority's root certificate" in told.stdout
    serving.close()
    stranger.close()


BAD = {
    "tape:/dev/st0": "is not an anchor",
    "file:": "is not an anchor",
    "git-note:../heads/main": "is not an anchor",
    "git-note:--exec=x": "is not an anchor",
    "rfc3161:ftp://host": "is not an anchor",
    "file:.assay/seals.jsonl": "a file of its own",
    "file:.": "a file of its own",
    "rfc3161:https://ann:hunter2@host/tsr": "an anchor holds no password",
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_anchor_is_refused(fleet, name):
    with pytest.raises(AssayError, match=BAD[name]) as told:
        parse_anchor(name, AnchoredFleet(fleet, fleet / "ledger.sqlite", fleet / ".assay" / "seals.jsonl"))
    assert "hunter2" not in str(told.value)


def test_nothing_is_no_anchor(ask, location):
    with pytest.raises(AssayError, match="no anchor is given"):
        ask("seal")
    assert "nothing outside of the ledger proves it" in ask("verify").stdout


def test_a_broken_ledger_is_not_sealed(ask, location, fleet):
    ledger = Ledger.open(location)
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        connection.execute(text("UPDATE entry SET node = 'n9' WHERE seq = 2"))
    ledger.close()
    told = ask("seal", "--anchor", ANCHORS[0])
    assert told.exit_code == 1
    assert "nothing was sealed" in told.stdout
    assert not (fleet / ".assay" / "seals.jsonl").exists()


def test_a_file_that_is_full_keeps_its_seals_whole(tmp_path):
    said = run_on_small_disk(tmp_path / "disk", "64k", "-c", FULL, tmp_path / "disk")
    assert "its disk must have room" in said


FULL = """
import sys
from pathlib import Path
from tests.support.ballast import fill
from assay.ledger.copies.anchors import append_to_seal_file, read_seal_file
from assay.ledger.copies.seal import StoredSeal, parse_seal
from assay.model.errors import AssayError
disk = Path(sys.argv[1])
seal = StoredSeal(parse_seal("3:" + "a" * 64 + ",1:" + "b" * 64), "2026-11-21T12:00:00+00:00", "ann", stamp="s" * 9000)
append_to_seal_file(disk / "seals", seal)
fill(disk)
try:
    append_to_seal_file(disk / "seals", seal)
    raise SystemExit("the disk was not full")
except AssayError as error:
    said = str(error)
assert read_seal_file(disk / "seals") == [seal]
(disk / "ballast").unlink()
append_to_seal_file(disk / "seals", seal)
assert read_seal_file(disk / "seals") == [seal] * 2
print(said)
"""


def test_a_note_is_on_the_commit_and_travels_with_a_push(ask, location, fleet, tmp_path):
    git(tmp_path, "init", "-q", "--bare", "origin.git")
    git(fleet, "remote", "add", "origin", str(tmp_path / "origin.git"))
    told = ask("seal", "--anchor", "git-note:site/seals")
    assert "push it: git push origin refs/notes/site/seals" in told.stdout
    subprocess.run(
        ["git", "-C", str(fleet), "push", "-q", "origin", "refs/notes/site/seals"], check=True, env={**os.environ}
    )
    git(fleet, "update-ref", "-d", "refs/notes/site/seals")
    assert ask("verify").exit_code == 1
    git(fleet, "fetch", "-q", "origin", "refs/notes/site/seals:refs/notes/site/seals")
    assert ask("verify").exit_code == 0
