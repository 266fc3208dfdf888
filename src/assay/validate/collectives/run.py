"""Runs a search to its end: round by round, each result into the file, from where an interrupted run stopped.

The collectives of a round run at the same time, each a fresh process in its own session, with a deadline: a hung
communicator leaves nothing behind that the next one could meet. Nodes that a customer takes in the middle give no
result: `preempted`. The commands come from a declared workload, from a pair's command, or run on this machine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.specs.workload import CollectiveCommand, CollectiveWorkload
from assay.validate.collectives import cpu_workload
from assay.validate.collectives.command import (
    CollectiveTask,
    CommandTemplate,
    RunKind,
    TaskResult,
    check_words,
    list_tasks,
    read_output,
)
from assay.validate.collectives.judging import GroupRule, SpeedRule, WholeStage
from assay.validate.collectives.result_file import ResultFile
from assay.validate.collectives.results import GroupResult, GroupRound, PairResult
from assay.validate.collectives.rounds import PairRound
from assay.validate.collectives.search import SearchResults, StagedSearch, StageSettings

KILL_GRACE_S = 10.0
OUTPUT_CHARS = 200_000
PREEMPTED = "preempted"
FindTaker = Callable[[Sequence[str], float], str]
"""Who else uses some of these nodes, "" if nobody does, as read at this time (time.monotonic) or later."""
STATUS_AGE_S = 5.0
"""How old the answer may be where a run has not begun yet."""


def find_no_taker(nodes: Sequence[str], since: float) -> str:  # noqa: ARG001 — the signature of FindTaker
    """Return "": the nodes belong to the search until it ends."""
    return ""


@dataclass(eq=False)
class PairRunner:
    """Runs commands of one template. `scratch` is where nccl-tests writes its reports; the nodes must see it.

    `find_taker` says whether a customer has the nodes. `environment`: None passes on that of this process.
    """

    template: CommandTemplate
    deadline_s: float
    at_once: int
    scratch: Path | None = None
    find_taker: FindTaker = find_no_taker
    environment: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        """Begin with nothing that runs."""
        self._running: set[subprocess.Popen[str]] = set()
        self._lock, self._is_stopped = threading.Lock(), False

    @property
    def has_rails(self) -> bool:
        """Whether the command runs on one rail."""
        return self.template.has_rails

    def run(self, tasks: Sequence[CollectiveTask], take: Callable[[TaskResult], None]) -> None:
        """Run all tasks, and give each result to `take` when it is there. An interrupt kills what runs."""
        with (
            tempfile.TemporaryDirectory(prefix="assay-pairs-", dir=self.scratch) as folder,
            ThreadPoolExecutor(max_workers=max(1, min(self.at_once, len(tasks)))) as pool,
            self._stopping_on_error(),
        ):
            futures = [pool.submit(self._run_one, task, Path(folder, f"{at}.json")) for at, task in enumerate(tasks)]
            try:
                for future in as_completed(futures):
                    take(future.result())
            except BaseException:
                for future in futures:
                    future.cancel()
                raise

    @contextlib.contextmanager
    def _stopping_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with self._lock:
                self._is_stopped = True
                running = list(self._running)
            for process in running:
                _kill_group(process)
            raise

    def _run_one(self, task: CollectiveTask, report: Path) -> TaskResult:
        if taker := self.find_taker(task.nodes, time.monotonic() - STATUS_AGE_S):
            return task.make_result(PREEMPTED, taker)
        result, output = self._run_process(task, report)
        if result.ended == "ok":
            return result
        taker = self.template.find_taker(output) or self.find_taker(task.nodes, time.monotonic())
        return task.make_result(PREEMPTED, taker) if taker else result

    def _run_process(self, task: CollectiveTask, report: Path) -> tuple[TaskResult, str]:
        """Return the result of a process and what it printed."""
        process = self._start(self.template.fill(task, report, self.deadline_s))
        if process is None:
            return task.make_result("interrupted"), ""
        try:
            output, _ = process.communicate(timeout=self.deadline_s)
        except subprocess.TimeoutExpired as expired:
            _kill_group(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=KILL_GRACE_S)
            printed = (expired.output or b"").decode(errors="replace")
            return task.make_result("deadline", f"killed after {self.deadline_s:g} s"), printed[-OUTPUT_CHARS:]
        finally:
            _kill_group(process)
            with self._lock:
                self._running.discard(process)
        output = output[-OUTPUT_CHARS:]
        return read_output(task, process.returncode, output, report), output

    def _start(self, words: list[str]) -> subprocess.Popen[str] | None:
        """Return the started process, None after an interrupt. Raises AssayError if there is no such command."""
        with self._lock:
            if self._is_stopped:
                return None
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    start_new_session=True,
                    env=self.environment,
                )
            except OSError as error:
                fix = "name a command of this machine, such as srun or ssh"
                raise AssayError(
                    f"{words[0]} cannot be started: {error.strerror}", where="--command", fix=fix
                ) from None
            self._running.add(process)
            return process


def _kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a process with all that it started. Its session has its own number, also after it ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


ShowProgress = Callable[[str, int, int], None]
"""(round, done, total)."""


@frozen
class SearchRunners:
    """What runs pairs, nodes alone, and nodes together. A search without such a stage needs no runner for it."""

    pair: PairRunner
    alone: PairRunner | None = None
    together: PairRunner | None = None

    def choose(self, planned: PairRound | GroupRound) -> PairRunner:
        """Return the runner of a round. Raises AssayError if there is none."""
        if isinstance(planned, PairRound):
            return self.pair
        runner = self.alone if planned.name.startswith("G") else self.together
        if runner is None:
            raise AssayError(f"no command is declared for round {planned.name}", fix="name another result file")
        return runner


def run_search(
    search: StagedSearch,
    rails: Sequence[int],
    runners: SearchRunners,
    file: ResultFile,
    results: SearchResults,
    show: ShowProgress,
) -> SearchResults:
    """Return all results, those of an earlier run included. An exception leaves the file with whole lines."""
    pairs, groups = list(results.pairs), list(results.groups)
    ended: set[str] = set()
    while planned := search.find_next_round(SearchResults(pairs, groups), ended):
        tasks = list_tasks(planned, rails)
        known: set[object] = {*(result.key for result in pairs), *(result.key for result in groups)}
        left = [task for task in tasks if task.make_result("").key not in known]
        counts = iter(range(len(tasks) - len(left), len(tasks) + 1))
        show(planned.name, next(counts), len(tasks))

        def take(
            result: TaskResult, counts: object = counts, name: str = planned.name, total: int = len(tasks)
        ) -> None:
            file.append(result)
            if isinstance(result, GroupResult):
                groups.append(result)
            elif isinstance(result, PairResult):
                pairs.append(result)
            show(name, next(counts), total)  # type: ignore[call-overload]

        if left:
            runners.choose(planned).run(left, take)
        ended.add(planned.name)
    return SearchResults(pairs, groups)


@frozen
class RunLimits:
    """How many collectives run at once, where reports go, the variables of commands (None: ours), and who takes nodes.

    `deadline_s` replaces the deadlines of the workload. `gpus`: how many GPUs each node has.
    """

    at_once: int = 512
    scratch: Path | None = None
    environment: Mapping[str, str] | None = None
    find_taker: FindTaker = find_no_taker
    deadline_s: float = 0.0
    gpus: Mapping[str, int] = field(default_factory=dict)


def make_runners(workload: CollectiveWorkload, limits: RunLimits) -> SearchRunners:
    """Return the runners of a workload. Raises AssayError for unknown placeholders, or if `scratch` is no folder."""
    where = f"CollectiveWorkload {workload.name}"
    alone = _make_runner("alone", workload, workload.alone, limits, where) if workload.alone else None
    together = _make_runner("together", workload, workload.together, limits, where) if workload.together else None
    return SearchRunners(_make_runner("pair", workload, workload.pair, limits, where), alone, together)


def choose_stages(workload: CollectiveWorkload, whole: WholeStage) -> StageSettings:
    """Return the stages that a workload has commands for."""
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
    template = CommandTemplate(words, tuple(workload.adapters), tuple(workload.taken), limits.gpus)
    deadline_s = limits.deadline_s or command.deadline_seconds
    scratch = limits.scratch or (Path(workload.scratch) if workload.scratch and template.has_report else None)
    if scratch and not scratch.is_dir():
        fix = "make it where the nodes and this machine see it, or name another one: `scratch`, or --scratch"
        raise AssayError(f"there is no folder {scratch}", where=where, fix=fix)
    environment = {**(os.environ if limits.environment is None else limits.environment), **workload.environment}
    return PairRunner(template, deadline_s, limits.at_once, scratch, limits.find_taker, environment)


def _find_expected(command: CollectiveCommand | None) -> float:
    return command.expected.bus_bandwidth if command and command.expected else 0.0
