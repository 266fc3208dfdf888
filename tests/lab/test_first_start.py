"""The first story of `make run`, where no machine can be real: it says so, and comes out as declared all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.cli.verbs.lab import play_scenario
from assay.cli.workspace import Workspace
from assay.lab import boot_site
from assay.lab.real_machine import COMMAND_LINE_MARK, find_command_line

ROOT = Path(__file__).parents[2]


@pytest.mark.slow(minutes=2)
def test_a_new_machine_becomes_a_node_without_qemu(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(boot_site, "find_obstacle", lambda: "qemu-system-x86_64 not found")
    as_expected = play_scenario(Workspace(ROOT), ROOT / "scenarios" / "first-start.yaml")
    told = capfd.readouterr().out
    assert as_expected, told
    assert "For real ones in qemu: qemu-system-x86_64 not found" in " ".join(told.split())
    assert "own console" not in told


def test_the_command_line_is_what_the_last_first_program_showed() -> None:
    shown = f"[0.1] Linux version 6.1\r\n{COMMAND_LINE_MARK}console=ttyS0 assay.attempt=n1.2\r\n[3.5] Power down\r\n"
    assert find_command_line(shown) == "console=ttyS0 assay.attempt=n1.2"
    assert find_command_line("Booting from ROM...\r\n") == ""
