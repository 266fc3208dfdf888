"""assay-load on a virtual node: the real one, computed by numpy for each GPU, with the faults of the node planted.

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
from assay.node.load.__main__ import parse_command_line
from assay.node.load.engine import (
    Engine,
    EngineFacts,
    LoadError,
    TrainingSteps,
    UnitResult,
    list_made_devices,
    parse_order,
)
from assay.node.load.numpy_engine import NumpyEngine, NumpyTraining
from assay.node.load.planted_faults import HEALTHY, FaultWords, PlantedFault, parse_plant
from assay.node.load.run import run_order
from assay.node.load.run_lines import RunLines
from assay.node.load.unit_tests import BatteryTest
from assay.node.load.workloads import TrainingWorkload

SEEDS = 1
STEPS = 24
"""A visit of the lab is one seed of every test, or so many steps: some tenths of a second of CPU for a node."""
BACKEND = "cuda"
NOT_STARTED = 2
STOPPED = 3


class LabEngine(NumpyEngine):
    """numpy, with told times: on a busy machine, measured ones would make healthy GPUs look slow."""

    def run_unit(self, test: BatteryTest, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Return the unit's digests, and one millisecond for each GPU. A planted fault makes it more."""
        result = super().run_unit(test, key, faults)
        return replace(result, ms=1.0, device_ms=[1.0] * len(faults))

    def start_training(self, workload: TrainingWorkload, key: int) -> LabTraining:
        """Return training whose steps tell one millisecond for each GPU."""
        return LabTraining(workload, key, self.device_count)


class LabTraining(NumpyTraining):
    """Training of numpy, with told times."""

    def run_step(self, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Take one step on each GPU in turn."""
        return replace(super().run_step(key, faults), ms=1.0, device_ms=[1.0] * len(faults))


class MadeUpEngine:
    """Stands in where numpy is not installed: a digest is a hash of its unit and of the fault's words."""

    def __init__(self, facts: EngineFacts) -> None:
        self.facts = facts
        self.device_count = len(facts.devices)

    def find_lack(self, test: BatteryTest | TrainingWorkload) -> str:
        """Return "": it computes nothing, so it lacks nothing."""
        del test
        return ""

    def prepare(self, test: BatteryTest) -> None:
        """Nothing is compiled."""

    def run_unit(self, test: BatteryTest, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Return made-up digests: the same for all devices but those with a fault."""
        del test
        return _make_up(key, faults)

    def start_training(self, workload: TrainingWorkload, key: int) -> TrainingSteps:
        """Return training whose steps are made up too."""
        del workload, key
        return MadeUpTraining()


class MadeUpTraining:
    """Steps with made-up digests, and a loss that falls."""

    def __init__(self) -> None:
        self._steps = 0

    def run_step(self, key: int, faults: Sequence[FaultWords]) -> UnitResult:
        """Return the next step."""
        self._steps += 1
        made_up = _make_up(key, faults)
        return replace(made_up, own=made_up.digests, losses=[1 / self._steps] * len(faults))


def _make_up(key: int, faults: Sequence[FaultWords]) -> UnitResult:
    digests: list[int | None] = [_hash(f"{key}") if fault == HEALTHY else _hash(f"{key}{fault}") for fault in faults]
    return UnitResult(1.0, digests, [1.0] * len(faults))


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


def list_injected(gpus: Sequence[State]) -> list[PlantedFault]:
    """Return the faults that were injected into the GPUs."""
    return [parse_plant(f"device={place},{text}") for place, gpu in enumerate(gpus) for text in gpu.get("computes", [])]


def shorten(options: argparse.Namespace, began: float) -> None:
    """Let a visit take one seed of the battery or a few steps, and the battery's small sizes."""
    options.size = "small"
    options.seconds = max(1.0, options.seconds - (time.monotonic() - began))
    if options.verb == "train":
        options.steps = min(options.steps or STEPS, STEPS)
    else:
        options.seeds = min(options.seeds or SEEDS, SEEDS)


def main() -> None:
    """Run what the words say, as assay-load does, on the node's GPUs."""
    began = time.monotonic()
    options = parse_command_line(None)
    state = load_node_state()
    gpus = working_gpus(state)
    if not gpus:
        sys.stderr.write("assay-load: CUDA sees no GPU\n")
        sys.exit(NOT_STARTED)
    shorten(options, began)
    try:
        engine = make_lab_engine(state, gpus, parse_order(options.order))
        ended = run_order(options, engine, RunLines(sys.stdout), list_injected(gpus))
    except (LoadError, ValueError) as error:
        sys.stderr.write(f"assay-load: {error}\n")
        sys.exit(NOT_STARTED)
    sys.exit(0 if ended == "done" else STOPPED)


if __name__ == "__main__":
    main()
