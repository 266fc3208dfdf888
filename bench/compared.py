"""`python -m bench.compared REPOSITORY DUMP [TIMES]`: what reading a discovery and comparing it costs in a process.

Prints one JSON object of CPU seconds, each the least of some runs: `floor` is a bare pass of a regular expression over
the file, `read_and_compare` with a compiled design at hand, `load` fetching that from the cache.
"""

from __future__ import annotations

import gc
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from assay.fabric.comparison.compare import FabricComparison, compare_cabling
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.readers.format_detection import read_topology
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.fabric.topology.topology_cache import load_topology
from assay.model.gc_pause import pause_gc

PORT = re.compile(r'\n\[(\d+)\][^"\n]*"[SHR]-([0-9a-f]{16})"\[(\d+)\][^#\n]*#.* (\d+x[A-Z0-9]+)(?!.)')
"""Every port's line, with all that a comparison needs of it: port, other device, its port, rate."""


def floor(dump: Path) -> int:
    """Find every port's line, and do nothing with it."""
    return sum(1 for _ in PORT.finditer(dump.read_text()))


def ours(dump: Path, plan: CompiledTopology) -> tuple[FabricComparison, FabricDiscovery]:
    """Read the discovery and compare it, as `assay fabric compare` does. Both are kept: one is told of the other."""
    with pause_gc():
        found = read_topology(dump.read_text(errors="replace"))
        return compare_cabling(plan, found), found


def main(repository: Path, dump: Path, times: int = 5) -> None:
    """Measure by turns, so that what else the machine does hits both alike."""
    plan = load_topology(repository)
    assert floor(dump) == 2 * len(plan.cables), "the floor finds every port"
    said, _ = ours(dump, plan)
    assert (said.verdict, said.matching) == ("match", len(plan.cables)), said.summary
    parts = {
        "load": lambda: load_topology(repository),
        "floor": lambda: floor(dump),
        "read_and_compare": lambda: ours(dump, plan),
    }
    runs = [{name: _cpu(part) for name, part in parts.items()} for _ in range(times)]
    print(json.dumps({name: min(run[name] for run in runs) for name in parts}))  # noqa: T201 — the answer


def _cpu(part: Callable[[], object]) -> float:
    """Return the CPU seconds of one run, garbage of those before it not counted."""
    gc.collect()
    before = time.process_time()
    result = part()
    spent = time.process_time() - before
    del result
    return spent


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
