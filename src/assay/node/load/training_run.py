"""A training run: step by step, each a line with losses and digests, until the steps or the time are over."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from assay.node.load.battery_run import RunStoppedError, plant_silence_and_slowness, stop_on_signals
from assay.node.load.counter_hash import make_key
from assay.node.load.engine import Engine, TrainingSteps
from assay.node.load.planted_faults import PlantedFault, find_fault_words
from assay.node.load.run_lines import RunLines
from assay.node.load.workloads import TrainingWorkload


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
