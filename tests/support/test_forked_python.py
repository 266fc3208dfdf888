"""What the tests fork of `python -m` is a child as any other, and does what a new process does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from assay.validate.runs.parent_process import PARENT_PID_VARIABLE
from tests.support.forked_python import IMPORTER_VARIABLE, NODE_SHELL, SYS_CLONE, XDIST_WORKER, ForkingPopen, is_forked
from tests.support.places import ROOT

SHELL = [sys.executable, "-m", NODE_SHELL]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "assay.validate.plugin"]
PROGRAM = [sys.executable, "-m", "tests.support.program_that_says_what_it_is"]
WORKER = [sys.executable, "-u", "-c", XDIST_WORKER]
PASSES, WAITS = "def test_it(): print('said')", "import time\ndef test_it(): time.sleep(600)"

pytestmark = pytest.mark.skipif(SYS_CLONE is None, reason="this kernel's clone is not known")


class NewProcess(ForkingPopen):
    find_spawner = staticmethod(lambda: None)


def shard_environment() -> dict[str, str]:
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", PARENT_PID_VARIABLE: str(os.getpid())}
    return {**os.environ, **own}


@pytest.mark.parametrize(
    ("command", "test"),
    [
        ([*SHELL, "."], ""),
        ([*SHELL, ".", "n0001", "true"], ""),
        ([*PYTEST, "--fixtures", "no_such_file.py"], ""),
        ([*PYTEST, "test_own.py", "-s", "--no-header"], PASSES),
        ([*PROGRAM, "a word", "3"], ""),
        ([*PROGRAM, "a word", "no number"], ""),
        (WORKER, ""),
    ],
    ids=["usage", "no such node", "an error of pytest", "a test", "a program", "a program that breaks", "a worker"],
)
def test_a_fork_prints_and_returns_what_a_new_process_does(
    command: list[str], test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert is_forked(command, shard_environment())
    (tmp_path / "test_own.py").write_text(test)
    said = []
    for start in (ForkingPopen, NewProcess):
        pipes = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
        with start(
            command, **pipes, cwd=ROOT if command[:3] == PROGRAM else tmp_path, env=shard_environment(), text=True
        ) as process:
            out, err = process.communicate("'print(1)'\n")
        last = err.splitlines()[-1:] if command[:3] == PROGRAM else err  # above it stand the lines of runpy
        said.append((process.returncode, [line for line in out.splitlines() if " in 0." not in line], last))
    assert said[0] == said[1]


def test_a_fork_is_a_child_that_is_waited_for_and_killed_with_its_group(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(WAITS)
    words = [*PYTEST, str(tmp_path / "test_own.py")]
    process = subprocess.Popen(words, stdout=PIPE, env=shard_environment(), process_group=0)
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert f"PPid:\t{os.getpid()}\n" in status
    assert os.getpgid(process.pid) == process.pid
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()


def test_what_is_no_shard_and_no_shell_is_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTEST_XDIST_WORKER", IMPORTER_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    assert not is_forked(WORKER, None)
    assert is_forked([*SHELL, "x"], None)
    assert is_forked(PYTEST, shard_environment())
    assert not is_forked([sys.executable, "/elsewhere/script.py"], None)
    assert not is_forked([sys.executable, "-I", "-S", *PROGRAM[1:]], None)
    for command in ([sys.executable, "-m", "assay"], [sys.executable, "-c", "pass"], PYTEST, "true", ["true"]):
        assert not is_forked(command, None)
