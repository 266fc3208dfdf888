"""Runs what a command line asks for, on an engine. What can compute nothing, or plants a fault nowhere, is refused.

A battery goes unit by unit and seed by seed, training step by step, also of several nodes together. Each prints a line,
until the seeds, the steps or the time are over, or a device hangs.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from assay.node.load.catalog import choose_tests, hash_program, list_tests
from assay.node.load.digests import make_key
from assay.node.load.engine import Engine, LoadError, TrainingSteps, UnitResult
from assay.node.load.planted_faults import (
    PlantedFault,
    find_fault_words,
    find_silence,
    find_slowness,
    parse_plant,
    refuse_misses,
)
from assay.node.load.run_lines import RunLines
from assay.node.load.unit_tests import SIZES, BatterySizes, BatteryTest
from assay.node.load.workloads import TrainingWorkload, hash_workload, make_workload

PORT = 29_400
"""Where the first node listens if nobody says another port."""


def run_order(
    options: argparse.Namespace, engine: Engine, lines: RunLines, injected: Sequence[PlantedFault] = ()
) -> str:
    """Run the battery or training; return how it ended. Raises LoadError or ValueError if it cannot begin.

    `injected`: faults of a virtual node, which need not hit anything in this run.
    """
    run = _run_battery if options.verb == "battery" else _run_training
    return run(options, engine, lines, injected)


@dataclass(frozen=True)
class TrainingNodes:
    """Several nodes that train together. `coordinator`: HOST:PORT of the first; `node`: which one this is, from 0."""

    coordinator: str = ""
    nodes: int = 1
    node: int = 0


ALONE = TrainingNodes()


def join_hosts(hosts: Sequence[str], coordinator: str, own: str) -> TrainingNodes:
    """Return the place of the host `own` among all. Raises LoadError if it is none of them, or a name comes twice.

    Names count up to their first dot. Without a coordinator, the first host listens on `PORT`.
    """
    names = [_shorten(host) for host in hosts]
    if len(set(names)) != len(names):
        raise LoadError(f"--hosts {','.join(hosts)} names a host twice")
    if _shorten(own) not in names:
        raise LoadError(f"--hosts {','.join(hosts)} does not name this host, {own}")
    return TrainingNodes(coordinator or f"{hosts[0]}:{PORT}", len(hosts), names.index(_shorten(own)))


def name_this_host() -> str:
    """Return the name of this host: Slurm's, in a job of Slurm."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def _shorten(host: str) -> str:
    return host.partition(".")[0]


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

    def stop(number: int, _: FrameType | None) -> NoReturn:
        raise RunStoppedError(f"by {signal.Signals(number).name}")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


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
    result = engine.run_unit(test, make_key(test.keyed_as or test.name, seed), words)
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


@dataclass(frozen=True)
class TrainingPlan:
    """How much: at most `steps` of them (0: no limit), for `seconds`, from the state of `seed`."""

    seconds: float
    steps: int
    seed: int
    faults: Sequence[PlantedFault]


def run_training(engine: Engine, workload: TrainingWorkload, plan: TrainingPlan, lines: RunLines) -> str:
    """Run steps and write their lines. Return how the run ended, and write that too."""
    try:
        stop_on_signals()
        training = engine.start_training(workload, make_key(workload.test, plan.seed))
        _run_steps(engine, training, workload, plan, lines)
    except RunStoppedError as stopped:
        lines.write_end("stopped", str(stopped))
        return "stopped"
    lines.write_end("done")
    return "done"


def _run_steps(
    engine: Engine, training: TrainingSteps, workload: TrainingWorkload, plan: TrainingPlan, lines: RunLines
) -> None:
    places = engine.facts.indexes
    ends_at = time.monotonic() + plan.seconds
    step = 0
    while (plan.steps == 0 or step < plan.steps) and time.monotonic() < ends_at:
        words = [find_fault_words(plan.faults, index, workload.test, step) for index in places]
        result = training.run_step(make_key(f"{workload.test}/batch/{plan.seed}", step), words)
        plant_silence_and_slowness(result, places, workload.test, step, plan.faults)
        lines.write_step(workload.test, plan.seed, step, workload.tokens, result)
        if result.reason:
            raise RunStoppedError(result.reason)
        step += 1


def _run_battery(options: argparse.Namespace, engine: Engine, lines: RunLines, injected: Sequence[PlantedFault]) -> str:
    after = parse_after(options.after)
    faults = [parse_plant(text) for text in options.plant]
    sizes = _choose_sizes(options, engine)
    chosen = choose_tests(list_tests(sizes, engine.device_count), options.tests)
    without = {test.name: lack for test in chosen if (lack := engine.find_lack(test))}
    able = [test for test in chosen if test.name not in without]
    if not able:
        raise LoadError(f"none of these tests can run here: {'; '.join(sorted(set(without.values())))}")
    refuse_misses(faults, engine.facts.indexes, [test.name for test in able])
    lines.write_start(engine.facts, hash_program(sizes, engine.facts.flags), sizes.name, without)
    plan = RunPlan(options.seconds, options.first_seed, options.seeds, [*faults, *injected], after)
    return run_battery(engine, able, plan, lines)


def _run_training(
    options: argparse.Namespace, engine: Engine, lines: RunLines, injected: Sequence[PlantedFault]
) -> str:
    faults = [parse_plant(text) for text in options.plant]
    sizes = _choose_sizes(options, engine)
    workload = make_workload(options.workload, sizes, engine.device_count)
    if lack := engine.find_lack(workload):
        raise LoadError(f"{workload.name} cannot run here: {lack}")
    refuse_misses(faults, engine.facts.indexes, [workload.test])
    lines.write_start(engine.facts, hash_workload(workload, engine.facts.flags), sizes.name, {})
    plan = TrainingPlan(options.seconds, options.steps, options.first_seed, [*faults, *injected])
    return run_training(engine, workload, plan, lines)


def _choose_sizes(options: argparse.Namespace, engine: Engine) -> BatterySizes:
    return SIZES[options.size or ("small" if engine.facts.backend == "cpu" else "full")]
