"""Machines that were seen are recorded with their news, and once a week; the list forgets them after a month."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.act.boot.matching import read_sightings, record_sightings
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.specs.machines import SeenMachine

NOW = datetime.now(UTC).replace(microsecond=0)
LEASE = SeenMachine("10.0.0.7", "02:00:5e:00:21:00")
LOOK = SeenMachine("10.0.0.7", serial="S1", rack="r1", u=4)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    yield ledger
    ledger.close()


def count(ledger: Ledger) -> int:
    return len(ledger.entries(kinds=["machine.seen"]))


def test_only_news_is_recorded_and_the_rest_once_a_week(ledger: Ledger) -> None:
    assert record_sightings(ledger, [LEASE, LEASE], "lease", NOW) == [LEASE]
    assert record_sightings(ledger, [LOOK], "scan", NOW) == [LOOK]
    for days in (0, 1, 6):
        assert record_sightings(ledger, [LEASE, LOOK], "lease", NOW + timedelta(days=days)) == []
    assert record_sightings(ledger, [LEASE], "lease", NOW + timedelta(days=8)) == [LEASE]
    assert record_sightings(ledger, [LEASE], "lease", NOW + timedelta(days=9)) == []
    assert count(ledger) == 3


def test_the_list_has_one_machine_with_all_that_it_said_and_forgets_it_after_a_month(ledger: Ledger) -> None:
    record_sightings(ledger, [LEASE], "lease", NOW)
    record_sightings(ledger, [LOOK], "scan", NOW + timedelta(days=1))
    (seen,) = read_sightings(ledger, NOW + timedelta(days=2))
    assert seen.machine == SeenMachine("10.0.0.7", LEASE.bmc_mac, "S1", rack="r1", u=4)
    assert (seen.source, seen.at[:10]) == ("scan", f"{NOW + timedelta(days=1):%Y-%m-%d}")
    later = NOW + timedelta(days=32)
    assert read_sightings(ledger, later) == []
    assert record_sightings(ledger, [LEASE], "lease", later) == [LEASE], "what was forgotten is news"


def test_what_another_process_records_is_known(ledger: Ledger, tmp_path: Path) -> None:
    other = Ledger.open(tmp_path / "ledger.sqlite")
    assert record_sightings(ledger, [LEASE], "lease", NOW) == [LEASE]
    assert record_sightings(other, [LEASE], "report", NOW) == []
    assert record_sightings(other, [LOOK], "scan", NOW) == [LOOK]
    assert record_sightings(ledger, [LOOK], "report", NOW) == []
    assert read_sightings(ledger, NOW) == read_sightings(other, NOW)


def test_what_could_not_be_written_is_recorded_when_it_comes_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise AssayError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(ledger, "append", fail)
        with pytest.raises(AssayError, match="the disk is full"):
            record_sightings(ledger, [LEASE, LOOK], "report", NOW)
    assert read_sightings(ledger, NOW) == []
    assert record_sightings(ledger, [LEASE, LOOK], "report", NOW) == [LEASE, LOOK]
    assert count(ledger) == 2
