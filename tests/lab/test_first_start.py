"""The first story of `make run`: a machine that nobody has started yet becomes a node, as declared."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from assay.cli.verbs.lab import play_scenario
from assay.cli.workspace import Workspace
from assay.declare.loader import load_fleet
from tests.support.places import ROOT


@pytest.mark.slow(minutes=2)
def test_a_new_machine_becomes_a_node(capfd: pytest.CaptureFixture[str]) -> None:
    with ExitStack() as copies:
        file = ROOT / "scenarios" / "first-start.yaml"
        as_expected = play_scenario(Workspace(ROOT), load_fleet(ROOT), file, copies)
    told = capfd.readouterr().out
    assert as_expected, told
    this_machine = told.partition("\n2. ")[0]
    assert "probe.host.boot_id" in this_machine
    if not Path("/dev/nvidia0").exists():
        assert "absent" in this_machine  # it says what it is, and invents nothing
