"""The cost of a million outcomes with everything recorded: CPU time, memory, and bytes on disk, in all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assay.ledger.runs.reader import find_run
from bench.cost import cost
from bench.gpu_suites import CHECKS, GPUS, gpu_fleet
from bench.harness import ALONE, ENDED, PEAK_MB
from bench.judged import counts_of
from bench.measurement import Measurement
from bench.programs import ASSAY

NODES, JOBS = 5_000, 2
CPU_S, BYTES = 120.0, 60.0


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure a fleet below `folder`; 2 % of its outcomes fail."""
    fleet = gpu_fleet(folder / "million", NODES)
    command = [*ASSAY, "validate", "--phase", "production", "--jobs", str(JOBS)]
    spent = cost(command, fleet, times=1, well=ENDED, environment=ALONE)
    count = counts_of(find_run(fleet / "reports", "last")).total()
    assert count == NODES * GPUS * CHECKS, f"{count} outcomes"
    what = f"assay validate, {count:,} outcomes in {JOBS} processes"
    yield Measurement(f"{what}, with ledger and history", spent.cpu_s, "CPU s", "at most", CPU_S)
    yield Measurement(f"{what}: the largest process", spent.peak_mb, "MB", "at most", PEAK_MB)
    parts = {
        "run": _count_bytes(fleet / "reports" / "runs"),
        "history": _count_bytes(fleet / "reports" / "history"),
        "ledger": _count_bytes(fleet / ".assay", "ledger*"),
    }
    each = {name: size / count for name, size in parts.items()}
    yield Measurement(f"{what}: their run, history and ledger", sum(each.values()), "B/outcome", "at most", BYTES, each)


def _count_bytes(folder: Path, pattern: str = "**/*") -> int:
    return sum(path.stat().st_size for path in folder.glob(pattern) if path.is_file())
