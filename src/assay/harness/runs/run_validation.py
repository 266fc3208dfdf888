"""A run: pytest over the selected nodes, in shards, with every declared check accounted for, and kept in one file.

One process at a time works on a run.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from assay.harness.runs.local_processes import LocalProcesses
from assay.harness.runs.progress_and_completeness import (
    NOT_DELIVERED_REASON,
    DueOutcomes,
    OutcomesByPool,
    RunProgress,
    delete_shard_files,
    merge_shards,
    write_empty_run,
)
from assay.harness.runs.sharding import (
    UNJUDGED_PREFIXES,
    EndedShard,
    RunShard,
    ShardRunner,
    count_shards,
    cut_into_shards,
    is_shard_judged,
    mark_shard_judged,
)
from assay.harness.selection.declared_checks import NodeSelection
from assay.ledger.errors import LEDGER_VARIABLE
from assay.ledger.leases_and_locks import hold_file_lock
from assay.ledger.location import locate_existing_ledger
from assay.ledger.store import Ledger
from assay.model.clock import Clock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, SuiteRun
from assay.results.store.reader import StoredRun
from assay.results.store.run_lookup import RUN_FILE, find_run
from assay.results.store.run_manifest import ENDED_KEY, ENDED_WHOLE, RunManifest, create_run


@contextmanager
def hold_run_lock(home: Path) -> Iterator[None]:
    """Hold the lock of the run in `home`; it is let go when this process ends, however.

    Raises AssayError when another process holds it.
    """

    def refuse(holder: str) -> AssayError:
        what = f"process {holder or 'unknown'} is judging run {home.name}"
        return AssayError(what, fix="wait for it, or end it and go on then")

    with hold_file_lock(home / "lock", 0, refuse, note=str(os.getpid())):
        yield
        (home / "lock").unlink(missing_ok=True)


SHARD_DEADLINE_S = 600.0
"""For one shard."""
SHARD_POLL_S, PROGRESS_INTERVAL_S = 0.05, 1.0
UNDELIVERED_REASONS = (NOT_DELIVERED_REASON, *UNJUDGED_PREFIXES)


class RunInterrupted(KeyboardInterrupt):
    """The user ended a run before it was through. `run` is its id; what it has judged is kept."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.run = run


class RunNotRecorded(AssayError):
    """A run was judged and is kept, but the ledger could not take it. `run` is its id; `resume_run` records it."""

    def __init__(self, run: str, error: AssayError) -> None:
        super().__init__(error.what, where=error.where, fix=error.fix)
        self.run = run


@dataclass(frozen=True)
class RunResult:
    """A run that has ended. Its outcomes are in `stored`, and nowhere else: there may be a million."""

    stored: StoredRun
    judged: bool = True

    @property
    def run(self) -> SuiteRun:
        """What was asked."""
        return self.stored.run

    @cached_property
    def counts(self) -> Counter[str]:
        """How many outcomes of each verdict there are."""
        return self.stored.counts()

    @cached_property
    def deciding(self) -> int:
        """How many outcomes count against their subjects."""
        return self.stored.count_deciding()

    @property
    def well(self) -> bool:
        """Whether something was judged, nothing failed, and nothing was left unknown, but what is excused."""
        return bool(self.counts.total()) and not self.deciding

    @cached_property
    def missing(self) -> int:
        """How many outcomes stand for what was declared and not delivered."""
        ask = self.stored.connection.execute
        reasons = [number for number, text in ask("SELECT id, text FROM text") if text.startswith(UNDELIVERED_REASONS)]
        query = "SELECT count(*) FROM outcome WHERE reason IN (SELECT value FROM json_each(?))"
        count: int = ask(query, (json.dumps(reasons),)).fetchone()[0]
        return count

    @property
    def whole(self) -> bool:
        """Whether every shard was judged to its end. Where not, the run can be gone on with."""
        return self.stored.about[ENDED_KEY] == ENDED_WHOLE


