"""A sealed ledger that somebody alters with all rights: whatever changes a meaning is seen.

The forger draws any change of any line, makes the chains anew where he likes, and claims prunings and archives.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner

from assay.cli.app import app
from assay.ledger import tables
from assay.ledger.chain_verification import ENTRY_LINE, digest_contents
from assay.ledger.copies.archive import archive_entries
from assay.ledger.copies.seal import LedgerSeal, make_seal
from assay.ledger.copies.sealing import find_contradictions, find_unsealed_removals
from assay.ledger.hash_chain import HashChain, RestDigest, insert_entries
from assay.ledger.store import Ledger
from assay.model.entries.node_entries import EntriesArchivedEntry, OutcomesPrunedEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Measurement, Outcome, SuiteRun
from tests.ledger.forgers import drop_guards, rebuild_chain, save_end

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=40)
KINDS = ("hold", "observe.failed", "fault.opened", "note")


def day(number: float) -> str:
    return (START + timedelta(days=number)).isoformat()


def fill(place: Path) -> None:
    """Entries of several kinds, runs with short, long and shared words, one pruning and one archive."""
    ledger = Ledger.open(place)
    for number in range(20):
        kind = KINDS[number % len(KINDS)]
        ledger.append(LedgerEntry(f"e{number}", day(number), kind, f"n{number % 3}", {"who": "ann", "n": number}))
        told = [
            Outcome(
                f"suites/x.py::test_{name}",
                f"p/n1/gpu{gpu}",
                "n1",
                "fail" if (number + gpu) % 3 == 0 else "pass",
                "hot " * 200 if (number + gpu) % 3 == 0 else "",
                evidence=f"{number:064}",
                evidence_at=day(number),
                measurements=(Measurement("heat", float(number), "°C", at_most=90.0),),
            )
            for name in ("a", "b")
            for gpu in range(4)
        ]
        ledger.record(SuiteRun(f"run-{number}", day(number), phases=("production",), who="ann"), told)
    ledger.prune_outcomes(START + timedelta(days=5), "ann", NOW)
    ledger.close()
    archive_entries(place, place.with_name("a.gz"), START + timedelta(days=8), "ann", NOW)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LedgerSeal]:
    """The file of a ledger without its guards, and its seal."""
    place = tmp_path_factory.mktemp("sealed") / "ledger.sqlite"
    fill(place)
    ledger = Ledger.open(place)
    seal = make_seal(ledger.chain_ends())
    with ledger._engine.begin() as connection:
        drop_guards(connection)
    ledger.close()
    with closing(sqlite3.connect(place)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    return place, seal


def find_problems(place: Path, seal: LedgerSeal) -> list[str]:
    """What `assay ledger verify --seal` finds."""
    try:
        ledger = Ledger.open_for_reading(place)
    except AssayError as error:
        return [str(error)]
    try:
        contradictions = find_contradictions(ledger, seal)
        fitting = [] if contradictions else [seal]
        return [*ledger.verify(), *contradictions, *find_unsealed_removals(ledger, fitting)]
    except AssayError as error:
        return [str(error)]
    finally:
        ledger.close()


def read_meaning(database: sqlite3.Connection) -> list[Any]:
    """Return all that a reader could be told: the number of a measurement only orders them, and chains are two."""
    meaning: list[Any] = []
    for table in tables.metadata.sorted_tables:
        names = [f'"{column.name}"' for column in table.columns]
        told = names[1:] if table is tables.measurements else names
        order = names[0] if table is tables.measurements else ", ".join(names)
        where = "WHERE name IN ('entry', 'run')" if table is tables.chains else ""
        query = f"SELECT {', '.join(told)} FROM {table.name} {where} ORDER BY {order}"
        meaning.append(database.execute(query).fetchall())
    return meaning


def draw_value(random: Random, database: sqlite3.Connection, table: str, column: str) -> Any:
    """A value for a column: one of another line, one like it, or something that does not belong there."""
    (others,) = zip(*database.execute(f'SELECT "{column}" FROM {table}').fetchall() or [(None,)], strict=True)
    other = random.choice(others)
    near = other + random.choice([-1, 1]) if isinstance(other, int | float) else f"{other} "
    return random.choice([other, near, None, "None", "", "0", 0, 1, "@1", "[1]", b"x"])


def tamper(random: Random, database: sqlite3.Connection) -> str:
    """Change one thing as somebody with all rights may; return what."""
    table = random.choice([table for table in tables.metadata.sorted_tables if table is not tables.leases])
    columns = [f'"{column.name}"' for column in table.columns]
    rows = [row for (row,) in database.execute(f"SELECT {columns[0]} FROM {table.name}")]
    one = f"{columns[0]} = {random.choice(rows)!r}"
    column = random.choice(columns)
    match random.choice(["set", "set", "set", "delete", "swap", "copy", "empty"]):
        case "set":
            value = draw_value(random, database, table.name, column.strip('"'))
            database.execute(f"UPDATE {table.name} SET {column} = ? WHERE {one}", [value])
            return f"{table.name}.{column} = {value!r} where {one}"
        case "delete":
            database.execute(f"DELETE FROM {table.name} WHERE {one}")
            return f"delete from {table.name} where {one}"
        case "swap":
            other = f"{columns[0]} = {random.choice(rows)!r}"
            values = database.execute(f"SELECT {column} FROM {table.name} WHERE {other}").fetchone()
            database.execute(f"UPDATE {table.name} SET {column} = ? WHERE {one}", values)
            return f"{table.name}.{column} of {other} to {one}"
        case "copy":
            rest = ", ".join(columns[1:])
            database.execute(
                f"INSERT INTO {table.name} ({columns[0]}, {rest}) SELECT {columns[0]} || '9', {rest} "
                f"FROM {table.name} WHERE {one}"
            )
            return f"copy {table.name} {one}"
        case _:
            database.execute(f"DELETE FROM {table.name}")
            return f"empty {table.name}"


@pytest.mark.parametrize(("seed", "tries"), [(77, 150), pytest.param(78, 1500, marks=pytest.mark.slow)])
def test_whatever_changes_a_meaning_is_seen(sealed, tmp_path, seed, tries):
    place, seal = sealed
    assert find_problems(place, seal) == []
    with closing(sqlite3.connect(place)) as database:
        before = read_meaning(database)
    changed, unseen, random = 0, [], Random(seed)
    copy = tmp_path / "ledger.sqlite"
    for _ in range(tries):
        shutil.copy(place, copy)
        with closing(sqlite3.connect(copy)) as database:
            try:
                with database:
                    what = tamper(random, database)
            except sqlite3.DatabaseError:
                continue  # the database refuses it: nothing was changed
            if read_meaning(database) == before:
                continue
        changed += 1
        if not find_problems(copy, seal):
            unseen.append(what)
    assert changed > tries / 3
    assert unseen == []


def forge_pruning(ledger: Ledger) -> None:
    """Turn outcomes into passes, and claim a pruning that left them so."""
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        run = connection.execute(select(tables.runs).where(tables.runs.c.seq == 18)).one()
        altered = update(tables.measurements).where(tables.measurements.c.outcome <= run.outcomes)
        connection.execute(altered.values(value=tables.measurements.c.value * 1.1))
        entry = OutcomesPrunedEntry(run.seq, 8, digest_contents(connection, run), "ann")
        append(connection, entry.make_entry("forged", NOW.isoformat()))


def forge_archive(ledger: Ledger) -> None:
    """Take the bodies of observations out, and claim an archive."""
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        mine = (tables.entries.c.kind == "observe.failed") & (tables.entries.c.seq > 8)
        connection.execute(update(tables.entries).where(mine).values(body="@2", node="n9"))
        digest = RestDigest()
        last = 0
        for row in connection.execute(select(*ENTRY_LINE).order_by(tables.entries.c.seq)).all():
            digest.add(row)
            last = row[0]
        entry = EntriesArchivedEntry(last, 3, digest.hexdigest(), "/mnt/2025.gz", "0" * 64, "ann")
        append(connection, entry.make_entry("forged", NOW.isoformat()))


def append(connection: Any, entry: LedgerEntry) -> None:
    chain = HashChain(connection, "entry")
    insert_entries(connection, chain, [entry])
    save_end(connection, "entry", chain.seq, chain.hash)


@pytest.mark.parametrize("forge", [forge_pruning, forge_archive])
def test_a_claimed_removal_is_believed_only_with_a_seal(sealed, tmp_path, forge):
    copy = tmp_path / "ledger.sqlite"
    shutil.copy(sealed[0], copy)
    ledger = Ledger.open(copy)
    forge(ledger)
    assert ledger.verify() == [], "the forger makes the chains fit"
    ledger.close()
    (problem,) = find_problems(copy, sealed[1])
    assert "no seal covers it: nothing proves what it left" in problem


def test_an_archive_has_only_kinds_on_which_nothing_rests(tmp_path):
    fill(place := tmp_path / "ledger.sqlite")
    ledger = Ledger.open(place)
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        connection.execute(update(tables.entries).where(tables.entries.c.id == "e2").values(body="@1"))
        digest = RestDigest()
        (newest,) = connection.execute(select(tables.entries).where(tables.entries.c.kind == "entries.archived")).all()
        body = json.loads(newest.body)
        for row in connection.execute(select(*ENTRY_LINE).where(tables.entries.c.seq <= body["through"])).all():
            digest.add(row)
        told = json.dumps(body | {"digest": digest.hexdigest()}, sort_keys=True)
        connection.execute(update(tables.entries).where(tables.entries.c.seq == newest.seq).values(body=told))
        before = connection.execute(select(tables.entries.c.hash).where(tables.entries.c.id == "e2")).scalar_one()
        rebuild_chain(connection, tables.entries, "entry")
        connection.execute(update(tables.entries).where(tables.entries.c.id == "e2").values(hash=before))
    assert any("no archive takes entries of its kind" in problem for problem in ledger.verify())
    ledger.close()


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a ledger whose seals are in a file."""
    root = tmp_path / "fleet"
    (root / "inventory").mkdir(parents=True)
    fill(root / "home" / "ledger.sqlite")
    monkeypatch.setenv("ASSAY_LEDGER", str(root / "home" / "ledger.sqlite"))
    monkeypatch.setenv("ASSAY_WHO", "ann")
    return root


