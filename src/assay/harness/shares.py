"""pytest processes that share the nodes of a run, watched from here with a deadline."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

NO_TESTS = 5  # pytest's exit code when a selection leaves it nothing to run

ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
"""Nothing that happens to be installed or set may change a run, or slow it; `-p` loads what the user asks for."""


@dataclass
class Share:
    """One pytest process and the files that it writes."""

    process: subprocess.Popen[bytes]
    outcomes: Path
    log: Path

    def delivered(self) -> int:
        """Return how many outcomes it has written so far."""
        return self.outcomes.read_bytes().count(b"\n") if self.outcomes.exists() else 0


def judge(
    root: Path,
    options: Sequence[str],
    home: Path,
    jobs: int,
    environment: dict[str, str],
    deadline_s: float,
    progress: Callable[[int], None],
) -> tuple[list[Share], str]:
    """Run `jobs` pytest processes over `root/suites` and return them with how they ended, in words."""
    shares = [_start(root, options, home, number, jobs, environment) for number in range(1, jobs + 1)]
    until = time.monotonic() + deadline_s
    try:
        while any(share.process.poll() is None for share in shares) and time.monotonic() < until:
            progress(sum(share.delivered() for share in shares))
            time.sleep(0.05)
    finally:
        late = [share for share in shares if share.process.poll() is None]
        for share in late:
            share.process.kill()
            share.process.wait()
    if late:
        return shares, f"the deadline of {deadline_s:g} s passed"
    return shares, next(filter(None, map(_ended, shares)), "no test of that name ran")


def _start(
    root: Path, options: Sequence[str], home: Path, number: int, jobs: int, environment: dict[str, str]
) -> Share:
    outcomes, log = home / f"share-{number}.jsonl", home / f"share-{number}.log"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "suites",
        "--import-mode=importlib",
        "-p",
        "no:cacheprovider",
        "-q",
        "-s",
    ]
    command += [
        "-p",
        "assay.harness.plugin",
        "--rootdir",
        str(root),
        "--shard",
        f"{number}/{jobs}",
        "--outcomes",
        str(outcomes),
        *options,
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, **ALONE, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    return Share(process, outcomes, log)


def _ended(share: Share) -> str:
    """Return how a process ended, "" where it ended as it should: all judged, whatever the verdicts."""
    if share.process.returncode in (0, 1, NO_TESTS):
        return ""
    lines = [line.strip() for line in share.log.read_text(errors="replace").splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "it said nothing")
    return f"pytest ended with {share.process.returncode}: {said}"
