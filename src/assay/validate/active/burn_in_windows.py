"""Cuts the lines that a node wrote into windows: what ran, on which parts, and the medians of what was read.

Also finds what ends a burn-in early: a wrong result, an error that memory could not correct, a remapped row, a lost
link.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any

from assay.model.reading import parse_reading
from assay.model.specs.burn_in import HARD_COUNTERS, BurnIn, BurnInWindow, PartWork

Line = Mapping[str, Any]
"""A line of a node's journal: `n` its number, `t` the seconds of burn-in so far, `p` the phase; and one of `run` (the
parts of the node), `unit` (with `s` and `result`), `watch` (readings) and `end`."""
HOUR_S = 3600.0
LEVELS = ("temperature", "memory_temperature", "power", "clock")


@dataclass(frozen=True, slots=True)
class CutWindow:
    """A window, and the number of its last line."""

    window: BurnInWindow
    last_line: int


def cut_windows(lines: Sequence[Line], window_s: float) -> list[CutWindow]:
    """Return the windows that are over. A window ends with its time or its phase; the last one, with the burn-in."""
    working = [line for line in lines if "unit" in line or "watch" in line]
    groups = [list(group) for _, group in groupby(working, key=lambda line: (line["p"], int(line["t"] // window_s)))]
    return [_fold(group) for group in (groups if has_ended(lines) else groups[:-1])]


def has_ended(lines: Sequence[Line]) -> bool:
    """Whether the burn-in has ended. After its last line, a longer plan may have begun."""
    return bool(lines) and "end" in lines[-1]


def _fold(group: Sequence[Line]) -> CutWindow:
    parts: dict[str, PartWork] = {}
    for line in group:
        if "unit" in line:
            parts[line["unit"]] = parts.get(line["unit"], PartWork()).plus(measure_unit(line))
    watches = [line["watch"] for line in group if "watch" in line]
    last = group[-1]
    window = BurnInWindow(
        hours=round(last["t"] / HOUR_S, 4),
        phase=last["p"],
        parts=parts,
        gpus=_compute_medians(group, watches),
        corrected=_last_counters(watches, "corrected"),
        hard=list_hard_counters(watches),
    )
    return CutWindow(window, last["n"])


def measure_unit(line: Line) -> PartWork:
    """Return what one unit did. A subject whose reading is no value has no result."""
    seconds, result = round(float(line["s"]), 1), line["result"]
    subjects = dict.fromkeys(_subjects_with_result(result), seconds)
    reason = "" if subjects else _find_reason(result)
    return PartWork(1, 1 if subjects else 0, seconds, subjects, reason)


def _subjects_with_result(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the subjects of a result: `gpu3` of `devices`, `nvme0` of `drives`, else `node` if any value is there."""
    if parse_reading(result) is not None:
        return
    if digests := list(_gpus_with_digests(result)):
        yield from digests
        return
    for branch, prefix in (("devices", "gpu"), ("drives", "")):
        below = result.get(branch)
        if isinstance(below, Mapping) and parse_reading(below) is None:
            yield from (f"{prefix}{name}" for name, tree in below.items() if _holds_value(tree))
            return
    if _holds_value({name: tree for name, tree in result.items() if name != "started_at"}):
        yield "node"


def _gpus_with_digests(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the GPUs of a battery's result that gave a digest."""
    devices, units = ((result.get(name) or {}).get("value") for name in ("devices", "units"))
    if not isinstance(devices, list) or not isinstance(units, Mapping):
        return
    answers = [answer for seeds in units.values() if isinstance(seeds, Mapping) for answer in seeds.values()]
    for place, device in enumerate(devices):
        if any(
            isinstance(answer, str) or (isinstance(answer, list) and answer[place : place + 1] not in ([], [None]))
            for answer in answers
        ):
            yield f"gpu{device.get('index', place)}"


def _holds_value(tree: Any) -> bool:
    """Whether there is a value in a tree, and nothing in it failed."""
    leaves = list(_list_leaves(tree))
    return any("value" in leaf for leaf in leaves) and not any("failed" in leaf for leaf in leaves)


def _list_leaves(tree: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(tree, Mapping):
        return
    if parse_reading(tree) is not None:
        yield tree
        return
    for below in tree.values():
        yield from _list_leaves(below)


def _find_reason(result: Any) -> str:
    """Return why a result holds no value."""
    for leaf in _list_leaves(result):
        for kind in ("failed", "absent", "unsupported"):
            if kind in leaf:
                return f"{kind}: {leaf[kind]}"[:200]
    return "it gave no result"


def _compute_medians(group: Iterable[Line], watches: Sequence[Line]) -> dict[str, dict[str, float]]:
    """Return the medians of each GPU while it had load."""
    series: dict[str, dict[str, list[float]]] = {}
    for watch in watches:
        for subject, readings in watch.get("gpus", {}).items() if watch.get("loaded", True) else ():
            for level in LEVELS:
                if level in readings:
                    series.setdefault(subject, {}).setdefault(level, []).append(readings[level])
    for line in group:
        devices = line["result"].get("devices", {}) if "unit" in line else {}
        for index, tree in devices.items() if isinstance(devices, Mapping) else ():
            if isinstance(tree, Mapping) and isinstance(rate := tree.get("gflops"), Mapping) and "value" in rate:
                series.setdefault(f"gpu{index}", {}).setdefault("gflops", []).append(rate["value"])
    return {
        subject: {name: round(median(values), 2) for name, values in levels.items()}
        for subject, levels in series.items()
    }


def _last_counters(watches: Sequence[Line], name: str) -> dict[str, int]:
    counters: dict[str, int] = {}
    for watch in watches:
        for group in ("gpus", "dimms"):
            counters |= {subject: tree[name] for subject, tree in watch.get(group, {}).items() if name in tree}
    return counters


def list_hard_counters(watches: Sequence[Line]) -> dict[str, dict[str, int]]:
    """Return the last value of each hard counter of each subject."""
    counters: dict[str, dict[str, int]] = {}
    for name in HARD_COUNTERS:
        for subject, count in _last_counters(watches, name).items():
            counters.setdefault(subject, {})[name] = count
    return counters


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
    spec: BurnIn, expected: Sequence[tuple[str, str]], work: Mapping[str, Mapping[str, PartWork]]
) -> list[str]:
    """Return what a burn-in that is over did not do, by phase and part: too few of its runs gave a result."""
    missing = []
    for phase, part in expected:
        done = work.get(phase, {}).get(part, PartWork())
        if not done.units:
            missing.append(f"{phase}: {part} never ran to its end")
        elif 100 * done.results < spec.results_percent * done.units:
            missing.append(f"{phase}: {part} gave a result in {done.results} of {done.units} runs ({done.reason})")
        else:
            least = spec.results_percent / 100 * max(done.subjects.values())
            left_out = [name for name, seconds in sorted(done.subjects.items()) if seconds < least]
            missing += [f"{phase}: {part} gave too few results for {name}" for name in left_out]
    return missing
