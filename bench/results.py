"""What it costs to ask for the results of a run of 1,000,000 outcomes, and to compare it with another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.big_fleet import make as make_fleet
from bench.cost import cost
from bench.measurement import Measurement
from bench.programs import ASSAY, ROOT

NODES, EACH, RUNS = 10_000, 100, 2
TOLD_S, COMPARED_S, MOST_MB = 5.0, 10.0, 150.0


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure `assay results` on runs made below `folder`: one told, two compared."""
    fleet = make_fleet(folder / "results", NODES)
    apart = [sys.executable, "-m", "bench.made_runs", str(fleet), str(RUNS)]  # else its memory would count as a child's
    subprocess.run(apart, check=True, cwd=ROOT)
    command = [*ASSAY, "results", "--fleet", str(fleet)]
    for words, bound in (([], TOLD_S), (["--compare"], COMPARED_S)):
        spent = cost([*command, *words], ROOT, well=(0, 1))
        what = f"{' '.join(['assay results', *words])}: {NODES * EACH:,} outcomes"
        yield Measurement(what, spent.cpu_s, "s", "at most", bound, {"peak_mb": spent.peak_mb})
        yield Measurement(f"{what}: peak memory", spent.peak_mb, "MB", "at most", MOST_MB)
