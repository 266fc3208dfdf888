"""The plain pytest of the benchmark runs the same checks on the same subjects, with the same failures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assay.results.store.reader import StoredRun

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # bench/ is no part of the package

from bench.harness import PYTEST  # noqa: E402 — see above
from bench.judged import PHASES, evidence, small_fleet  # noqa: E402


def judged(fleet: Path, of: Path) -> tuple[set[str], int]:
    """Return what fails by our items, and how many outcomes there are."""
    file = fleet / "own.sqlite"
    words = ["suites", *PHASES, "--evidence", str(of), "--store", str(file)]
    subprocess.run([*PYTEST, *words], cwd=fleet, capture_output=True, check=False)
    with StoredRun.open(file) as stored:
        failing = {f"{one.check}[{one.subject}]" for one in stored.outcomes(verdicts=("fail", "error"))}
        return {name.removeprefix("suites/") for name in failing}, stored.counts().total()


def by_plain_pytest(fleet: Path, of: Path) -> tuple[set[str], int]:
    """Return what fails by plain items, and how many tests there are."""
    words = ["plain", "-rf", "--tb=line", "--evidence", str(of)]
    told = subprocess.run([*PYTEST, *words], cwd=fleet, capture_output=True, text=True, check=False).stdout
    lines = [line.split(" - ")[0] for line in told.splitlines()]
    counts = [int(word) for word in lines[-1].split(" in ")[0].replace(",", "").split()[::2]]
    return {line.removeprefix("FAILED plain/") for line in lines if line.startswith("FAILED ")}, sum(counts[:2])


@pytest.mark.slow
def test_plain_checks_fail_where_ours_do(tmp_path: Path) -> None:
    fleet, ill = small_fleet(tmp_path, 2), evidence(tmp_path / "ill", 2, ill=True)
    ours = judged(fleet, ill)
    assert len(ours[0]) > 20
    assert ours == by_plain_pytest(fleet, ill)
