"""Replays one history under many values of one setting of the policy: the curve of what each value costs."""

from __future__ import annotations

import multiprocessing
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from assay.model.errors import AssayError
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.trends.replay.policy_costs import CostModel, PolicyCosts, ReplayTally

SWEEP_PATTERN = re.compile(r"(?P<path>[^=\s]+)=(?P<first>[^:]+?)\.\.(?P<last>[^:]+?)(?::(?P<step>.+))?")
MAX_VALUES = 500
WORTH_A_PROCESS_S = 1.0
"""CPU seconds that are left to do, from which on a second process saves time."""


@dataclass(frozen=True, slots=True)
class PolicySweep:
    """A setting of the policy, by its dotted path, and the values to try."""

    path: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One value of a setting, and what the policy costs with it."""

    value: float
    costs: PolicyCosts


def parse_sweep(text: str) -> PolicySweep:
    """Read `PATH=A..B` or `PATH=A..B:STEP`; both ends are tried. Raises AssayError."""
    found = SWEEP_PATTERN.fullmatch(text.strip())
    fix = "write PATH=A..B or PATH=A..B:STEP, such as limits.pool_percent=1..50:5"
    try:
        first, last, step = (float(found[name] or 1) for name in ("first", "last", "step")) if found else (0, 0, 0)
        count = int((last - first) / step + 1e-9) + 1
    except (ValueError, ZeroDivisionError, OverflowError):
        found, count = None, 0
    if found is None or count < 1 or step <= 0:
        raise AssayError(f"{text} is no sweep", where="--sweep", fix=fix)
    if count > MAX_VALUES:
        raise AssayError(
            f"{text} has {count:,} values", where="--sweep", fix=f"use a larger step: {MAX_VALUES} at most"
        )
    return PolicySweep(found["path"], tuple(round(first + step * number, 9) for number in range(count)))


def find_policy_value(policy: LifecyclePolicy, path: str) -> float:
    """Return the number at a dotted path. Raises AssayError, with near names, where there is none."""
    numbers = dict(_list_numbers(policy.model_dump()))
    if path in numbers:
        return numbers[path]
    near = get_close_matches(path, numbers, n=3, cutoff=0.5) or [
        known for known in numbers if known.rpartition(".")[2] == path.rpartition(".")[2]
    ]
    fix = f"did you mean {' or '.join(near[:3])}?" if near else f"use a number of the policy, such as {min(numbers)}"
    raise AssayError(f"the policy {policy.name} has no number {path}", where="--sweep", fix=fix)


def replace_policy_value(policy: LifecyclePolicy, path: str, value: float) -> LifecyclePolicy:
    """Return the policy with another number at a dotted path. Raises AssayError if the policy may not have it."""
    known, whole = find_policy_value(policy, path), policy.model_dump(exclude_unset=True)
    place: Any = whole
    default: Any = policy.model_dump()
    *above, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in above:
        default = default[step]
        if isinstance(place, dict):
            place.setdefault(step, default)
        place = place[step]
    place[last] = int(value) if isinstance(known, int) and value == int(value) else value
    try:
        return LifecyclePolicy.model_validate(whole)
    except (ValidationError, ValueError) as error:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        fix = "choose other values, or a whole-number step"
        raise AssayError(f"{path} cannot be {value:g}: {first}", where="--sweep", fix=fix) from None


def list_changed_values(old: LifecyclePolicy, new: LifecyclePolicy) -> dict[str, tuple[float, float]]:
    """Return old and new value of every number that both policies have and that differs, by its dotted path."""
    was, will = dict(_list_numbers(old.model_dump())), dict(_list_numbers(new.model_dump()))
    return {path: (value, will[path]) for path, value in was.items() if path in will and will[path] != value}


def sweep_policy(
    values: Sequence[float], run: Callable[[float], ReplayTally], costs: CostModel, *, in_one_process: bool = False
) -> tuple[list[SweepPoint], datetime]:
    """Return what each value costs, all measured up to the same moment, and that moment. `run` replays one value."""
    tallies = [run(value) for value in values] if in_one_process else list(_run_all(values, run))
    until = max(tally.until for tally in tallies)
    points = zip(values, tallies, strict=True)
    return [SweepPoint(value, costs.count(tally, until)) for value, tally in points], until


def _run_all(values: Sequence[float], run: Callable[[float], ReplayTally]) -> Iterator[ReplayTally]:
    """Yield the result of each value, in order. The first says whether further processes pay."""
    begun = time.process_time()
    yield run(values[0])
    rest, left = values[1:], (time.process_time() - begun) * (len(values) - 1)
    workers = min(_count_cpus(), len(rest))
    if workers < 2 or left < WORTH_A_PROCESS_S or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(run, rest)
        return
    forked = multiprocessing.get_context("fork")  # what was read comes along without a copy
    with ProcessPoolExecutor(workers, forked, initializer=_remember, initargs=(run,)) as pool:
        yield from pool.map(_run_remembered, rest)


def _count_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_remembered: list[Callable[[float], ReplayTally]] = []


def _remember(run: Callable[[float], ReplayTally]) -> None:
    _remembered[:] = [run]


def _run_remembered(value: float) -> ReplayTally:
    return _remembered[0](value)


def _list_numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number of plain data by its dotted path."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _list_numbers(item, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _list_numbers(item, f"{path}.{number}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value
