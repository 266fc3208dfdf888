"""The cost of `assay check` and `assay plan`: 2,500 nodes compared with Ansible, 100,000 nodes with 10,000."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

from bench.big_fleet import make
from bench.changes import CHANGES, undo
from bench.cost import Cost, cost
from bench.measurement import Measurement
from bench.programs import ANSIBLE, CHECK, PLAN

POOL, BIG, HUGE = 2_500, 10_000, 100_000
ANSIBLE_TIMES, PLAN_TIMES, PEAK_MB, GROWTH = 8.0, 2.0, 500.0, 1.15
TIMES = 2
"""Runs of each side of a comparison. Ansible takes minutes for 10,000 nodes, so it reads one pool."""
ANSWERED = (0, 1)
"""Exit codes of a plan: 1 means that it exceeds a limit of the policy, which is an answer too."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure check and plan at both sizes, in fleets below `folder`."""
    yield against_ansible(make(folder / "pool", POOL))
    fleet = make(folder / "big", BIG)
    yield peak(f"assay check, {BIG:,} nodes", cost(CHECK, fleet, times=1))
    for name in CHANGES:
        plan, check = measure_plan(fleet, name)
        yield compare_with_check(f"assay plan, {BIG:,} nodes: {name}", plan, check)
        yield peak(f"assay plan, {BIG:,} nodes: {name}", plan)
    huge = make(folder / "huge", HUGE)
    yield growth(f"assay check, {HUGE:,} nodes", CHECK, huge, fleet)
    for name in CHANGES:
        with _changed(fleet, name), _changed(huge, name):
            yield growth(f"assay plan, {HUGE:,} nodes: {name}", PLAN, huge, fleet)


def against_ansible(fleet: Path) -> Measurement:
    """Return the CPU time of `ansible-inventory --list` as a multiple of that of `assay check`."""
    check, ansible = cost(CHECK, fleet, times=TIMES), cost(ANSIBLE, fleet, times=TIMES)
    parts = {"cpu_s": check.cpu_s, "against_cpu_s": ansible.cpu_s}
    what = f"ansible-inventory --list / assay check, {POOL:,} nodes"
    return Measurement(what, ansible.cpu_s / check.cpu_s, "×", "at least", ANSIBLE_TIMES, parts)


def measure_plan(fleet: Path, change: str, times: int = TIMES) -> tuple[Cost, Cost]:
    """Return the cost to plan a change of every node, and to check it: the least of several runs each.

    The runs alternate, so that other load on the machine hits both.
    """
    with _changed(fleet, change):
        runs = [[cost(each, fleet, times=1, well=ANSWERED) for each in (PLAN, CHECK)] for _ in range(times)]
    plans, checks = zip(*runs, strict=True)
    return min(plans), min(checks)


def compare_with_check(what: str, plan: Cost, check: Cost) -> Measurement:
    """Return the CPU time of a plan as a multiple of that of a check."""
    parts = {"cpu_s": plan.cpu_s, "against_cpu_s": check.cpu_s}
    return Measurement(f"{what} / assay check", plan.cpu_s / check.cpu_s, "×", "at most", PLAN_TIMES, parts)


def peak(what: str, measured: Cost) -> Measurement:
    """Return the peak memory."""
    return Measurement(f"{what}: peak memory", measured.peak_mb, "MB", "at most", PEAK_MB)


def growth(what: str, command: Sequence[str], huge: Path, big: Path) -> Measurement:
    """Return the CPU time a node in the huge fleet as a multiple of that in the big fleet (mean before and after)."""
    around = [cost(command, big, times=1, well=ANSWERED).cpu_s for _ in range(TIMES)]
    measured = cost(command, huge, times=1, well=ANSWERED)
    around += [cost(command, big, times=1, well=ANSWERED).cpu_s for _ in range(TIMES)]
    parts = {"cpu_s": measured.cpu_s, "against_cpu_s": mean(around), "peak_mb": measured.peak_mb}
    ratio = (measured.cpu_s / HUGE) / (mean(around) / BIG)
    return Measurement(f"{what}: CPU a node / that at {BIG:,}", ratio, "×", "at most", GROWTH, parts)


@contextmanager
def _changed(fleet: Path, change: str) -> Iterator[None]:
    CHANGES[change](fleet)
    try:
        yield
    finally:
        undo(fleet)
