"""The shell before a command in spare time ends it at SIGTERM, whenever that comes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from assay.adapters.slurm.spare_run import YIELD_SCRIPT

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
EARLY_SIGNAL = '#!/bin/sh\nkill -TERM "$PPID"\nsleep 0.2\nexec "$@"\n'
"""Stands for a setsid that is slow: the signal comes before the command has a session of its own."""


@pytest.mark.parametrize("shell", SHELLS)
def test_signal_before_the_session_has_begun_ends_the_command(shell: str, tmp_path: Path) -> None:
    (tmp_path / "setsid").write_text(EARLY_SIGNAL)
    (tmp_path / "setsid").chmod(0o755)
    words = [shell, "-c", YIELD_SCRIPT, "sh", "sh", "-c", "echo it began"]

    done = subprocess.run(words, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (143, "")  # its output would be open until the command has ended


@pytest.mark.parametrize("shell", SHELLS)
def test_command_gets_its_input_and_its_exit_code_is_the_jobs(shell: str) -> None:
    words = [shell, "-c", YIELD_SCRIPT, "sh", "sh", "-c", "cat; exit 7"]

    done = subprocess.run(words, input="given", capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (7, "given")
