"""The real fio, stress-ng and df, where they are installed, print what the readers expect."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from assay.probe.load_tools.memory import parse_stress_ng
from assay.probe.load_tools.nvme_read import parse_fio_read
from assay.probe.node_access import run_tool

needs_fio = pytest.mark.skipif(not Path("/usr/bin/fio").exists(), reason="fio is not installed (package fio)")
no_stress_ng = not shutil.which("stress-ng")
needs_stress_ng = pytest.mark.skipif(no_stress_ng, reason="stress-ng is not installed (package stress-ng)")


@needs_fio
def test_a_read_by_the_real_fio_has_a_speed(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(2**22))
    command = ["/usr/bin/fio", "--name=x", f"--filename={tmp_path / 'data'}", "--readonly", "--rw=read", "--bs=64k"]
    leaf = run_tool([*command, "--output-format=json"], 20, parse_fio_read)
    assert leaf["value"] > 0


@needs_fio
def test_the_real_fio_on_a_drive_that_is_not_there_failed(tmp_path: Path) -> None:
    command = ["/usr/bin/fio", "--name=x", f"--filename={tmp_path / 'none'}", "--readonly", "--rw=read"]
    assert "failed" in run_tool([*command, "--output-format=json"], 20, parse_fio_read)


@needs_stress_ng
def test_a_clean_run_of_the_real_stress_ng_has_no_errors() -> None:
    command = ["stress-ng", "--vm", "1", "--vm-bytes", "4M", "--vm-method", "all", "--verify", "--timeout", "1s"]
    assert run_tool([*command, "--metrics-brief"], 20, parse_stress_ng) == {"value": 0}


@needs_stress_ng
def test_the_real_stress_ng_that_was_killed_is_not_clean() -> None:
    done = subprocess.run(
        ["timeout", "-s", "KILL", "0.3", "stress-ng", "--vm", "1", "--vm-bytes", "4M", "--verify", "--timeout", "9s"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "did not complete" in parse_stress_ng(done.stdout + done.stderr)["failed"]


def test_a_tool_that_does_not_end_is_given_up() -> None:
    assert run_tool(["sleep", "9"], 0.2, lambda text: {"value": text}) == {"failed": "sleep did not end within 0.2 s"}


def test_a_tool_that_is_not_there_is_absent_and_one_that_cannot_start_failed(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("no program")
    assert run_tool(["no-such-tool"], 1, lambda text: {"value": text}) == {"absent": "no-such-tool is not installed"}
    assert "could not be started" in run_tool([str(tmp_path / "tool")], 1, lambda text: {"value": text})["failed"]


def test_what_a_tool_prints_counts_and_its_exit_code_does_not() -> None:
    assert run_tool(["sh", "-c", "echo fine; exit 9"], 5, lambda text: {"value": text}) == {"value": "fine\n"}
