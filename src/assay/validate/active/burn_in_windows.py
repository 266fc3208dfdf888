"""The plan of a node's burn-in, and its lines, cut into windows: what ran, on which parts, and the medians of readings.

The plan has phases in seconds: which load runs beside which, when it swings or rests. What ends a burn-in early is
found here too: a wrong result, an error that memory could not correct, a remapped row, a lost link.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Any, NamedTuple, cast

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import parse_reading
from assay.model.specs.burn_in import (
    HARD_COUNTERS,
    HARD_FAULTS,
    LOAD_FAULT,
    PART_FAULTS,
    BurnIn,
    BurnInPhase,
    BurnInWindow,
    PartWork,
)
from assay.model.specs.load_parts import LoadPart

Line = Mapping[str, Any]
"""A line of a node's journal: `n` its number, `t` the seconds of burn-in so far, `p` the phase; and one of `run` (the
parts of the node), `unit` (with `s` and `result`), `watch` (readings) and `end`."""
HOUR_S = 3600.0
CLOCK_SLACK_S = 300.0
"""By how much the clocks of node and controller may disagree about the hours of a burn-in."""
FIRST_RUNS = 2
"""A part without a result in as many runs tests nothing, and more runs would not."""
LEVELS = ("temperature", "memory_temperature", "power", "clock")


@frozen
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


class BurnInVerdict(NamedTuple):
    """Why a burn-in has failed: in words, the class of the fault, and the part of the node, "" for all of it."""

    reason: str
    fault: str
    part: str = ""


def find_verdict(lines: Sequence[Line], known: HardCounters) -> BurnInVerdict | None:
    """Return the first reason to end, None for none. `known`: hard counters as they stood before these lines."""
    return next(_list_verdicts(lines, known), None)


def _list_verdicts(lines: Sequence[Line], known: HardCounters) -> Iterator[BurnInVerdict]:
    before = {subject: dict(counters) for subject, counters in known.items()}
    for line in lines:
        if "unit" in line:
            yield from _judge_unit(line["unit"], line["result"])
        for group, faults in HARD_FAULTS.items() if "watch" in line else ():
            for subject, readings in line["watch"].get(group, {}).items():
                for name, words in _judge_counters(before.setdefault(subject, {}), readings):
                    yield BurnInVerdict(f"{subject}: {words}", faults.get(name, LOAD_FAULT), subject)


def _judge_counters(before: dict[str, int], readings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what became worse and how, and note the counters as they are now."""
    for name, title in HARD_COUNTERS.items():
        if name not in readings:
            continue
        is_worse = (
            readings[name] < before.get(name, 0)
            if name == "links"
            else readings[name] > before.get(name, readings[name])
        )
        if is_worse:
            yield name, f"{title} went from {before[name]} to {readings[name]} under load"
        before[name] = readings[name]


def _judge_unit(part: str, result: Mapping[str, Any]) -> Iterator[BurnInVerdict]:
    """Yield what a load tool says is wrong. Rates are for the checks, which know the limits."""
    fault, devices = PART_FAULTS.get(cast("LoadPart", part), LOAD_FAULT), result.get("devices")
    gpus = {f"gpu{index}": tree for index, tree in devices.items()} if isinstance(devices, Mapping) else {}
    for subject, tree in {**gpus, "": result.get("node")}.items():
        for words in _list_complaints(part, tree) if isinstance(tree, Mapping) else ():
            yield BurnInVerdict(f"{subject or 'node'}: {part} {words}", fault, subject)
    if _value(result, "right") is False:
        yield BurnInVerdict(f"{part} computed wrong results", fault)
    if _value(result, "intact") is False:
        yield BurnInVerdict(f"{part} read back other data than it had written", fault)
    titles = {"wrong": "wrong values", "errors": "wrong bits", "wrong_losses": "losses that are no number"}
    for name, title in {**titles, "miscompares": "miscompares"}.items():
        count = _value(result, name)
        if isinstance(count, int | float) and count > 0:
            yield BurnInVerdict(f"{part} found {count:g} {title}", fault)