@dataclass(frozen=True)
class RunMeans:
    """With what runs are carried out: what runs their shards, how long one may take, and who hears how far it is.

    `baseline` is the path or URL of the ledger that holds earlier passes, the fleet's own where none is given.
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
    typed: str = "",
    means: RunMeans | None = None,
) -> RunResult:
    """Judge `nodes` in `phases` (none: all) by the evidence in the folder `evidence`, and record what came out.

    The nodes are cut into shards, as many for each of `jobs` processes. `extra` goes to pytest; what it deselects is
    not missed. `typed` is the selection in the user's words, to be remembered. Raises AssayError where there is nothing to
    run, Unrecorded where the ledger cannot be written, Interrupted on Ctrl-C.
    """
    chosen = tuple(name for name in fleet.nodes if name in set(nodes))
    due = DueOutcomes.of_selection(NodeSelection(fleet, chosen), phases)
    if not len(due):
        raise AssayError(
            "no declared check is selected", fix="see specs/checks for the checks, their phases and subjects"
        )
    run = create_run(fleet, chosen, phases, clock.now())
    file = reports.resolve() / "runs" / run.id / RUN_FILE
    file.parent.mkdir(parents=True)
    with hold_run_lock(file.parent):
        shards = count_shards(len(chosen), len(due), jobs, extra)
        order = RunManifest.create(fleet, run, evidence.resolve(), extra, shards, typed)
        write_empty_run(file, order).replace(file)
        _run_shards(fleet, order, due, file, means or RunMeans(LocalProcesses(jobs)))
        return _record_in_ledger(file, ledger, clock)


def resume_run(
    fleet: Fleet,
    name: str,
    *,
    reports: Path,
    ledger: Ledger | None,
    clock: Clock,
    jobs: int = 1,
    means: RunMeans | None = None,
) -> RunResult:
    """Go on with a run that was killed, interrupted, or that lost a shard; what was judged is not judged again.

    `name` is its id, how that begins, `last`, `last~1`, …. Raises AssayError where the specs, suites or evidence are
    others than the run began with, Interrupted on Ctrl-C.
    """
    file = find_run(reports.resolve(), name)
    with hold_run_lock(file.parent):
        with StoredRun.open(file) as stored:
            order, lost = RunManifest.read(stored), _read_lost_outcomes(stored)
            whole = stored.about.get(ENDED_KEY) == ENDED_WHOLE
        if whole:
            delete_shard_files(file.parent)
            return replace(_record_in_ledger(file, ledger, clock), judged=False)
        order.require_unchanged(fleet)
        due = DueOutcomes.of_selection(NodeSelection(fleet, order.run.nodes), order.run.phases)
        _run_shards(fleet, order, due, file, means or RunMeans(LocalProcesses(jobs)))
        return _record_in_ledger(file, ledger, clock, lost)


def _run_shards(fleet: Fleet, order: RunManifest, due: DueOutcomes, file: Path, means: RunMeans) -> None:
    shards = list(cut_into_shards(fleet, order, file.parent, _shard_environment(fleet, means.baseline)))
    through = [EndedShard(shard) for shard in shards if is_shard_judged(shard)]
    left = [shard for shard in shards if not is_shard_judged(shard)]
    try:
        ended = [*through, *_collect_ended_shards(left, through, due, means)]
    except KeyboardInterrupt:
        raise RunInterrupted(order.run.id) from None
    finally:
        means.runner.stop()
    merge_shards(fleet, order, sorted(ended, key=lambda one: one.shard.number), file)


def _collect_ended_shards(
    left: Sequence[RunShard], through: Sequence[EndedShard], due: DueOutcomes, means: RunMeans
) -> Iterator[EndedShard]:
    """Yield each shard when it has ended, and tell how far all are."""
    far, waiting, counted = RunProgress(due), len(left), 0.0
    over = [one.shard for one in through]
    means.runner.start(left, means.deadline_s)
    while waiting:
        ended = means.runner.collect_ended()
        for one in ended:
            if not one.failure:
                mark_shard_judged(one.shard)
            yield one
        waiting -= len(ended)
        over += [one.shard for one in ended]
        if means.progress and (over or time.monotonic() - counted > PROGRESS_INTERVAL_S):
            means.progress(far.count(means.runner.list_running(), over))
            over, counted = [], time.monotonic()
        if waiting and not ended:
            time.sleep(SHARD_POLL_S)


def _record_in_ledger(
    file: Path, ledger: Ledger | None, clock: Clock, lost: Collection[tuple[str, str]] = ()
) -> RunResult:
    """Return a run that has ended, recorded in the ledger.

    What was lost or late says nothing of its node, and is told to the ledger once it is judged, as a run of its own.
    """
    result, now = RunResult(StoredRun.open(file)), clock.now()
    try:
        if ledger is not None and not ledger.record(result.run, _read_judged_outcomes(result.stored), now) and lost:
            again = replace(result.run, id=f"{result.run.id}+{now:%Y%m%dT%H%M%S}", at=now.isoformat())
            ledger.record(
                again, (one for one in _read_judged_outcomes(result.stored) if (one.check, one.subject) in lost), now
            )
    except AssayError as error:
        raise RunNotRecorded(result.run.id, error) from error
    return result


def _read_judged_outcomes(stored: StoredRun) -> Iterator[Outcome]:
    return (one for one in stored.outcomes() if not one.reason.startswith(UNJUDGED_PREFIXES))


def _read_lost_outcomes(stored: StoredRun) -> set[tuple[str, str]]:
    """Return check and subject of what was not judged since its shard was lost or late."""
    errors = stored.outcomes(verdicts=["error"])
    return {(one.check, one.subject) for one in errors if one.reason.startswith(UNJUDGED_PREFIXES)}


def _shard_environment(fleet: Fleet, baseline: str) -> dict[str, str]:
    """Return what the processes learn by environment, where a URL's password is not shown to everyone."""
    return {LEDGER_VARIABLE: baseline or locate_existing_ledger(fleet.root / ".assay")}
