"""assay-load on a virtual node: the real battery, computed by numpy for each GPU, with the faults of the node planted.

A virtual node has no CUDA, so the run says what its GPUs are and, as `runtime`, what really computed. Without numpy,
digests are made up from the names of the units: they agree where no fault is planted, and prove nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

from assay.lab.tools.state_reader import State, load_node_state, working_gpus
from assay.load.battery.battery_test import BatteryTest
from assay.load.battery.catalog import choose_tests, hash_program, list_tests
from assay.load.battery.sizes import SIZES
from assay.load.battery_run import RunPlan, run_battery
from assay.load.cpu_facts import list_made_devices
from assay.load.device_order import parse_order
from assay.load.engine import Engine, EngineFacts, LoadError, TrainingSteps, UnitResult
from assay.load.numpy_engine import NumpyEngine
from assay.load.planted_faults import HEALTHY, FaultWords, parse_plant
from assay.load.run_lines import RunLines
from assay.load.training.workloads import TrainingWorkload

SEEDS = 1
"""A visit of the lab is one seed of every test: a few hundredths of a second of CPU for a node."""
BACKEND = "cuda"
NO_GPU, STOPPED = 2, 3


class LabEngine(NumpyEngine):
    """numpy, with told times: on a busy machine, measured ones would make healthy GPUs look slow."""

    def run_unit(self, test: BatteryTest, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Return the unit's digests, and one millisecond for each GPU. A planted fault makes it more."""
        result = super().run_unit(test, key, faults)
        return UnitResult(1.0, result.digests, [1.0] * len(faults), result.reason)


class MadeUpEngine:
    """Stands in where numpy is not installed: a digest is a hash of its unit and of the fault's words."""

    def __init__(self, facts: EngineFacts) -> None:
        self.facts, self.device_count = facts, len(facts.devices)

    def find_lack(self, test: BatteryTest | TrainingWorkload) -> str:
        """Return "": it computes nothing, so it lacks nothing."""
        del test
        return ""

    def prepare(self, test: BatteryTest) -> None:
        """Nothing is compiled."""

    def run_unit(self, test: BatteryTest, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Return made-up digests: the same for all devices but those with a fault."""
        del test
        digests: list[int | None] = [
            _hash(f"{key}") if fault == HEALTHY else _hash(f"{key}{fault}") for fault in faults
        ]
        return UnitResult(1.0, digests, [1.0] * len(faults))

    def start_training(self, workload: TrainingWorkload, key: int) -> TrainingSteps:
        """Refuse: there is nothing to train with."""
        del key
        raise LoadError(f"{workload.name} needs numpy, which is not installed; install assay-fleet[load]")


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def make_lab_engine(state: State, gpus: Sequence[State], order: Sequence[int]) -> Engine:
    """Return the engine that computes for the node's GPUs, and calls itself what a node with them would."""
    devices = list_made_devices(len(gpus), order, [gpu["uuid"] for gpu in gpus], gpus[0]["name"])
    if find_spec("numpy") is None:
        made_up = EngineFacts("made up", BACKEND, state["driver"], "lab without numpy", "", devices)
        return MadeUpEngine(made_up)
    engine = LabEngine(devices)
    runtime = f"lab on {engine.facts.driver}"  # of a CPU, this is its instruction set
    engine.facts = replace(engine.facts, backend=BACKEND, driver=state["driver"], runtime=runtime)
    return engine


def run_lab_battery(state: State, options: argparse.Namespace, began: float) -> str:
    """Run the battery on the node's GPUs and print its lines. Return how it ended."""
    gpus = working_gpus(state)
    engine = make_lab_engine(state, gpus, parse_order(options.order))
    faults = [
        parse_plant(f"device={place},{text}") for place, gpu in enumerate(gpus) for text in gpu.get("computes", [])
    ]
    sizes = SIZES["small"]
    chosen = choose_tests(list_tests(sizes), options.tests)
    without = {test.name: lack for test in chosen if (lack := engine.find_lack(test))}
    lines = RunLines(sys.stdout)
    lines.write_start(engine.facts, hash_program(sizes, engine.facts.flags), sizes.name, without)
    left_s = max(1.0, options.seconds - (time.monotonic() - began))
    plan = RunPlan(left_s, options.first_seed, min(options.seeds or SEEDS, SEEDS), faults, options.after)
    return run_battery(engine, [test for test in chosen if test.name not in without], plan, lines)


def main() -> None:
    """Run the battery as the words say. The lab shortens a visit to `SEEDS` seeds."""
    began = time.monotonic()
    parser = argparse.ArgumentParser("assay-load")
    parser.add_argument("verb", choices=("battery",))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--order", default="")
    parser.add_argument("--after", default="")
    parser.add_argument("--tests", nargs="+", default=[])
    options, _ = parser.parse_known_args()
    state = load_node_state()
    if not working_gpus(state):
        sys.stderr.write("assay-load: CUDA sees no GPU\n")
        sys.exit(NO_GPU)
    sys.exit(0 if run_lab_battery(state, options, began) == "done" else STOPPED)


if __name__ == "__main__":
    main()
