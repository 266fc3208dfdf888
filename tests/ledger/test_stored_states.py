"""A kept state is as if it was folded anew, or it is not used."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from assay.decide.state.node_projection import NODE_STATES, STORED_NODE_STATES
from assay.decide.state.node_state import HISTORY_FIELDS
from assay.ledger import location
from assay.ledger.location import SqliteEntries, read_stored_state
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.ledger.test_projections import HISTORY

RECORDED = [one for one in HISTORY if one.kind in NODE_STATES.kinds]
ENTRIES = [replace(one, seq=seq) for seq, one in enumerate(RECORDED, 1)]
CUT = len(ENTRIES) - 20


class Asked(SqliteEntries):
    """Remembers how many entries it gave."""

    count = 0

    def entries(self, **how) -> list[LedgerEntry]:
        found = super().entries(**how)
        self.count += len(found)
        return found


@pytest.fixture(autouse=True)
def keeps_all(monkeypatch):
    monkeypatch.setattr(location, "WORTH_KEEPING", 1)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return write(tmp_path / "ledger.sqlite", ENTRIES[:CUT])


def write(file: Path, entries: list[LedgerEntry]) -> Path:
    ledger = Ledger.open(file)
    ledger.append(*entries)
    ledger.close()
    return file


def read(place: Path, form=STORED_NODE_STATES) -> tuple[object, int]:
    """Return the states, and how many entries had to be read for them."""
    source = Asked(place)
    return read_stored_state(form, place.parent / "states", source), source.count


def test_only_what_is_new_is_read_and_the_states_are_as_if_folded_anew(place):
    assert read(place) == (NODE_STATES.fold(ENTRIES[:CUT]), CUT)
    assert read(place) == (NODE_STATES.fold(ENTRIES[:CUT]), 0)
    write(place, ENTRIES[CUT:])
    assert read(place) == (NODE_STATES.fold(ENTRIES), len(ENTRIES) - CUT)
    assert read(place)[1] == 0


def test_what_a_node_has_been_through_is_read_only_where_something_is_wrong_or_somebody_asks(place):
    folded = read(place)[0].node_states()
    stored = read(place)[0].node_states()
    unread = {name for name, state in stored.items() if state.unread}
    assert unread == {name for name, state in folded.items() if all(not each.is_open for each in state.faults)}
    assert 0 < len(unread) < len(stored)
    for name in unread:
        whole, state = folded[name], stored[name]
        asked = [(one.open_faults, one.open_series, one.unjudged, one.is_held_by_breaker) for one in (whole, state)]
        assert asked[0] == asked[1]
        assert state.unread, "nothing that is wrong now needs its history"
        changed = replace(state, note="another")
        assert (changed.unread, changed.transitions, changed.faults) == ("", whole.transitions, whole.faults)
        assert (state, state.unread) == (whole, "")


def test_a_ledger_with_another_past_is_folded_anew(place, tmp_path):
    read(place)
    other = write(tmp_path / "other.sqlite", [replace(one, id=f"other {one.id}") for one in ENTRIES[:CUT]])
    other.replace(place)
    assert read(place)[1] == CUT, "it has an entry of this number, and with another hash"
    place.unlink()
    write(place, ENTRIES[:9])
    assert read(place) == (NODE_STATES.fold(ENTRIES[:9]), 9)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"seq": "x", "hash": null}'])
def test_a_file_that_makes_no_sense_is_written_anew(place, content):
    read(place)
    (file,) = (place.parent / "states").iterdir()
    file.write_text(content)
    assert read(place)[1] == CUT
    assert read(place)[1] == 0


def test_another_version_has_its_own_file_and_old_ones_go(place):
    read(place)
    (old,) = (place.parent / "states").iterdir()
    newer = replace(STORED_NODE_STATES, version=STORED_NODE_STATES.version + 1)
    assert read(place, newer)[1] == CUT
    assert old.exists(), "an older assay may still work there"
    os.utime(old, (time.time() - 8 * 86_400,) * 2)
    write(place, ENTRIES[CUT:])
    read(place, newer)
    assert not old.exists()


def test_a_disk_that_cannot_be_written_costs_no_answer(place):
    (place.parent / "states").write_text("in the way")
    assert read(place) == (NODE_STATES.fold(ENTRIES[:CUT]), CUT)


def test_who_changes_the_states_of_the_same_entries_raises_the_version():
    """Raise the version of STORED_NODE_STATES if its code changed, and not only the recorded entries."""
    plain = STORED_NODE_STATES.encode(NODE_STATES.fold(ENTRIES))
    for line in plain[1:]:
        history = dict(zip(HISTORY_FIELDS, line, strict=True))
        history["known_boots"].sort()
        history["former_gpus"].sort()
        for repair in history["repairs"]:
            repair["earlier_boots"].sort()
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:12]
    assert (STORED_NODE_STATES.version, digest) == (14, "020d2b79dc63")