def ask(root: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["ledger", *words, "--fleet", str(root)], catch_exceptions=False)


def test_an_archive_that_a_command_makes_is_sealed_at_once(fleet):
    assert ask(fleet, "seal", "--anchor", "file:../of-the-fleet").exit_code == 0
    moved = ask(fleet, "archive", str(fleet / "b.gz"), "--before", "2026-01-15", "--yes")
    assert moved.exit_code == 0
    assert "file:../of-the-fleet keeps the seal" in moved.stderr
    assert ask(fleet, "verify").exit_code == 0


def test_a_removal_that_nobody_sealed_waits_for_a_person(fleet):
    assert ask(fleet, "seal", "--anchor", "file:../of-the-fleet").exit_code == 0
    archive_entries(fleet / "home/ledger.sqlite", fleet / "b.gz", START + timedelta(days=15), "ann", NOW)
    told = ask(fleet, "verify")
    assert (told.exit_code, "assay ledger seal --accept 23" in told.stdout) == (1, True), told.stdout
    assert ask(fleet, "seal").exit_code == 1
    assert ask(fleet, "seal", "--accept", "23").exit_code == 0
    assert ask(fleet, "verify").exit_code == 0


def test_an_emptied_table_is_a_finding(fleet):
    with closing(sqlite3.connect(fleet / "home/ledger.sqlite")) as database, database:
        database.execute("DROP TRIGGER assay_ledger_no_delete")
        database.execute("DELETE FROM assay_ledger")
    told = ask(fleet, "verify")
    assert told.exit_code == 1
    assert "its table assay_ledger holds 0 lines in place of one" in told.stdout