def _list_complaints(part: str, tree: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a tool says against a GPU or the node. DCGM has words for each test, and one of them is a pass."""
    if _value(tree, "ok") is False:
        yield "computed wrong results"
    if problem := _value(tree, "problem"):
        yield f"says {problem}"
    tests = tree.get("tests", tree) if part.startswith("dcgm_") else {}
    for name, answer in ((name, _value(tests, name)) for name in tests):
        if isinstance(answer, str) and answer != "Pass":
            yield f"says of {name}: {answer}"


def _value(tree: Mapping[str, Any], name: str) -> Any:
    leaf = tree.get(name)
    return leaf.get("value") if isinstance(leaf, Mapping) else None


def find_fruitless_part(
    work: Mapping[str, Mapping[str, PartWork]], lines: Iterable[Line]
) -> tuple[str, PartWork] | None:
    """Return the part that has given no result in its first runs, and what these did; None for none.

    `work`: what ran before these lines, by phase and part.
    """
    ran: dict[str, PartWork] = {}
    steps = [*(step for parts in work.values() for step in parts.items())]
    steps += [(line["unit"], measure_unit(line)) for line in lines if "unit" in line]
    for part, step in steps:
        ran[part] = ran.get(part, PartWork()).plus(step)
    for part, done in ran.items():
        if done.units >= FIRST_RUNS and not done.results:
            return part, done
    return None


def find_invented_hours(lines: Sequence[Line], known_boot: str, now: tuple[str, float], most_s: float) -> str:
    """Return why the hours of lines cannot be true, "" if they can.

    Within a run, the seconds of burn-in pass no faster than the node's own time. In the boot that runs `now`, that is
    not beyond its time of now. In all there are no more seconds than `most_s`, by our clock. `known_boot`: the boot of
    the lines before these.
    """
    run_boot, before, doubt = known_boot, None, ""
    boot, answer_m = now
    for line in lines:
        t, m = float(line["t"]), float(line["m"])
        if before is None or "run" in line or "log" in line:
            before = (t, m)
        claimed, passed = t - before[0], m - before[1]
        run_boot = str(line["run"].get("boot", "")) if "run" in line else run_boot
        if t > most_s + CLOCK_SLACK_S:
            doubt = f"the node claims {t / HOUR_S:.1f} h of load, {most_s / HOUR_S:.1f} h after it was ordered"
        elif claimed > passed + CLOCK_SLACK_S:
            doubt = f"the node claims {claimed / HOUR_S:.1f} h of load in {passed / HOUR_S:.1f} h of its own time"
        elif run_boot == boot and boot and m > answer_m + CLOCK_SLACK_S:
            doubt = f"line {line['n']} of its journal is {(m - answer_m) / HOUR_S:.1f} h ahead of the node's own time"
    return doubt


def find_missing_work(
    spec: BurnIn,
    expected: Sequence[tuple[str, str]],
    work: Mapping[str, Mapping[str, PartWork]],
    serials: Collection[str] = (),
) -> list[str]:
    """Return what a burn-in that is over did not do, by phase and part: too few of its runs gave a result.

    `serials`: the names of all parts of the node. A part that counts by GPU or by drive must have run on each of them.
    """
    missing = []
    for phase, part in expected:
        done = work.get(phase, {}).get(part, PartWork())
        if not done.units:
            missing.append(f"{phase}: {part} never ran to its end")
        elif 100 * done.results < spec.results_percent * done.units:
            missing.append(f"{phase}: {part} gave a result in {done.results} of {done.units} runs ({done.reason})")
        else:
            least = spec.results_percent / 100 * max(done.subjects.values())
            kinds = {name.rstrip("0123456789") for name in done.subjects}
            all_parts = {*done.subjects, *(name for name in serials if name.rstrip("0123456789") in kinds)}
            left_out = [name for name in sorted(all_parts) if done.subjects.get(name, 0.0) < least]
            missing += [f"{phase}: {part} gave too few results for {name}" for name in left_out]
    return missing


HELD_PHASE = "held-longer"


def make_node_plan(spec: BurnIn, ident: str, shift: float = 0.0, *, held: bool = False) -> dict[str, Any]:
    """Return the plan as plain JSON data. `shift`: by which share of a period cycles and swings are moved.

    `held`: with the phase for nodes that drift, after all others.
    """
    phases = [_make_phase(spec, phase) for phase in spec.phases]
    if held and spec.drift.hold_longer_hours:
        longest = max(spec.phases, key=lambda phase: phase.hours)
        phases.append(
            {**_make_phase(spec, longest), "name": HELD_PHASE, "seconds": spec.drift.hold_longer_hours * HOUR_S}
        )
    return {"id": ident, "watch_s": spec.watch_seconds, "shift": round(shift, 4), "phases": phases}


def _make_phase(spec: BurnIn, phase: BurnInPhase) -> dict[str, Any]:
    cycles, swings = phase.cycles, phase.swings
    return {
        "name": phase.name,
        "seconds": phase.hours * HOUR_S,
        "unit_s": phase.unit_seconds or spec.unit_seconds,
        "rows": [list(row) for row in (phase.parts, phase.beside) if row],
        "cycles": [cycles.on_minutes * 60, cycles.off_minutes * 60] if cycles else [],
        "hertz": list(swings.hertz) if swings else [],
        "duty": swings.duty if swings else 1.0,
    }


def compute_shift(fleet: Fleet, node: Node, spec: BurnIn) -> float:
    """Return the share of a period by which a node's cycles and swings are moved: those of a group, alike.

    The groups of a site are spread over the period, each far from the one before it, so that any few of them that are
    under test balance each other. Raises AssayError where one node exceeds the limit of a step.
    """
    if spec.stagger == "none":
        return 0.0
    groups = list_power_groups(fleet, node.site, spec)
    bits = f"{next(place for place, names in enumerate(groups) if node.name in names):b}"
    return int(bits[::-1], 2) / (1 << len(bits))


def list_power_groups(fleet: Fleet, site: str, spec: BurnIn) -> list[list[str]]:
    """Return the nodes of a site that change their power together: a rack or a row, in parts of `step_kw` at most."""
    together: dict[str, list[Node]] = {}
    for node in fleet.nodes.values():
        if node.site == site:
            name = node.rack.rstrip("0123456789") if spec.stagger == "row" else node.rack
            together.setdefault(name, []).append(node)
    groups: list[list[str]] = []
    for name in sorted(together):
        left_kw = 0.0
        for number, node in enumerate(sorted(together[name], key=lambda each: (each.rack, each.name))):
            swing_kw, lack = spec.measure_swing(fleet.spec_of(node.name).limits)
            if lack:
                raise AssayError(f"{node.spec}: {lack}", fix=f"raise step_kw of the BurnIn {spec.name}, or take it out")
            if not number or swing_kw > left_kw:
                groups.append([])
                left_kw = spec.step_kw or math.inf
            groups[-1].append(node.name)
            left_kw -= swing_kw
    return groups


def list_expected_work(spec: BurnIn, *, held: bool = False) -> list[tuple[str, str]]:
    """Return phase and part of all that must have given results."""
    plan = make_node_plan(spec, "", held=held)
    return [(phase["name"], part) for phase in plan["phases"] for row in phase["rows"] for part in row]


def find_burn_in(fleet: Fleet, name: str) -> BurnIn | None:
    """Return what a node does of its burn-in: of those that states of the policy name, the first that is for it."""
    spec, parts = fleet.nodes[name].spec, fleet.parts_of(name)
    named = [plan_name for state in fleet.policy.states.values() for plan_name in state.burn_in]
    candidates = (fleet.burn_ins[plan_name] for plan_name in named if plan_name in fleet.burn_ins)
    return next((burn_in.fit_to(parts) for burn_in in candidates if burn_in.applies_to(spec, parts)), None)


def make_plan_for(
    fleet: Fleet, node: Node, spec: BurnIn, ident: str, *, done_s: float = 0.0, held: bool = False
) -> dict[str, Any]:
    """Return the plan for a node. `done_s`: how far it is, as far as we know; a node without its disk goes on there."""
    plan = make_node_plan(spec, ident, compute_shift(fleet, node, spec), held=held)
    return {**plan, "done_s": round(done_s, 1)}
