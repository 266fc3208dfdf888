"""The cost to show the results of a run of 1,000,000 outcomes, and to compare it with another run."""

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
SHOW_S, COMPARE_S, MOST_MB = 5.0, 10.0, 150.0


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure `assay results` on runs below `folder`: one shown, two compared."""
    fleet = make_fleet(folder / "results", NODES)
    maker = [sys.executable, "-m", "bench.made_runs", str(fleet), str(RUNS)]  # in its own process: it needs much memory
    subprocess.run(maker, check=True, cwd=ROOT)
    command = [*ASSAY, "results", "--fleet", str(fleet)]
    for words, bound in (([], SHOW_S), (["--compare"], COMPARE_S)):
        spent = cost([*command, *words], ROOT, well=(0, 1))
        what = f"{' '.join(['assay results', *words])}: {NODES * EACH:,} outcomes"
        yield Measurement(what, spent.cpu_s, "CPU s", "at most", bound, {"peak_mb": spent.peak_mb})
        yield Measurement(f"{what}: peak memory", spent.peak_mb, "MB", "at most", MOST_MB)
