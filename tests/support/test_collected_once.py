"""A worker that is a fork of what imported the tests runs them as a new worker does, and nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.forked_python import IMPORTER_VARIABLE, SYS_CLONE
from tests.support.places import TESTS

HANGS = "import time\n\n\ndef test_it():\n    time.sleep(600)\n"
FAILS = "import no_such_module\n"
SKIPS = "import pytest\n\npytest.importorskip('no_such_module_either')\n\n\ndef test_it():\n    pass\n"
OF_THE_OUTER_RUN = (IMPORTER_VARIABLE, "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(SYS_CLONE is None, reason="this kernel's clone is not known")]


def start_workers(*words: str | Path) -> subprocess.Popen[str]:
    """Start two workers that have the configuration of our tests."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "2",
        "-vv",
        f"--rootdir={TESTS.parent}",
        f"-c{TESTS.parent}/pyproject.toml",
    ]
    environment = {name: text for name, text in os.environ.items() if name not in OF_THE_OUTER_RUN}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(
        [*command, *words, TESTS / "tell/views"], **pipes, text=True, env=environment, start_new_session=True
    )


def test_the_workers_run_what_one_process_would_and_end() -> None:
    process = start_workers("-p", "no:cacheprovider")
    said, _ = process.communicate()
    one = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", TESTS / "tell/views"],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = sorted(line for line in one.stdout.splitlines() if "::" in line)
    passed = sorted(line.partition(" PASSED ")[2].strip() for line in said.splitlines() if " PASSED " in line)
    assert passed == wanted, said
    assert not list_session(process.pid)


def test_a_module_that_cannot_be_imported_fails_or_skips_in_the_workers_too(tmp_path: Path) -> None:
    (tmp_path / "test_skips.py").write_text(SKIPS)
    assert "could not import 'no_such_module_either'" in start_workers(tmp_path).communicate()[0]
    (tmp_path / "test_fails.py").write_text(FAILS)
    assert "No module named 'no_such_module'" in start_workers(tmp_path).communicate()[0]
    (tmp_path / "test_fails.py").unlink()
    (tmp_path / "conftest.py").write_text(FAILS)
    assert "No module named 'no_such_module'" in start_workers(tmp_path).communicate()[0]


def test_an_interrupt_ends_all(tmp_path: Path) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS)
    process = start_workers(tmp_path, "-k", "test_it")
    assert process.stdout is not None
    while "scheduling tests" not in (line := process.stdout.readline()):
        assert line
    os.killpg(process.pid, signal.SIGINT)
    process.communicate()
    for _ in range(600):
        if not list_session(process.pid):
            return
        time.sleep(0.1)
    pytest.fail(f"left: {list_session(process.pid)}")


def list_session(session: int) -> list[str]:
    """Return the command lines of the processes of a session."""
    lines = subprocess.run(["ps", "-s", str(session), "-o", "args="], capture_output=True, text=True, check=False)
    return [line for line in lines.stdout.splitlines() if not line.endswith("<defunct>")]  # not every init waits
