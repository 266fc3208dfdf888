"""`assay-load`, or `python -m assay.load`: compute on the devices of this node, and print a JSON line for each unit.

Exit codes: 0 done, 2 if the run cannot start, 3 stopped before its end.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from assay.load.battery.catalog import choose_tests, hash_program, list_tests
from assay.load.battery.sizes import SIZES, BatterySizes
from assay.load.battery_run import RunPlan, run_battery
from assay.load.device_order import parse_order
from assay.load.engine import Engine, LoadError
from assay.load.engine_choice import EngineRequest, make_engine
from assay.load.jax_mesh import ALONE, TrainingNodes
from assay.load.planted_faults import parse_plant
from assay.load.run_lines import RunLines
from assay.load.training.training_run import TrainingPlan, run_training
from assay.load.training.workloads import NAMES, hash_workload, make_workload


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the arguments say. Raises SystemExit."""
    options = _parse_arguments(arguments)
    options.output = _keep_output()
    try:
        ended = _battery(options) if options.verb == "battery" else _train(options)
    except (LoadError, ValueError) as error:
        print(f"assay-load: {error}", file=sys.stderr)  # noqa: T201 — for a person
        sys.exit(2)
    if ended == "stopped":
        os._exit(3)  # a device that hangs would hold up the end of its library
    sys.exit(0)


def _keep_output() -> TextIO:
    """Return standard output for our lines only: what libraries print there goes to standard error from now on."""
    own = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return own


def _battery(options: argparse.Namespace) -> str:
    faults = [parse_plant(text) for text in options.plant]
    engine = _make_engine(options, ALONE)
    sizes = _choose_sizes(options, engine)
    chosen = choose_tests(list_tests(sizes), options.tests)
    without = {test.name: lack for test in chosen if (lack := engine.find_lack(test))}
    lines = RunLines(options.output)
    lines.write_start(engine.facts, hash_program(sizes, engine.facts.flags), sizes.name, without)
    plan = RunPlan(options.seconds, options.first_seed, options.seeds, faults, options.after)
    return run_battery(engine, [test for test in chosen if test.name not in without], plan, lines)


def _train(options: argparse.Namespace) -> str:
    faults = [parse_plant(text) for text in options.plant]
    engine = _make_engine(options, TrainingNodes(options.coordinator, options.nodes, options.node))
    sizes = _choose_sizes(options, engine)
    workload = make_workload(options.workload, sizes, engine.device_count)
    if lack := engine.find_lack(workload):
        raise LoadError(f"{workload.name} cannot run here: {lack}")
    lines = RunLines(options.output)
    lines.write_start(engine.facts, hash_workload(workload, engine.facts.flags), sizes.name, {})
    plan = TrainingPlan(options.seconds, options.steps, options.first_seed, faults)
    return run_training(engine, workload, plan, lines)


def _make_engine(options: argparse.Namespace, group: TrainingNodes) -> Engine:
    order = parse_order(options.order)
    uuids = options.uuids.split(",") if options.uuids else []
    named = (options.engine, options.devices, order, uuids, options.kind, options.unit_seconds)
    return make_engine(EngineRequest(*named, group))


def _choose_sizes(options: argparse.Namespace, engine: Engine) -> BatterySizes:
    return SIZES[options.size or ("small" if engine.facts.backend == "cpu" else "full")]


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("assay-load", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="battery|train")
    battery = verbs.add_parser("battery", help="compute many operations on all devices, and print digests")
    _add_common(battery)
    battery.add_argument("--seeds", type=int, default=0, help="at most so many seeds; 0: until the time is over")
    battery.add_argument("--tests", nargs="+", default=[], metavar="PATTERN", help="only these, such as gemm.float32")
    battery.add_argument("--after", default="", metavar="SEED:TEST", help="go on after this unit of an earlier run")
    train = verbs.add_parser("train", help="train a small model on all devices, and print losses and digests")
    train.add_argument("workload", choices=NAMES, help="alone on each device, data spread, or layers shared out")
    _add_common(train)
    train.add_argument("--steps", type=int, default=0, help="at most so many; 0: until the time is over")
    train.add_argument("--nodes", type=int, default=1, help="how many nodes train together; default: 1")
    train.add_argument("--node", type=int, default=0, help="which of them this is, from 0")
    train.add_argument("--coordinator", default="", metavar="HOST:PORT", help="where the first node listens")
    return parser.parse_args(arguments)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60, help="how long; default: 60")
    parser.add_argument("--first-seed", type=int, default=0, help="default: 0")
    parser.add_argument("--engine", choices=("jax", "numpy"), default="", help="default: JAX if it is installed")
    parser.add_argument("--size", choices=tuple(SIZES), default="", help="default: full on GPUs, small on a CPU")
    parser.add_argument("--devices", type=int, default=8, metavar="N", help="how many a CPU stands for; default: 8")
    parser.add_argument("--order", default="", metavar="LIST", help="of the devices: such as 3,1,0,2, or shuffled")
    parser.add_argument("--uuids", default="", metavar="LIST", help="names of the devices that a CPU stands for")
    parser.add_argument("--kind", default="", help="what a CPU's devices are called")
    parser.add_argument("--unit-seconds", type=float, default=60, help="a unit without an answer for so long hangs")
    parser.add_argument("--plant", nargs="+", default=[], metavar="FAULT", help="such as device=5,test=gemm,bit=3")


if __name__ == "__main__":
    main()
