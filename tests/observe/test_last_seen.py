"""The file of contacts is read by pages and commands while the controller makes it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from assay.model.errors import AssayError
from assay.observe.last_seen import DeliveryPosition, LastSeen

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_file_that_another_process_is_making_reads_as_one_without_contacts(tmp_path):
    path = tmp_path / "heard.sqlite"
    seen = LastSeen(path)
    assert (seen.positions(), seen.contacts(), seen.count_received()) == ({}, {}, 0)
    assert not path.exists(), "reading makes nothing"
    with closing(sqlite3.connect(path)) as maker:  # as the first record begins: a file, and no table in it yet
        maker.execute("PRAGMA journal_mode = WAL")
        assert (seen.positions(), seen.contacts(), seen.count_received()) == ({}, {}, 0)
    seen.record_delivery({"n0001": DeliveryPosition("a", 3, 3, {})}, NOW)
    assert (seen.positions()["n0001"].acked, seen.count_received()) == (3, 3)


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path):
    path = tmp_path / "heard.sqlite"
    path.write_bytes(b"no database at all" * 400)
    with pytest.raises(AssayError, match="delete it: a new one is created"):
        LastSeen(path).contacts()
