"""The plain pytest of the benchmark makes the same judgements on the same GPUs, and does without assay."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from assay.ledger.runs.reader import StoredRun
from bench.gpu_suites import CHECKS, GPUS, OURS, PLAIN, gpu_fleet
from bench.harness import ALONE, SUITES
from bench.harness import PLAIN as PLAIN_COMMAND


def judge(fleet: Path) -> tuple[set[str], int]:
    """Return what fails by our items, and how many outcomes there are."""
    file = fleet / "own.sqlite"
    subprocess.run([*SUITES, "--assay-store", str(file)], cwd=fleet, env=ALONE, capture_output=True, check=False)
    with StoredRun.open(file) as stored:
        failing = {
            (one.check.partition("::")[2], *one.subject.split("/")[1:])
            for one in stored.outcomes(verdicts=("fail", "error"))
        }
        return {f"{check}[{node}-{gpu}]" for check, node, gpu in failing}, stored.counts().total()


def judge_plainly(fleet: Path) -> tuple[set[str], int]:
    """Return what fails by plain items, and how many tests there are."""
    words = [*PLAIN_COMMAND, "-rf", "-W", "error"]
    told = subprocess.run(words, cwd=fleet, env=ALONE, capture_output=True, text=True, check=False).stdout
    lines = [line.split(" - ")[0] for line in told.splitlines()]
    counts = [int(word) for word in lines[-1].split(" in ")[0].replace(",", "").split()[::2]]
    return {line.removeprefix(f"FAILED {PLAIN}::") for line in lines if line.startswith("FAILED ")}, sum(counts[:2])


@pytest.mark.slow
def test_plain_checks_fail_where_ours_do(tmp_path: Path) -> None:
    fleet = gpu_fleet(tmp_path / "fleet", 2)
    assert "assay" not in (fleet / PLAIN).read_text().replace(".assay/evidence", "")
    assert (fleet / OURS).read_text().count("def test_") == (fleet / PLAIN).read_text().count("def test_") == CHECKS
    failing, count = judge(fleet)
    assert (len(failing), count) == (2 * GPUS * CHECKS // 50, 2 * GPUS * CHECKS)
    assert (failing, count) == judge_plainly(fleet)
