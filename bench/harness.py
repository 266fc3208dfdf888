"""The cost of judging: many outcomes compared with plain pytest, the cost of a failure, one check of one node of many.

The checks are this repository's, on its recording. `python -m bench.harness DIR NODES` measures another size: 24 nodes
give 15,000 outcomes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.big_fleet import make, node_name
from bench.cost import Cost, cost
from bench.judged import ILL_SHARE, PHASES, counts_of, evidence, small_fleet
from bench.measurement import Measurement
from bench.programs import BIN, ROOT
from bench.table import format_table

NODES, BIG = 159, 10_000
"""159 nodes give 100,000 outcomes."""
TIMES_LESS, ALLURE_TIMES_LESS, PEAK_MB, FAILURE_MS, ONE_S = 7.0, 20.0, 300.0, 1.0, 1.0
PYTEST = [str(BIN / "pytest"), "-q", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
"""hypothesis is for this repository's own tests only, and takes a second to start."""
FLOOR = [sys.executable, "-m", "bench.floor"]
ENDED = (0, 1)
TIMES = 3
"""Take the least of this many runs: the cost of a failure is a small difference of two large figures."""
FEW = (1, 8)
"""Numbers of nodes for allure-pytest. Its cost per outcome is computed from the difference."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure sweeps of a small fleet, and one check in a big one, both below `folder`."""
    yield from sweeps(folder / "sweep", NODES)
    yield from single_check(make(folder / "many", BIG))


def sweeps(folder: Path, nodes: int) -> Iterator[Measurement]:
    """Compare plain pytest without a failure, ours without one, and ours with some. Ours stores outcomes."""
    fleet = small_fleet(folder, nodes)
    well, ill = (evidence(folder / name, nodes, ill=name == "ill") for name in ("well", "ill"))
    store = fleet / "own.sqlite"
    passing = _judge(fleet, well, store)
    failing = _judge(fleet, ill, store)
    verdicts = counts_of(store)
    count, bad = verdicts.total(), verdicts.total() - verdicts["pass"]
    assert bad >= ILL_SHARE * count, f"{bad} of {count} fail"
    plain = cost(_plain(well), fleet, times=1).cpu_s
    what = f"{count:,} outcomes"
    parts = {"cpu_s": failing.cpu_s, "against_cpu_s": plain, "failing": bad, "outcomes": count}
    yield Measurement(
        f"plain pytest, none failing / pytest suites, 2 % failing: {what}",
        plain / failing.cpu_s, "×", "at least", TIMES_LESS, {**parts, "bare_loop_cpu_s": _bare_loop(fleet, ill)},
    )  # fmt: skip
    allure = _with_allure(folder) * count
    parts = {"cpu_s": failing.cpu_s, "against_cpu_s": allure}
    yield Measurement(
        f"plain pytest with allure-pytest, by what {FEW[-1]} nodes cost / pytest suites, 2 % failing: {what}",
        allure / failing.cpu_s, "×", "at least", ALLURE_TIMES_LESS, parts,
    )  # fmt: skip
    yield Measurement(f"pytest suites, {what}: peak memory", failing.peak_mb, "MB", "at most", PEAK_MB)
    extra = max(0.0, failing.cpu_s - passing.cpu_s) / bad * 1000
    parts = {"cpu_s": failing.cpu_s, "against_cpu_s": passing.cpu_s}
    yield Measurement(f"pytest suites, {what}: a failure over a pass", extra, "ms", "at most", FAILURE_MS, parts)


def single_check(fleet: Path) -> Iterator[Measurement]:
    """Measure one check of one node in a big fleet that is in the cache."""
    node = node_name(BIG // 2)
    evidence(fleet / ".assay" / "evidence" / "latest", 1, first=BIG // 2)
    pool = f"pool-{BIG // 2 // 2500 + 1:02}"
    selections = {
        "by id": [f"suites/production/test_gpu.py::test_gpu_temperature[{pool}/{node}/gpu3]"],
        "by -k": ["suites", "-k", f"{node} and gpu_temperature"],
        "by --node": ["suites", "--node", node, "-k", "gpu_temperature"],
    }
    for name, words in selections.items():
        spent = cost([*PYTEST, *words], fleet, times=4)
        yield Measurement(f"one check of one node of {BIG:,}, {name}", spent.cpu_s, "s", "at most", ONE_S)


def _plain(evidence: Path) -> list[str]:
    return [*PYTEST, "plain", "--evidence", str(evidence)]


def _with_allure(folder: Path) -> float:
    """Return the CPU seconds of plain pytest with allure-pytest for one more outcome."""
    spent, counts = [], []
    for nodes in FEW:
        home = folder / f"few-{nodes}"
        fleet, well = small_fleet(home, nodes), evidence(home / "well", nodes)
        results = home / "allure"
        spent.append(cost([*_plain(well), "--alluredir", str(results)], fleet, times=1).cpu_s)
        counts.append(len(list(results.glob("*-result.json"))))
    return (spent[-1] - spent[0]) / (counts[-1] - counts[0])


def _bare_loop(fleet: Path, evidence: Path) -> float:
    """Return the CPU seconds of the same checks in a plain loop, without pytest."""
    command = [*FLOOR, str(fleet), str(evidence)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return float(json.loads(answer.splitlines()[-1])["cpu_s"])


def _judge(fleet: Path, evidence: Path, store: Path) -> Cost:
    words = ["suites", *PHASES, "--evidence", str(evidence), "--store", str(store)]
    return min(_judge_once(words, fleet, store) for _ in range(TIMES))


def _judge_once(words: list[str], fleet: Path, store: Path) -> Cost:
    store.unlink(missing_ok=True)  # outcomes in the store are not judged again
    return cost([*PYTEST, *words], fleet, times=1, well=ENDED)


if __name__ == "__main__":
    taken = list(sweeps(Path(sys.argv[1]), int(sys.argv[2])))
    lines = [json.dumps(measurement.as_json(), ensure_ascii=False) for measurement in taken]
    print(*lines, sep="\n")  # noqa: T201 — the answer
    print(format_table(taken), file=sys.stderr)  # noqa: T201 — for people
