"""A run of the battery: units seed by seed, until the time or the seeds are over, or a device hangs."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from assay.node.load.battery_test import BatteryTest
from assay.node.load.counter_hash import make_key
from assay.node.load.engine import Engine, UnitResult
from assay.node.load.planted_faults import PlantedFault, find_fault_words, find_silence, find_slowness
from assay.node.load.run_lines import RunLines


class RunStoppedError(Exception):
    """The run was told to stop, or a device hangs."""


@dataclass(frozen=True)
class RunPlan:
    """Which units: seeds from `first_seed`, at most `seeds` of them (0: no limit), for `seconds`.

    `after`: seed and test of the unit of an earlier run after which this one goes on; then `first_seed` does not count.
    """

    seconds: float
    first_seed: int
    seeds: int
    faults: Sequence[PlantedFault]
    after: tuple[int, str] | None = None


def run_battery(engine: Engine, tests: Sequence[BatteryTest], plan: RunPlan, lines: RunLines) -> str:
    """Run units and write their lines. Return how the run ended, and write that too."""
    try:
        stop_on_signals()
        _run_units(engine, tests, plan, lines)
    except RunStoppedError as stopped:
        lines.write_end("stopped", str(stopped))
        return "stopped"
    lines.write_end("done")
    return "done"


def stop_on_signals() -> None:
    """Let SIGTERM and SIGINT end the run with a whole last line."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    raise RunStoppedError(f"by {signal.Signals(number).name}")


def _run_units(engine: Engine, tests: Sequence[BatteryTest], plan: RunPlan, lines: RunLines) -> None:
    for test in tests:
        engine.prepare(test)
    ends_at = time.monotonic() + plan.seconds
    first, begin = find_start([test.name for test in tests], plan)
    seed = first
    while plan.seeds == 0 or seed < first + plan.seeds:
        for test in tests[begin if seed == first else 0 :]:
            if time.monotonic() >= ends_at:
                return
            result = run_planted(engine, test, seed, lines.units, plan.faults)
            lines.write_unit(test.name, seed, result)
            if result.reason:
                raise RunStoppedError(result.reason)
        seed += 1


def find_start(tests: Sequence[str], plan: RunPlan) -> tuple[int, int]:
    """Return the first seed, and the place of its first test.

    A test that there is no longer counts as the last one: the next seed begins.
    """
    if plan.after is None:
        return plan.first_seed, 0
    seed, name = plan.after
    place = next((place for place, test in enumerate(tests) if test == name), len(tests)) + 1
    return (seed, place) if place < len(tests) else (seed + 1, 0)


def parse_after(text: str) -> tuple[int, str] | None:
    """Return the unit that `SEED:TEST` names, None for "". Raises ValueError for anything else."""
    seed, _, test = text.partition(":")
    if text and not (seed.isdecimal() and test):
        raise ValueError(f"--after {text}: write SEED:TEST, such as 17:modulo.uint32")
    return (int(seed), test) if text else None


def run_planted(engine: Engine, test: BatteryTest, seed: int, unit: int, faults: Sequence[PlantedFault]) -> UnitResult:
    """Run one unit with its planted faults, `unit` counted from 0 in this run."""
    places = engine.facts.indexes
    words = [find_fault_words(faults, index, test.name, unit) for index in places]
    result = engine.run_unit(test, make_key(test.name, seed), words)
    return plant_silence_and_slowness(result, places, test.name, unit, faults)


def plant_silence_and_slowness(
    result: UnitResult, places: Sequence[int], test: str, unit: int, faults: Sequence[PlantedFault]
) -> UnitResult:
    """Let planted devices give no digest, or tell a longer time. A frozen one freezes the run."""
    for place, index in enumerate(places):
        silence = find_silence(faults, index, test, unit)
        if silence == "freeze":
            while True:
                signal.pause()
        if silence:
            result.digests[place] = None
        if silence == "hang":
            result.reason = f"device {index} gave nothing for {test}"
        slowness = find_slowness(faults, index, test, unit)
        if slowness > 1 and place < len(result.device_ms):
            result.device_ms[place] *= slowness
            result.ms = max(result.ms, result.device_ms[place])
    return result
