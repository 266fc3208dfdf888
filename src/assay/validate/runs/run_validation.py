"""Runs validation: pytest over the selected nodes in shards, an outcome for every declared check, one run file.

`run_validation` starts a run, `resume_run` continues one that was cut short; both record it in the ledger. Only one
process at a time works on a run. A run also says how old the evidence of a pass may be, by check: what the policy
allows for the phases of the run.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from assay.declare.home import find_home_of
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.fabric.design.node_cables import digest_node_cables
from assay.ledger.errors import LEDGER_VARIABLE
from assay.ledger.file_locks import hold_file_lock
from assay.ledger.location import locate_existing_ledger
from assay.ledger.runs.reader import RUN_FILE, StoredRun, find_run
from assay.ledger.runs.run_manifest import RunManifest, create_run
from assay.ledger.store import Ledger
from assay.model.clock import Clock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, SuiteRun
from assay.model.specs.lifecycle_policy import PhaseAges, find_longest_hours, find_max_hours
from assay.validate.results.run_summary import RunSummary
from assay.validate.runs.completeness import (
    NOT_DELIVERED_REASON,
    DueOutcomes,
    OutcomesByPool,
    RunProgress,
    delete_shard_files,
    merge_shards,
    write_empty_run,
)
from assay.validate.runs.shard_processes import LocalProcesses
from assay.validate.runs.sharding import (
    UNJUDGED_PREFIXES,
    EndedShard,
    RunShard,
    ShardRunner,
    count_shards,
    cut_into_shards,
    is_shard_judged,
)
from assay.validate.runs.subjects import NodeSelection, list_declared_checks

UNREQUIRED_HOURS = {"weekly": 336.0}
"""Phases that no state requires: a week is judged once a week, and one may be missed (our own choice)."""
OTHER_HOURS = 48.0
"""For other such phases: what was not read for two days is not known, as on the page of the report (our own choice)."""
SHARD_DEADLINE_S = 600.0
SHARD_POLL_S, PROGRESS_INTERVAL_S = 0.05, 1.0
UNDELIVERED_REASONS = (NOT_DELIVERED_REASON, *UNJUDGED_PREFIXES)


def list_fresh_hours(fleet: Fleet, phases: Collection[str]) -> dict[str, float]:
    """Return the greatest age of evidence in hours for each declared check of these phases (none: of all)."""
    limits = {}
    for check in list_declared_checks(fleet, phases):
        judged = [phase for phase in check.phases if not phases or phase in phases]
        ages: PhaseAges = {}
        for phase in judged:
            longest = (find_longest_hours(policy, phase) for policy in fleet.policies.values())
            allowed = [hours for hours in longest if hours is not None]
            ages[phase] = max(allowed, default=UNREQUIRED_HOURS.get(phase, OTHER_HOURS))
        limits[check.id] = find_max_hours(ages, check) or OTHER_HOURS
    return limits


@contextmanager
def hold_run_lock(home: Path) -> Iterator[None]:
    """Hold the lock of the run in `home`; the end of this process, in whatever way, releases it.

    Raises AssayError when another process holds it.
    """

    def refuse(holder: str) -> AssayError:
        problem = f"process {holder or 'unknown'} is judging run {home.name}"
        return AssayError(problem, fix="wait for that process, or end it; then resume the run")

    with hold_file_lock(home / "lock", 0, refuse, note=str(os.getpid())):
        yield
        (home / "lock").unlink(missing_ok=True)


class RunInterrupted(KeyboardInterrupt):
    """The user interrupted a run. `run` is its id; the outcomes so far are stored."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.run = run


class RunNotRecorded(AssayError):
    """A run was judged and stored, but not recorded in the ledger. `run` is its id; `resume_run` records it."""

    def __init__(self, run: str, error: AssayError) -> None:
        super().__init__(error.what, where=error.where, fix=error.fix)
        self.run = run


