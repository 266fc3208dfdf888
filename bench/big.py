"""How check and plan grow: a fleet of 10,000 nodes against Ansible, and one of 100,000 against that of 10,000."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.big_fleet import make
from bench.changes import CHANGES, undo
from bench.cost import Cost, cost
from bench.measurement import Measurement
from bench.programs import ANSIBLE, CHECK, PLAN

BIG, HUGE = 10_000, 100_000
ANSIBLE_TIMES, PLAN_TIMES, PEAK_MB, GROWTH = 8.0, 2.0, 500.0, 1.15
TOLD = (0, 1)
"""How a plan may end: 1 says that it would break a limit of the policy, which is an answer too."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure check and plan at both sizes, in fleets made below `folder`."""
    fleet = make(folder / "big", BIG)
    check = cost(CHECK, fleet)
    yield against_ansible(fleet, check)
    yield peak(f"assay check, {BIG:,} nodes", check)
    plans = {}
    for name in CHANGES:
        plan = plans[name] = planned(fleet, name, times=3)
        yield of_check(f"assay plan, {BIG:,} nodes: {name}", plan, check)
        yield peak(f"assay plan, {BIG:,} nodes: {name}", plan)
    huge = make(folder / "huge", HUGE)
    yield growth(f"assay check, {HUGE:,} nodes", cost(CHECK, huge, times=1), check)
    for name, before in plans.items():
        yield growth(f"assay plan, {HUGE:,} nodes: {name}", planned(huge, name, times=1), before)


def against_ansible(fleet: Path, check: Cost, times: int = 3) -> Measurement:
    """Return how many times the CPU of `assay check` Ansible takes to list the same inventory."""
    ansible = cost(ANSIBLE, fleet, times=times)
    parts = {"cpu_s": check.cpu_s, "against_cpu_s": ansible.cpu_s}
    what = f"ansible-inventory --list / assay check, {BIG:,} nodes"
    return Measurement(what, ansible.cpu_s / check.cpu_s, "×", "at least", ANSIBLE_TIMES, parts)


def planned(fleet: Path, change: str, times: int) -> Cost:
    """Return what it costs to plan a change that touches every node."""
    with _changed(fleet, change):
        return cost(PLAN, fleet, times=times, well=TOLD)


def of_check(what: str, plan: Cost, check: Cost) -> Measurement:
    """Return the CPU of a plan as a multiple of check's."""
    parts = {"cpu_s": plan.cpu_s, "against_cpu_s": check.cpu_s}
    return Measurement(f"{what} / assay check", plan.cpu_s / check.cpu_s, "×", "at most", PLAN_TIMES, parts)


def peak(what: str, of: Cost) -> Measurement:
    """Return the peak memory."""
    return Measurement(f"{what}: peak memory", of.peak_mb, "MB", "at most", PEAK_MB)


def growth(what: str, huge: Cost, big: Cost) -> Measurement:
    """Return the CPU of a node in the huge fleet as a multiple of one in the big fleet."""
    parts = {"cpu_s": huge.cpu_s, "against_cpu_s": big.cpu_s, "peak_mb": huge.peak_mb}
    ratio = (huge.cpu_s / HUGE) / (big.cpu_s / BIG)
    return Measurement(f"{what}: CPU a node / that at {BIG:,}", ratio, "×", "at most", GROWTH, parts)


@contextmanager
def _changed(fleet: Path, change: str) -> Iterator[None]:
    CHANGES[change](fleet)
    try:
        yield
    finally:
        undo(fleet)
