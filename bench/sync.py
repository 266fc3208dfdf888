"""The cost of `assay sync` on 10,000 nodes: all in sync, and all drifted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.big_fleet import make as make_fleet
from bench.cost import cost
from bench.measurement import Measurement
from bench.programs import ASSAY, ROOT

NODES = 10_000
IN_SYNC_S, DRIFTED_S, MOST_MB = 8.0, 11.0, 500.0


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure `assay sync` in a fleet below `folder`, before and after all nodes drift."""
    fleet = make_fleet(folder / "sync", NODES)
    for words, what, bound in (([], "in sync", IN_SYNC_S), (["drift"], "drifted", DRIFTED_S)):
        maker = [
            sys.executable,
            "-m",
            "bench.made_standings",
            str(fleet),
            *words,
        ]  # in its own process: it needs memory
        subprocess.run(maker, check=True, cwd=ROOT)
        spent = cost([*ASSAY, "sync", "--fleet", str(fleet)], ROOT, well=(0, 1))
        yield Measurement(f"assay sync: {NODES:,} nodes {what}", spent.cpu_s, "CPU s", "at most", bound)
        yield Measurement(f"assay sync: {NODES:,} nodes {what}: peak memory", spent.peak_mb, "MB", "at most", MOST_MB)
