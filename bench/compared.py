"""`python -m bench.compared REPOSITORY DUMP [TIMES]` measures reading a discovery and comparing it, in one process.

Prints a JSON object of CPU seconds, each the least of several runs: `floor` is one pass of a regular expression over
the file, `load` loads the compiled design from the cache, `read_and_compare` is the rest.
"""

from __future__ import annotations

import gc
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from assay.fabric.compare.compare import FabricComparison, compare_cabling
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.topology_cache import load_topology
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.readers.format_detection import read_topology
from assay.model.gc_pause import pause_gc

PORT = re.compile(r'\n\[(\d+)\][^"\n]*"[SHR]-([0-9a-f]{16})"\[(\d+)\][^#\n]*#.* (\d+x[A-Z0-9]+)(?!.)')
"""A port's line, with what a comparison needs: port, other device, its port, rate."""


def floor(dump: Path) -> int:
    """Return the number of port lines."""
    return sum(1 for _ in PORT.finditer(dump.read_text()))


def ours(dump: Path, plan: CompiledTopology) -> tuple[FabricComparison, FabricDiscovery]:
    """Read the discovery and compare it, as `assay fabric compare` does."""
    with pause_gc():
        discovery = read_topology(dump.read_text(errors="replace"))
        return compare_cabling(plan, discovery), discovery


def main(repository: Path, dump: Path, times: int = 5) -> None:
    """Measure the parts in turn, so that other load on the machine hits all of them."""
    plan = load_topology(repository)
    assert floor(dump) == 2 * len(plan.cables), "the floor finds every port"
    comparison, _ = ours(dump, plan)
    assert (comparison.verdict, comparison.matching) == ("match", len(plan.cables)), comparison.summary
    parts = {
        "load": lambda: load_topology(repository),
        "floor": lambda: floor(dump),
        "read_and_compare": lambda: ours(dump, plan),
    }
    runs = [{name: _cpu(part) for name, part in parts.items()} for _ in range(times)]
    print(json.dumps({name: min(run[name] for run in runs) for name in parts}))  # noqa: T201 — the answer


def _cpu(part: Callable[[], object]) -> float:
    """Return the CPU seconds of one run, without the garbage of earlier runs."""
    gc.collect()
    before = time.process_time()
    result = part()
    spent = time.process_time() - before
    del result
    return spent


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
