"""What the tests run with `run_assay` is what `python -m assay` does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forked_assay
from tests.support.forked_assay import ONE_THREAD, run_assay
from tests.support.forked_python import IMPORTER_VARIABLE
from tests.support.places import SMALLEST


@pytest.mark.parametrize("words", [["check"], ["--help"], ["check", "--format", "nonsense"], ["status"]], ids=" ".join)
def test_a_fork_prints_and_returns_what_a_new_process_does(words: list[str], tmp_path: Path) -> None:
    shutil.copytree(SMALLEST, tmp_path, dirs_exist_ok=True)
    env = os.environ | {"COLUMNS": "70"}
    command = [sys.executable, "-m", "assay", *words]
    new = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    fork = run_assay(*words, cwd=tmp_path, env=env)
    assert (fork.returncode, fork.stdout, fork.stderr) == (new.returncode, new.stdout, new.stderr)


def test_a_fork_has_the_environment_that_it_is_given_and_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    shutil.copytree(SMALLEST, tmp_path, dirs_exist_ok=True)
    lost = run_assay("check", env=os.environ | {"ASSAY_FLEET": str(tmp_path / "none")}, cwd=tmp_path)
    assert lost.returncode == 2
    assert str(tmp_path / "none") in lost.stderr
    assert run_assay("check", cwd=tmp_path).stdout == "2 nodes, 6 specs: no problems\n"


def test_a_command_that_hangs_is_killed_and_the_next_one_runs(tmp_path: Path) -> None:
    shutil.copytree(SMALLEST, tmp_path, dirs_exist_ok=True)
    hung = run_assay("check", cwd=tmp_path, longest_s=0)
    assert (hung.returncode, hung.stderr) == (-9, "the tests killed this command: it had run for 0 s\n")
    assert run_assay("check", cwd=tmp_path).returncode == 0


def test_what_is_forked_has_one_thread_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (IMPORTER_VARIABLE, *ONE_THREAD):
        monkeypatch.delenv(name, raising=False)
    importer = forked_assay._Importer()
    threads = [*Path(f"/proc/{importer.pid}/task").iterdir()]
    importer.end()
    assert len(threads) == 1, "a fork of a fork waits for ever for OpenBLAS's other threads"
