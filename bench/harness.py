"""The cost of judging as users call it, compared with plain pytest; of a failure; of one check of one node of many.

`assay validate` is timed with its ledger and its history. The plain suite is written without assay (`gpu_suites`), and
all sides take turns, the same number of times. `python -m bench.harness DIR NODES` measures another size.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.big_fleet import make, node_name
from bench.cost import Cost, cost
from bench.gpu_suites import CHECKS, GPUS, gpu_fleet
from bench.judged import evidence
from bench.measurement import Measurement
from bench.programs import ASSAY, BIN
from bench.table import format_table

NODES, FEW, BIG = 500, 50, 10_000
"""500 nodes give 100,000 outcomes. allure-pytest takes ten minutes for so many, so it is compared on 50."""
VALIDATE_TIMES, SUITES_TIMES = 7.0, 10.0
ALLURE_TIMES = 6.0
"""Our own bound, for 10,000 outcomes: more than half of what `assay validate` then costs is its start (2.8 of 4.9 CPU s
where allure-pytest took 31), so no way of judging would give more than 11. Each further outcome costs 12 times less.
"""
PEAK_MB, FAILURE_MS, ONE_S, COLD_S, LAST_FAILED_S = 300.0, 1.0, 1.0, 1.5, 2.0
QUICK = ["-q", "--import-mode=importlib", "-p", "no:cacheprovider"]
PYTEST = [str(BIN / "pytest"), *QUICK, "-p", "no:hypothesispytest"]
"""hypothesis is for this repository's own tests only, and takes a second to start."""
ALONE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Both sides load no plugin that they do not name."""
SUITES = [str(BIN / "pytest"), *QUICK, "-o", "required_plugins=", "-p", "assay.validate.plugin", "suites"]
PLAIN = [str(BIN / "pytest"), *QUICK, "--tb=line", "plain"]
ENDED = (0, 1)
TIMES = 2
"""The least of so many runs of each side."""


@dataclass
class Side:
    """One way to judge the same outcomes: its command, and what makes its folder as it was before."""

    command: list[str]
    clean: Callable[[], None] = lambda: None
    costs: list[Cost] = field(default_factory=list)

    def run(self, fleet: Path) -> None:
        """Run it once."""
        self.clean()
        self.costs.append(cost(self.command, fleet, times=1, well=ENDED, environment=ALONE))

    @property
    def least(self) -> Cost:
        """The cheapest run."""
        return min(self.costs)


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure sweeps of a small fleet, and one check in a big one, both below `folder`."""
    yield from sweeps(folder / "sweep", NODES)
    yield from allure(folder / "allure", FEW)
    fleet = make(folder / "many", BIG)
    yield from single_check(fleet)
    yield from last_failed(fleet)


