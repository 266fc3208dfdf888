"""The first story of `make run`: a machine that nobody has started yet becomes a node, as declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.cli.verbs.lab import play_scenario
from assay.cli.workspace import Workspace
from assay.lab.scenario import load_scenario
from tests.support.places import ROOT


@pytest.mark.slow(minutes=2)
def test_a_new_machine_becomes_a_node(capfd: pytest.CaptureFixture[str]) -> None:
    as_expected = play_scenario(Workspace(ROOT), load_scenario(ROOT / "scenarios" / "first-start.yaml"))
    told = capfd.readouterr().out
    assert as_expected, told
    this_machine = told.partition("\n2. ")[0]
    assert "probe.host.boot_id" in this_machine
    if not Path("/dev/nvidia0").exists():
        assert "absent" in this_machine  # it says what it is, and invents nothing
