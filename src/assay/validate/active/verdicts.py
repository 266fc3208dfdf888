"""What ends a burn-in early: a wrong result, an error that memory could not correct, a remapped row, a lost link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.model.specs.burn_in_spec import BurnIn
from assay.model.specs.burn_in_window import HARD_COUNTERS, PartWork
from assay.validate.active.windows import Line

HardCounters = Mapping[str, Mapping[str, int]]


def find_verdict(lines: Sequence[Line], known: HardCounters) -> str:
    """Return the first reason to end, "" for none. `known`: hard counters as they stood before these lines."""
    return next(_list_verdicts(lines, known), "")


def _list_verdicts(lines: Sequence[Line], known: HardCounters) -> Iterator[str]:
    before = {subject: dict(counters) for subject, counters in known.items()}
    for line in lines:
        if "unit" in line:
            yield from _judge_unit(line["unit"], line["result"])
        for group in ("gpus", "dimms") if "watch" in line else ():
            for subject, readings in line["watch"].get(group, {}).items():
                yield from _judge_counters(subject, before.setdefault(subject, {}), readings)


def _judge_counters(subject: str, before: dict[str, int], readings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what became worse, and note the counters as they are now."""
    for name, title in HARD_COUNTERS.items():
        if name not in readings:
            continue
        is_worse = (
            readings[name] < before.get(name, 0)
            if name == "links"
            else readings[name] > before.get(name, readings[name])
        )
        if is_worse:
            yield f"{subject}: {title} went from {before[name]} to {readings[name]} under load"
        before[name] = readings[name]


def _judge_unit(part: str, result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a load tool says is wrong. Rates are for the checks, which know the limits."""
    devices = result.get("devices")
    for index, tree in devices.items() if isinstance(devices, Mapping) else ():
        if isinstance(tree, Mapping) and _value(tree, "ok") is False:
            yield f"gpu{index}: {part} computed wrong results"
    for name, title in (("wrong", "wrong values"), ("errors", "wrong bits"), ("miscompares", "miscompares")):
        count = _value(result, name)
        if isinstance(count, int | float) and count > 0:
            yield f"{part} found {count:g} {title}"


def _value(tree: Mapping[str, Any], name: str) -> Any:
    leaf = tree.get(name)
    return leaf.get("value") if isinstance(leaf, Mapping) else None


def find_missing_work(
    spec: BurnIn, expected: Sequence[tuple[str, str]], work: Mapping[tuple[str, str], PartWork]
) -> list[str]:
    """Return what a burn-in that is over did not do, by phase and part: too few of its runs gave a result."""
    missing = []
    for phase, part in expected:
        done = work.get((phase, part), PartWork())
        if not done.units:
            missing.append(f"{phase}: {part} never ran to its end")
        elif 100 * done.results < spec.results_percent * done.units:
            missing.append(f"{phase}: {part} gave a result in {done.results} of {done.units} runs ({done.reason})")
        else:
            least = spec.results_percent / 100 * max(done.subjects.values())
            left_out = [name for name, seconds in sorted(done.subjects.items()) if seconds < least]
            missing += [f"{phase}: {part} gave too few results for {name}" for name in left_out]
    return missing
