"""Each state that follows from the ledger is the same however its entries are cut, and after old ones were archived."""

from __future__ import annotations

import importlib
import json
import random
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.act.schedules.due_slots import SLOTS
from assay.ledger.copies.archive import ARCHIVABLE_KINDS, archive_entries
from assay.ledger.ledger_reader import read_projection
from assay.ledger.store import Ledger
from assay.model.entries.node_entries import EntriesArchivedEntry, NodeEnrolledEntry
from assay.model.ledger_entry import LedgerEntry, Projection
from assay.tell.metrics.ledger_counts import LEDGER_COUNTS
from assay.tell.views.incident_story import LAST_FAILURES
from tests.architecture.source_tree import read_source_modules
from tests.support.places import ROOT

RECORDED = json.loads((ROOT / "tests/data/recorded_entries.json").read_text())
START = datetime(2026, 11, 20, tzinfo=UTC)


def find_projections() -> dict[str, Projection[Any]]:
    """Return every projection of assay by its name."""
    names = [module.name for module in read_source_modules() if "= Projection" in module.path.read_text()]
    found = [vars(importlib.import_module(name)).items() for name in names]
    return {name: one for members in found for name, one in members if isinstance(one, Projection)}


PROJECTIONS = find_projections()
NOT_STATE = ("_own", "_fresh_members", "_unread")
"""What a state notes about what it may change in place."""


def describe(state: Any) -> Any:
    """Return a state as plain data, in its order."""
    if isinstance(state, dict):
        return [(describe(key), describe(value)) for key, value in state.items()]
    if isinstance(state, list | tuple):
        return [describe(one) for one in state]
    if isinstance(state, set | frozenset):
        return sorted(map(str, state))
    if is_dataclass(state):
        return [(one.name, describe(getattr(state, one.name))) for one in fields(state) if one.name not in NOT_STATE]
    if type(state).__module__.startswith("assay.") and hasattr(state, "__dict__"):
        return [(name, describe(value)) for name, value in vars(state).items() if name not in NOT_STATE]
    return state


def make_history() -> list[LedgerEntry]:
    """Return entries of every kind, about nodes that are enrolled; all come twice, so that states change."""
    parts = ("at", "kind", "node", "body")
    recorded = [LedgerEntry(f"e{seq}", *(one[part] for part in parts)) for seq, one in enumerate(RECORDED)]
    start, nodes = START.isoformat(), sorted({one.node for one in recorded} - {""})
    enrolled = [NodeEnrolledEntry("a", "production", f"S-{node}").make_entry(node, start, node) for node in nodes]
    again = [replace(one, id=f"{one.id}-again") for one in recorded]
    return [replace(one, seq=number) for number, one in enumerate([*enrolled, *recorded, *again], 1)]


HISTORY = make_history()


@pytest.mark.parametrize("name", PROJECTIONS)
def test_a_state_is_the_same_however_its_entries_are_cut(name: str) -> None:
    projection, chance = PROJECTIONS[name], random.Random(7)
    whole = describe(projection.fold(HISTORY))
    assert whole != describe(projection.initial()), "the history says something about it"
    for parts in (2, 9, len(HISTORY)):
        cuts = sorted(chance.choices(range(len(HISTORY)), k=parts - 1))
        state = projection.initial()
        for begin, end in zip([0, *cuts], [*cuts, len(HISTORY)], strict=True):
            before, described = state, describe(state)
            state = projection.fold(HISTORY[begin:end], state)
            assert describe(before) == described, "a state that was read never changes"
        assert describe(state) == whole


def test_states_follow_from_kinds_that_stay_in_the_ledger(tmp_path: Path) -> None:
    told_as_on_record = {SLOTS, LEDGER_COUNTS, LAST_FAILURES}
    place, own = tmp_path / "ledger.sqlite", set(PROJECTIONS.values()) - told_as_on_record
    assert {kind for one in own for kind in one.kinds}.isdisjoint(ARCHIVABLE_KINDS)
    ledger = Ledger.open(place)
    ledger.append(*(one for one in HISTORY if one.kind != EntriesArchivedEntry.kind))
    before = {one: describe(read_projection(ledger, one)) for one in own}
    ledger.close()
    later = START + timedelta(days=3650)
    assert archive_entries(place, tmp_path / "a.gz", later, "ann", later).entries > 0
    ledger = Ledger.open(place)
    assert {one: describe(read_projection(ledger, one)) for one in own} == before
    ledger.close()