def sweeps(folder: Path, nodes: int) -> Iterator[Measurement]:
    """Compare `assay validate`, `pytest suites` and plain pytest on the same outcomes, of which 2 % fail."""
    fleet = gpu_fleet(folder / "ill", nodes)
    well = gpu_fleet(folder / "well", nodes, failing=False)
    count = nodes * GPUS * CHECKS
    ours, stored, plain = Side([*ASSAY, "validate", "--phase", "production"]), _stored(fleet), Side(PLAIN)
    passing = _stored(well)
    for _ in range(TIMES):
        for side in (ours, stored, plain):
            side.run(fleet)
        passing.run(well)
    what = f"{count:,} outcomes, 2 % failing"
    yield _compare(f"plain pytest / assay validate with ledger and history: {what}", plain, ours, VALIDATE_TIMES)
    yield _compare(f"plain pytest / pytest suites, stored: {what}", plain, stored, SUITES_TIMES)
    for name, side in (("assay validate", ours), ("pytest suites", stored)):
        yield Measurement(f"{name}, {what}: peak memory", side.least.peak_mb, "MB", "at most", PEAK_MB)
    extra = max(0.0, stored.least.cpu_s - passing.least.cpu_s) / (count // 50) * 1000
    parts = {"cpu_s": stored.least.cpu_s, "against_cpu_s": passing.least.cpu_s}
    yield Measurement(f"pytest suites, {what}: a failure over a pass", extra, "CPU ms", "at most", FAILURE_MS, parts)


def allure(folder: Path, nodes: int) -> Iterator[Measurement]:
    """Compare plain pytest that writes Allure's results with `assay validate`."""
    fleet = gpu_fleet(folder, nodes)
    results = fleet / "allure"
    with_allure = Side(
        [*PLAIN, "-p", "allure_pytest.plugin", "--alluredir", str(results)],
        lambda: shutil.rmtree(results, ignore_errors=True),
    )
    ours = Side([*ASSAY, "validate", "--phase", "production"])
    for _ in range(TIMES):
        with_allure.run(fleet)
        ours.run(fleet)
    what = f"{nodes * GPUS * CHECKS:,} outcomes, 2 % failing"
    yield _compare(f"plain pytest with allure-pytest / assay validate: {what}", with_allure, ours, ALLURE_TIMES)


def single_check(fleet: Path) -> Iterator[Measurement]:
    """Measure one check of one node in a big fleet: in the cache, and after a change of a spec."""
    node = node_name(BIG // 2)
    evidence(fleet / ".assay" / "evidence" / "latest", 1, first=BIG // 2)
    pool = f"pool-{BIG // 2 // 2500 + 1:02}"
    by_id = f"suites/production/test_gpu.py::test_gpu_temperature[{pool}/{node}/gpu3]"
    selections = {
        "by id": [by_id],
        "by -k": ["suites", "-k", f"{node} and gpu_temperature"],
        "by --assay-node": ["suites", "--assay-node", node, "-k", "gpu_temperature"],
    }
    for name, words in selections.items():
        spent = cost([*PYTEST, *words], fleet, times=4)
        yield Measurement(f"one check of one node of {BIG:,}, {name}", spent.cpu_s, "CPU s", "at most", ONE_S)
    cold = Side([*SUITES[:-1], by_id], lambda: _change_a_spec(fleet))
    for _ in range(TIMES):
        cold.run(fleet)
    what = f"one check of one node of {BIG:,}, after a change of a spec"
    yield Measurement(what, cold.least.cpu_s, "CPU s", "at most", COLD_S)


def last_failed(fleet: Path) -> Iterator[Measurement]:
    """Measure `pytest suites --lf` in a big fleet where one check fails on one rack."""
    names = [node_name(number) for number in range(4)]
    words = [word for word in PYTEST if word not in ("-p", "no:cacheprovider", "no:hypothesispytest")]
    command = [*words, "-p", "no:hypothesispytest", "suites", "--lf"]
    known = {f"suites/production/test_gpu.py::test_gpu_temperature[pool-01/{name}/gpu{at}]": True
             for name in names for at in range(GPUS)}  # fmt: skip
    cache = fleet / ".pytest_cache" / "v" / "cache" / "lastfailed"
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text(json.dumps(known))
    spent = cost(command, fleet, times=TIMES, well=ENDED)
    yield Measurement(
        f"pytest suites --lf, {len(known)} failures on {BIG:,} nodes", spent.cpu_s, "CPU s", "at most", LAST_FAILED_S
    )


def _stored(fleet: Path) -> Side:
    """Return `pytest suites` that stores its outcomes: those in the store would not be judged again."""
    store = fleet / "own.sqlite"
    return Side([*SUITES, "--assay-store", str(store)], lambda: store.unlink(missing_ok=True))


def _compare(what: str, plain: Side, ours: Side, bound: float) -> Measurement:
    parts = {"cpu_s": ours.least.cpu_s, "against_cpu_s": plain.least.cpu_s, "runs_of_each": len(plain.costs)}
    return Measurement(what, plain.least.cpu_s / ours.least.cpu_s, "×", "at least", bound, parts)


def _change_a_spec(fleet: Path) -> None:
    spec = fleet / "specs" / "nodes" / "hgx-h100.yaml"
    spec.write_text(spec.read_text() + "# another line\n")


if __name__ == "__main__":
    taken = list(sweeps(Path(sys.argv[1]), int(sys.argv[2])))
    lines = [json.dumps(measurement.as_json(), ensure_ascii=False) for measurement in taken]
    print(*lines, sep="\n")  # noqa: T201 — the answer
    print(format_table(taken), file=sys.stderr)  # noqa: T201 — for people
