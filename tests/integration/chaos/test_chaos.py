"""Whatever is killed whenever: no effect twice, none lost, no node goes where no way leads, the hash chain holds."""

from __future__ import annotations

import pytest

from tests.integration.chaos.chaos import go_through
from tests.support.small_disk import run_on_small_disk


@pytest.mark.slow
def test_a_few_kills_on_sqlite(chaos, tmp_path):
    go_through(chaos(tmp_path / "ledger.sqlite", nodes=20), kills=6, most_s=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["everything", "dbos"])
def test_a_controller_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path, what):
    disk, elsewhere = tmp_path / "disk", tmp_path / "elsewhere"
    elsewhere.mkdir()
    said = run_on_small_disk(disk, "8m", "-m", "tests.integration.chaos.on_full_disk", disk, elsewhere, what)
    assert all("full" in line or "No space left" in line or "→" in line for line in said.splitlines()), said
