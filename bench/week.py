"""The cost to evaluate a week of scans of a big fabric: CPU for each port and scan, and memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.cost import cost
from bench.measurement import Measurement
from bench.programs import ASSAY, ROOT

NODES, SCANS = 1024, 28
PORTS = NODES * 8 * 6
"""Three cables an adapter in a fat tree of three tiers, two ports a cable."""
FULL_PORTS, FULL_CPU_S, FULL_MB = 98_304, 60.0, 1000.0
"""2,048 nodes of 8 rails, and the bounds for a week of 28 scans of them with telemetry."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure half the largest DGX SuperPOD, in a repository with a week of scans below `folder`."""
    home = folder / "week"
    subprocess.run([sys.executable, "-m", "bench.big_week", str(home), str(NODES), str(SCANS)], cwd=ROOT, check=True)
    taken = cost([*ASSAY, "fabric", "evaluate"], home, times=1, well=(0, 1))
    figures = {"cpu_s": taken.cpu_s, "ports": PORTS, "scans": SCANS}
    what = f"assay fabric evaluate, {SCANS} scans of {PORTS:,} ports with telemetry"
    rate, bound = taken.cpu_s / (PORTS * SCANS), FULL_CPU_S / (FULL_PORTS * SCANS)
    yield Measurement(f"{what}: a port and scan", 1e6 * rate, "CPU µs", "at most", round(1e6 * bound, 1), figures)
    share = taken.peak_mb / PORTS, FULL_MB / FULL_PORTS
    yield Measurement(
        f"{what}: peak memory a port", 1000 * share[0], "kB", "at most", round(1000 * share[1], 1),
        {"peak_mb": taken.peak_mb},
    )  # fmt: skip
