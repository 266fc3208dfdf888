"""The first story of `make run`: a machine that nobody has started yet becomes a node, as declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.cli.verbs.lab import play_scenario
from assay.cli.workspace import Workspace

ROOT = Path(__file__).parents[2]


@pytest.mark.slow(minutes=2)
def test_a_new_machine_becomes_a_node(capfd: pytest.CaptureFixture[str]) -> None:
    as_expected = play_scenario(Workspace(ROOT), ROOT / "scenarios" / "first-start.yaml")
    assert as_expected, capfd.readouterr().out
