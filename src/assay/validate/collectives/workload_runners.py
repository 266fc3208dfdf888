"""Makes what runs the stages of a search: from a declared workload, from a pair's command, or on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.specs.collective_workload import CollectiveCommand, CollectiveWorkload
from assay.validate.collectives import cpu_workload
from assay.validate.collectives.group_judging import GroupRule, WholeStage
from assay.validate.collectives.judging import SpeedRule
from assay.validate.collectives.pair_command import CommandTemplate, RunKind, check_words
from assay.validate.collectives.pair_processes import FindTaker, PairRunner, find_no_taker
from assay.validate.collectives.search_run import SearchRunners
from assay.validate.collectives.staged_search import StageSettings


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How many collectives run at once, where reports go, the variables of commands (None: ours), and who takes nodes.

    `deadline_s` replaces the deadlines of the workload.
    """

    at_once: int = 512
    scratch: Path | None = None
    environment: Mapping[str, str] | None = None
    find_taker: FindTaker = find_no_taker
    deadline_s: float = 0.0


def make_runners(workload: CollectiveWorkload, limits: RunLimits) -> SearchRunners:
    """Return the runners of a workload. Raises AssayError for placeholders that are not known."""
    where = f"CollectiveWorkload {workload.name}"
    alone = _make_runner("alone", workload, workload.alone, limits, where) if workload.alone else None
    together = _make_runner("together", workload, workload.together, limits, where) if workload.together else None
    return SearchRunners(_make_runner("pair", workload, workload.pair, limits, where), alone, together)


def choose_stages(workload: CollectiveWorkload, whole: WholeStage) -> StageSettings:
    """Return the stages that a workload has commands for. Raises AssayError if all nodes together are asked in vain."""
    if whole == "first" and not workload.together:
        fix = "give it a command `together`, or leave `whole: first` out of the schedule"
        raise AssayError("it has no command for many nodes", where=f"CollectiveWorkload {workload.name}", fix=fix)
    alone, together = workload.alone, workload.together
    rule = GroupRule(workload.slow_below, _find_expected(alone), _find_expected(together))
    return StageSettings(alone is not None, whole if together else "no", rule)


def make_speed_rule(workload: CollectiveWorkload) -> SpeedRule:
    """Return when a pair of the workload is slow."""
    return SpeedRule(workload.slow_below, _find_expected(workload.pair))


def make_cpu_workload(plants: Sequence[str], deadline_s: float, rails: bool = False) -> CollectiveWorkload:
    """Return the workload that runs on this machine, with planted faults. Raises AssayError for a bad plant."""
    for plant in plants:
        try:
            cpu_workload.parse_plant(plant)
        except ValueError as error:
            fix = f"write NODE=FAULT, with one of {', '.join(cpu_workload.FAULTS)}"
            raise AssayError(str(error), where="--plant", fix=fix) from None
    program = [sys.executable, "-I", "-S", cpu_workload.__file__, "--round={round}"]
    program += [f"--plant={plant}" for plant in plants]

    def command(*words: str) -> CollectiveCommand:
        return CollectiveCommand(command=[*program, *words], deadline_seconds=deadline_s)

    rail = ["--rail={rail}"] if rails else []
    return CollectiveWorkload(
        kind="CollectiveWorkload",
        name="cpu",
        sources=["this machine"],
        pair=command(*rail, "{a}", "{b}"),
        alone=command("{node}"),
        together=command("{nodes}"),
    )


def _make_runner(
    kind: RunKind, workload: CollectiveWorkload, command: CollectiveCommand, limits: RunLimits, where: str
) -> PairRunner:
    words = tuple(command.command)
    check_words(kind, words, f"{where}, {kind}")
    template = CommandTemplate(words, tuple(workload.adapters), tuple(workload.taken))
    deadline_s = limits.deadline_s or command.deadline_seconds
    scratch = limits.scratch or (Path(workload.scratch) if workload.scratch and template.has_report else None)
    environment = {**(os.environ if limits.environment is None else limits.environment), **workload.environment}
    return PairRunner(template, deadline_s, limits.at_once, scratch, limits.find_taker, environment)


def _find_expected(command: CollectiveCommand | None) -> float:
    return command.expected.bus_bandwidth if command and command.expected else 0.0
