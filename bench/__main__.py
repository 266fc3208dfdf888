"""`make bench`: what should be fast, measured against its floor in one run. CPU seconds, best of three."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


def cpu(command: Sequence[str]) -> float:
    """Return the CPU seconds of a command, its children too; the best of three."""
    return min(_once(command) for _ in range(3))


def _once(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def against(name: str, ours: Sequence[str], floor_name: str, floor: Sequence[str]) -> Callable[[], dict[str, object]]:
    """Return a measurement of `ours` against `floor`."""

    def measure() -> dict[str, object]:
        mine, theirs = cpu(ours), cpu(floor)
        return {"what": name, "cpu_s": mine, "against": floor_name, "against_cpu_s": theirs, "ratio": mine / theirs}

    return measure


PYTHON = [sys.executable, "-c", "pass"]
MEASUREMENTS = [
    against(
        "assay check, the example fleet",
        [str(BIN / "assay"), "check"],
        "ansible-inventory --list",
        [str(BIN / "ansible-inventory"), "--list"],
    ),
    against("assay status --help", [str(BIN / "assay"), "status", "--help"], "python -c pass", PYTHON),
    against(
        "the probe on this machine",
        [sys.executable, "-m", "assay.probe"],
        "python -c pass",
        PYTHON,
    ),
]


def main() -> None:
    """Print one JSON line for each measurement."""
    for measure in MEASUREMENTS:
        print(json.dumps(measure()), flush=True)  # noqa: T201 — the answer


main()
