"""The cost to read a discovery of a big fabric and compare it with its design, and the growth of that cost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from bench.big_fabric import DUMP
from bench.cost import Cost, cost
from bench.measurement import Measurement
from bench.programs import ASSAY, ROOT
from bench.topodiff import find_obstacle, topodiff

BIG, HUGE = 2048, 20_480
FLOOR_TIMES, COLD_TIMES, PEAK_MB, GROWTH, TOPODIFF_TIMES = 2.5, 2.5, 250.0, 12.0, 3.0


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure at 49,152 cables and at ten times as many, in repositories below `folder`."""
    big, huge = (make_repository(folder / f"fabric-{nodes}", nodes) for nodes in (BIG, HUGE))
    in_turn = [(measure_parts(big, times=5), measure_parts(huge, times=2)) for _ in range(3)]
    parts, more = (least(runs) for runs in zip(*in_turn, strict=True))
    yield against_floor(parts)
    measure_command(big, times=1)  # compiles the design
    turns = [(measure_command(big, times=1), measure_cold_command(big, times=1)) for _ in range(5)]
    warm, cold = (min(costs, key=attrgetter("cpu_s")) for costs in zip(*turns, strict=True))
    yield Measurement(
        f"assay fabric compare, {BIG:,} nodes × 8 rails: cold from YAML / design compiled before",
        cold.cpu_s / warm.cpu_s, "×", "at most", COLD_TIMES, {"cpu_s": cold.cpu_s, "against_cpu_s": warm.cpu_s},
    )  # fmt: skip
    for name, spent in (("design compiled before", warm), ("cold from YAML", cold)):
        what = f"the same, {name}: peak memory"
        yield Measurement(what, spent.peak_mb, "MB", "at most", PEAK_MB, {"cpu_s": spent.cpu_s})
    if why := find_obstacle():
        print(f"not measured against ibtopodiff: {why}", file=sys.stderr)  # noqa: T201 — for people
    else:
        yield against_topodiff(topodiff(big, folder / "topodiff"), parts, warm)
    yield growth("reading and comparing", more["read_and_compare"], parts["read_and_compare"])
    yield growth("assay fabric compare", measure_command(huge, times=2).cpu_s, warm.cpu_s)


def make_repository(folder: Path, nodes: int) -> Path:
    """Make the repository of a fabric with a discovery of it, in another process, and return its folder.

    This process must stay small: the peak memory of a child is at least that of its parent at the start.
    """
    subprocess.run([sys.executable, "-m", "bench.big_fabric", str(folder), str(nodes)], cwd=ROOT, check=True)
    return folder


def measure_parts(fleet: Path, times: int) -> dict[str, float]:
    """Return the CPU seconds of the parts of a comparison; see `bench.compared`."""
    command = [sys.executable, "-m", "bench.compared", str(fleet), str(fleet / DUMP), str(times)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return {name: float(seconds) for name, seconds in json.loads(done.stdout).items()}


def least(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the least value of each part."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def against_floor(parts: dict[str, float]) -> Measurement:
    """Return the CPU time of reading and comparing as a multiple of one pass over the file."""
    figures = {"cpu_s": parts["read_and_compare"], "against_cpu_s": parts["floor"], "load_cpu_s": parts["load"]}
    ratio = parts["read_and_compare"] / parts["floor"]
    what = "reading 10 MB of ibnetdiscover and comparing 49,152 cables / a bare pass of a regular expression"
    return Measurement(what, ratio, "×", "at most", FLOOR_TIMES, figures)


def against_topodiff(theirs: Cost, parts: dict[str, float], command: Cost) -> Measurement:
    """Return the CPU time of ibtopodiff as a multiple of ours, both with reading their input."""
    ours = parts["load"] + parts["read_and_compare"]
    figures = {"cpu_s": ours, "against_cpu_s": theirs.cpu_s, "command_cpu_s": command.cpu_s}
    what = "ibtopodiff / fetching the compiled design, reading and comparing, 49,152 cables"
    return Measurement(what, theirs.cpu_s / ours, "×", "at least", TOPODIFF_TIMES, figures)


def measure_command(fleet: Path, times: int = 3) -> Cost:
    """Return the cost of the whole command, with the start of the interpreter."""
    return cost([*ASSAY, "fabric", "compare", "--from", DUMP], fleet, times=times)


def measure_cold_command(fleet: Path, times: int = 3) -> Cost:
    """Return the cost of the whole command without a compiled design in the cache."""
    runs = []
    for _ in range(times):
        shutil.rmtree(fleet / ".assay", ignore_errors=True)
        runs.append(measure_command(fleet, times=1))
    return min(runs)


def growth(what: str, huge: float, big: float) -> Measurement:
    """Return the CPU time at ten times the fabric as a multiple."""
    figures = {"cpu_s": huge, "against_cpu_s": big}
    return Measurement(f"{what}: {HUGE:,} nodes / {BIG:,}", huge / big, "×", "at most", GROWTH, figures)