@dataclass(frozen=True)
class RunResult:
    """A run that has ended. Its outcomes stay in the file, since there may be a million.

    `judged` is False where the run had ended before, and was only recorded.
    """

    stored: StoredRun
    judged: bool = True

    @property
    def run(self) -> SuiteRun:
        """The run's identity."""
        return self.stored.run

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of outcomes of each verdict."""
        return self.stored.counts()

    @cached_property
    def deciding(self) -> int:
        """The number of outcomes that count against their subjects."""
        return self.stored.count_deciding()

    @property
    def passed(self) -> bool:
        """Whether anything was judged on evidence that was not too old, and no outcome counts against its subject."""
        return bool(self.counts.total()) and not self.deciding and not self.remark

    @cached_property
    def remark(self) -> str:
        """Why the outcomes cannot be relied on, "" where they can."""
        return RunSummary(self.stored, now=datetime.fromisoformat(self.run.at)).remark

    @cached_property
    def missing(self) -> int:
        """The number of declared outcomes that were not delivered; each is stored as an error."""
        execute = self.stored.connection.execute
        texts = execute("SELECT id, text FROM text")
        reasons = [number for number, text in texts if text.startswith(UNDELIVERED_REASONS)]
        query = "SELECT count(*) FROM outcome WHERE reason IN (SELECT value FROM json_each(?))"
        count: int = execute(query, (json.dumps(reasons),)).fetchone()[0]
        return count

    @property
    def complete(self) -> bool:
        """Whether every shard was judged to its end. A run that is not complete can be resumed."""
        return self.stored.is_complete


@dataclass(frozen=True)
class RunOptions:
    """How a run is executed: what runs its shards, the deadline of each, and what receives the progress.

    `baseline` is the path or URL of the ledger with earlier passes, "" for the fleet's own.
    """

    runner: ShardRunner = field(default_factory=lambda: LocalProcesses(1))
    deadline_s: float = SHARD_DEADLINE_S
    progress: Callable[[OutcomesByPool], None] | None = None
    baseline: str = ""


def run_validation(
    fleet: Fleet,
    evidence: Path,
    *,
    nodes: Collection[str],
    phases: Collection[str],
    reports: Path,
    ledger: Ledger | None,
    clock: Clock,
    jobs: int = 1,
    extra: Sequence[str] = (),
    user_selection: str = "",
    options: RunOptions | None = None,
) -> RunResult:
    """Judge `nodes` in `phases` (none: all) on the evidence in the folder `evidence`, and record the outcomes.

    The nodes are cut into shards, equally many for each of `jobs` processes. `extra` are arguments for pytest; what
    they deselect does not count as missing. `user_selection` is the selection as the user wrote it. Raises AssayError
    where there is nothing to run, RunNotRecorded where the ledger cannot be written, RunInterrupted on Ctrl-C.
    """
    requested = set(nodes)
    selected = tuple(name for name in fleet.nodes if name in requested)
    due = DueOutcomes.of_selection(NodeSelection(fleet, selected), phases)
    if not len(due):
        fix = "see specs/checks for the checks, their phases and subjects"
        raise AssayError("no declared check is selected", fix=fix)
    run = create_run(fleet, selected, phases, clock.now())
    file = reports.resolve() / "runs" / run.id / RUN_FILE
    file.parent.mkdir(parents=True)
    with hold_run_lock(file.parent):
        shards = count_shards(len(selected), len(due), jobs, extra)
        fresh_hours = list_fresh_hours(fleet, phases)
        manifest = RunManifest.create(fleet, run, evidence.resolve(), extra, shards, user_selection, fresh_hours)
        write_empty_run(file, manifest).replace(file)
        with ThreadPoolExecutor(1) as beside:  # reading the suites takes a moment, in which the shards have begun
            hashes = beside.submit(JudgingHashes, fleet, digest_node_cables)
            _run_shards(fleet, manifest, due, file, options or RunOptions(LocalProcesses(jobs)))
            return _record_in_ledger(file, hashes.result(), ledger, clock)


def resume_run(
    fleet: Fleet,
    name: str,
    *,
    reports: Path,
    ledger: Ledger | None,
    clock: Clock,
    jobs: int = 1,
    options: RunOptions | None = None,
) -> RunResult:
    """Continue a run that was killed, interrupted, or that lost a shard. What it has judged is not judged again.

    `name` is the run's id or its start, `last`, `last~1`, … Raises AssayError where specs, suites or evidence have
    changed since the run started, RunNotRecorded and RunInterrupted as `run_validation`.
    """
    file = find_run(reports.resolve(), name)
    with hold_run_lock(file.parent):
        with StoredRun.open(file) as stored:
            manifest = RunManifest.read(stored)
            is_complete = stored.is_complete
            errors = stored.outcomes(verdicts=["error"])
            # what lost or late shards did not reach
            unjudged = [error for error in errors if error.reason.startswith(UNJUDGED_PREFIXES)]
            lost = {(error.check, error.subject) for error in unjudged}
        if is_complete:
            delete_shard_files(file.parent)
            return replace(_record_in_ledger(file, None, ledger, clock), judged=False)
        manifest.require_unchanged(fleet)
        hashes = JudgingHashes(fleet, digest_node_cables)
        due = DueOutcomes.of_selection(NodeSelection(fleet, manifest.run.nodes), manifest.run.phases)
        _run_shards(fleet, manifest, due, file, options or RunOptions(LocalProcesses(jobs)))
        return _record_in_ledger(file, hashes, ledger, clock, lost)


def _run_shards(fleet: Fleet, manifest: RunManifest, due: DueOutcomes, file: Path, options: RunOptions) -> None:
    # passed by environment, since other users can read a command, and a ledger's URL may hold a password
    home = find_home_of(fleet)
    ledger = options.baseline or locate_existing_ledger(home.folder, is_lab=home.is_lab)
    environment = {LEDGER_VARIABLE: ledger, **home.environment}
    shards = list(cut_into_shards(fleet, manifest, file.parent, environment))
    judged = [EndedShard(shard) for shard in shards if is_shard_judged(shard)]
    left = [shard for shard in shards if not is_shard_judged(shard)]
    try:
        ended = [*judged, *_collect_ended_shards(left, judged, due, options)]
    except KeyboardInterrupt:
        raise RunInterrupted(manifest.run.id) from None
    finally:
        options.runner.stop()
    merge_shards(fleet, manifest, sorted(ended, key=lambda end: end.shard.number), file)


def _collect_ended_shards(
    left: Sequence[RunShard], judged: Sequence[EndedShard], due: DueOutcomes, options: RunOptions
) -> Iterator[EndedShard]:
    """Run the shards that are left; yield each when it has ended, and report the progress of all."""
    progress = RunProgress(due)
    waiting = len(left)
    reported_at = 0.0
    newly_ended = [end.shard for end in judged]
    options.runner.start(left, options.deadline_s)
    while waiting:
        ends = options.runner.collect_ended()
        yield from ends
        waiting -= len(ends)
        newly_ended += [end.shard for end in ends]
        if options.progress and (newly_ended or time.monotonic() - reported_at > PROGRESS_INTERVAL_S):
            options.progress(progress.count(options.runner.list_running(), newly_ended))
            newly_ended, reported_at = [], time.monotonic()
        if waiting and not ends:
            time.sleep(SHARD_POLL_S)


def _record_in_ledger(
    file: Path,
    hashes: JudgingHashes | None,
    ledger: Ledger | None,
    clock: Clock,
    lost: Collection[tuple[str, str]] = (),
) -> RunResult:
    """Record an ended run in the ledger, and return it.

    Each outcome gets what it was judged by, from `hashes`; without them, that is not known any more. Outcomes of lost
    or late shards say nothing of their nodes, so they are not recorded. When a resumed run has judged them (`lost`),
    they are recorded as a run of their own.
    """
    result, now = RunResult(StoredRun.open(file)), clock.now()
    try:
        judged = _read_judged_outcomes(result.stored, hashes)
        if ledger is not None and not ledger.record(result.run, judged, now) and lost:
            resumed = replace(result.run, id=f"{result.run.id}+{now:%Y%m%dT%H%M%S}", at=now.isoformat())
            judged = _read_judged_outcomes(result.stored, hashes)
            ledger.record(resumed, (outcome for outcome in judged if (outcome.check, outcome.subject) in lost), now)
    except AssayError as error:
        raise RunNotRecorded(result.run.id, error) from error
    return result


def _read_judged_outcomes(stored: StoredRun, hashes: JudgingHashes | None) -> Iterator[Outcome]:
    """Return the outcomes that a shard has judged, each with the hash of what it was judged by."""

    def find_hash(node: str, check: str) -> str:
        return hashes.of_node(node).get(check, "") if hashes and node else ""

    judged = stored.outcomes(judged_by=find_hash)
    return (outcome for outcome in judged if not outcome.reason.startswith(UNJUDGED_PREFIXES))
