"""Runs what a command line asks for, on an engine. What can compute nothing, or plants a fault nowhere, is refused."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from assay.node.load.battery_run import RunPlan, parse_after, run_battery
from assay.node.load.catalog import choose_tests, hash_program, list_tests
from assay.node.load.engine import Engine, LoadError
from assay.node.load.planted_faults import PlantedFault, parse_plant, refuse_misses
from assay.node.load.run_lines import RunLines
from assay.node.load.sizes import SIZES, BatterySizes
from assay.node.load.training_run import TrainingPlan, run_training
from assay.node.load.workloads import hash_workload, make_workload


def run_order(
    options: argparse.Namespace, engine: Engine, lines: RunLines, injected: Sequence[PlantedFault] = ()
) -> str:
    """Run the battery or training; return how it ended. Raises LoadError or ValueError if it cannot begin.

    `injected`: faults of a virtual node, which need not hit anything in this run.
    """
    run = _run_battery if options.verb == "battery" else _run_training
    return run(options, engine, lines, injected)


def _run_battery(options: argparse.Namespace, engine: Engine, lines: RunLines, injected: Sequence[PlantedFault]) -> str:
    after, faults = parse_after(options.after), [parse_plant(text) for text in options.plant]
    sizes = _choose_sizes(options, engine)
    chosen = choose_tests(list_tests(sizes), options.tests)
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
