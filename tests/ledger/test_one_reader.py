"""One reader of a ledger: each entry once and in order, whoever appends and reads meanwhile."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from assay.ledger.ledger_reader import open_reader_of, read_projection
from assay.ledger.store import Ledger
from assay.model.entries.node_entries import HoldEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry, Projection
from tests.ledger.forks import Forked

AT = "2026-11-21T12:00:00+00:00"
Seqs = tuple[int, ...]


def follow(*kinds: str) -> Projection[Seqs]:
    return Projection(kinds, tuple[int, ...], lambda seqs, entry: (*seqs, entry.seq))


def count(*kinds: str) -> Projection[list[int]]:
    """A state that changes in place, once it was copied."""

    def step(seqs: list[int], entry: LedgerEntry) -> list[int]:
        seqs.append(entry.seq)
        return seqs

    return Projection(kinds, list, step, list)


def entry(ident: str, kind: str = "hold") -> LedgerEntry:
    return LedgerEntry(ident, AT, kind, "n1")


def append_many(line, place, name):
    ledger = Ledger.open(place)
    line.send("ready")
    line.recv()
    for number in range(60):
        kinds = ("hold", "release", "move")[: number % 3 + 1]
        ledger.append(*(entry(f"{name}-{number}-{kind}", kind) for kind in kinds))
    line.send("done")


def test_each_entry_comes_once_and_in_order_while_two_processes_append_and_threads_read(place):
    ledger = Ledger.open(place)
    holds, moves, late = count("hold"), count("move", "release"), count("hold", "move")
    writers = [Forked(append_many, place, name) for name in ("one", "other")]
    is_over, wrong = threading.Event(), list[str]()

    def read(projection: Projection[list[int]]) -> None:
        before: list[int] = []
        while not is_over.is_set():
            now = read_projection(ledger, projection)
            if now[: len(before)] != before or now != sorted(set(now)):
                wrong.append(f"{before} → {now}")
            before = list(now)

    readers = [threading.Thread(target=read, args=(one,)) for one in (holds, moves)]
    for each in readers:
        each.start()
    for writer in writers:
        assert writer.hear() == "ready"
    for writer in writers:
        writer.say()
    readers.append(threading.Thread(target=read, args=(late,)))
    readers[-1].start()
    assert [writer.hear() for writer in writers] == ["done", "done"]
    is_over.set()
    for each in readers:
        each.join()
    assert wrong == []
    entries = ledger.entries()
    assert len(entries) == 2 * 20 * (1 + 2 + 3)
    for projection in (holds, moves, late):
        assert read_projection(ledger, projection) == [one.seq for one in entries if one.kind in projection.kinds]


def test_a_state_that_was_read_never_changes(ledger):
    ledger.append(entry("a"))
    holds = count("hold")
    before = read_projection(ledger, holds)
    ledger.append(entry("b"), entry("c", "move"))
    assert (before, read_projection(ledger, holds)) == ([1], [1, 2])


def test_new_entries_are_asked_for_once_for_all_states(ledger, monkeypatch):
    projections = [follow("hold"), follow("move"), count("hold", "move")]
    for projection in projections:
        read_projection(ledger, projection)
    ledger.append(entry("a"), entry("b", "move"))
    asked, entries = list[dict](), ledger.entries
    monkeypatch.setattr(ledger, "entries", lambda **how: asked.append(how) or entries(**how))
    assert [len(read_projection(ledger, one)) for one in projections] == [1, 1, 2]
    assert asked == [{"after": 0}]


def test_a_body_of_a_newer_version_loses_only_its_own_states(ledger):
    holds = Projection[str](("hold",), str, lambda who, one: who + HoldEntry.read(one).who)
    every = follow("hold", "move")
    hold = HoldEntry("ann", "looks").make_entry("a", AT, "n1")
    ledger.append(hold)
    assert (read_projection(ledger, holds), read_projection(ledger, every)) == ("ann", (1,))
    ledger.append(entry("b", "move"), replace(hold, id="c", body={**hold.body, "entry_version": 99}))
    for _ in range(2):
        with pytest.raises(AssayError, match="has version 99"):
            read_projection(ledger, holds)
        assert read_projection(ledger, every) == (1, 2, 3)
    ledger.append(entry("d", "move"))
    assert read_projection(ledger, every) == (1, 2, 3, 4)
    late = Projection[str](("hold",), str, holds.step)
    for _ in range(2):
        with pytest.raises(AssayError, match="has version 99"):
            read_projection(ledger, late)


def test_a_follower_gets_what_is_appended_from_then_on_with_the_state_of_that_moment(ledger):
    ledger.append(entry("a"))
    reader, holds = open_reader_of(ledger), follow("hold")
    queue = reader.follow()
    assert reader.take(queue, holds) == ([], (1,), 1)
    ledger.append(entry("b", "move"), entry("c"))
    entries, state, seq = reader.take(queue, holds)
    assert ([one.id for one in entries], state, seq) == (["b", "c"], (1, 3), 3)
    assert reader.take(queue, holds) == ([], (1, 3), 3)
