"""Limits and missed failures are reviewed once a week, into a file that pages read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from quiet_site import NODES, Site
from trends.planted_history import PlantedReading, keep_planted

from assay.controller.tuning.tuning_file import TUNING_FILE, keep_tuning, read_tuning

BEGIN = datetime(2026, 10, 1, 6, tzinfo=UTC)


@pytest.fixture
def reviewed(tmp_path: Path) -> Iterator[Site]:
    """The example fleet, of which one GPU was measured for some days."""
    home = tmp_path / "home"
    limit = {"name": "gpu_temperature", "at_most": 85.0}
    keep_planted(
        home / "reports" / "history",
        [PlantedReading(BEGIN + timedelta(days=number), NODES[0], value=60, **limit) for number in range(3)],
    )
    site = Site(tmp_path / "ledger.sqlite", home)
    site.clock.at = BEGIN + timedelta(days=10)
    yield site
    site.ledger.close()


def test_the_review_is_made_once_a_week(reviewed: Site) -> None:
    reports = reviewed.desk.reports
    assert read_tuning(reports) == {}
    assert keep_tuning(reviewed.desk)
    first = read_tuning(reports)
    assert [(one["name"], one["behaviour"]) for one in first["limits"]] == [("gpu_temperature", "never")]
    assert first["missed"]["counts"] == {"before": 0, "then": 0, "never": 0, "cannot tell": 0}
    reviewed.later(days=6)
    assert not keep_tuning(reviewed.desk)
    reviewed.later(days=2)
    assert keep_tuning(reviewed.desk)
    assert read_tuning(reports)["at"] > first["at"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"at": "soon"}', b"\xff"])
def test_a_file_that_cannot_be_read_is_made_again(reviewed: Site, content: bytes) -> None:
    file = reviewed.desk.reports / TUNING_FILE
    file.parent.mkdir()
    file.write_bytes(content)
    assert read_tuning(reviewed.desk.reports) == {}
    assert keep_tuning(reviewed.desk)
