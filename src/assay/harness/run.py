"""A run: pytest over the selected nodes, in shards, with every declared check accounted for, and kept in one file."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from assay.harness.alone import alone
from assay.harness.begun import begun
from assay.harness.cut import cut, how_many, is_through, settle
from assay.harness.declared import Selection
from assay.harness.far import Far, Progress
from assay.harness.finish import UNTOLD, begin, drop, finish
from assay.harness.order import ENDED, WHOLE, Order
from assay.harness.processes import Processes
from assay.harness.reconcile import Due
from assay.harness.shards import NOT_JUDGED, Ended, Shard, Shards
from assay.harness.store.read import Stored
from assay.harness.store.runs import FILE, find
from assay.ledger.store import Ledger
from assay.ledger.where import ASKED, asked_or_there
from assay.model.clock import Clock
from assay.model.errors import Trouble
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, Run

DEADLINE_S = 600.0
"""For one shard."""
LOOK_S, COUNT_S = 0.05, 1.0
NOT_DELIVERED = (UNTOLD, *NOT_JUDGED)


class Interrupted(KeyboardInterrupt):
    """The user ended a run before it was through. `run` is its id; what it has judged is kept."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.run = run


class Unrecorded(Trouble):
    """A run was judged and is kept, but the ledger could not take it. `run` is its id; `resume` records it."""

    def __init__(self, run: str, trouble: Trouble) -> None:
        super().__init__(trouble.what, where=trouble.where, fix=trouble.fix)
        self.run = run


@dataclass(frozen=True)
class RunResult:
    """A run that has ended. Its outcomes are in `stored`, and nowhere else: there may be a million."""

    stored: Stored
    judged: bool = True

    @property
    def run(self) -> Run:
        """What was asked."""
        return self.stored.run

    @cached_property
    def counts(self) -> Counter[str]:
        """How many outcomes of each verdict there are."""
        return self.stored.counts()

    @cached_property
    def deciding(self) -> int:
        """How many outcomes count against their subjects."""
        return self.stored.deciding()

    @property
    def well(self) -> bool:
        """Whether something was judged, nothing failed, and nothing was left unknown, but what is excused."""
        return bool(self.counts.total()) and not self.deciding

    @cached_property
    def missing(self) -> int:
        """How many outcomes stand for what was declared and not delivered."""
        ask = self.stored.connection.execute
        reasons = [number for number, text in ask("SELECT id, text FROM text") if text.startswith(NOT_DELIVERED)]
        query = "SELECT count(*) FROM outcome WHERE reason IN (SELECT value FROM json_each(?))"
        count: int = ask(query, (json.dumps(reasons),)).fetchone()[0]
        return count

    @property
    def whole(self) -> bool:
        """Whether every shard was judged to its end. Where not, the run can be gone on with."""
        return self.stored.about[ENDED] == WHOLE


@dataclass(frozen=True)
class Means:
    """With what runs are carried out: what runs their shards, how long one may take, and who hears how far it is.

    `baseline` is the path or URL of the ledger that holds earlier passes, the fleet's own where none is given.
    """

    shards: Shards = field(default_factory=lambda: Processes(1))
    deadline_s: float = DEADLINE_S
    progress: Callable[[Far], None] | None = None
    baseline: str = ""


def validate(
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
    means: Means | None = None,
) -> RunResult:
    """Judge `nodes` in `phases` (none: all) by the evidence in the folder `evidence`, and record what came out.

    The nodes are cut into shards, as many for each of `jobs` processes. `extra` goes to pytest; what it deselects is
    not missed. `typed` is the selection in the user's words, to be remembered. Raises Trouble where there is nothing to
    run, Unrecorded where the ledger cannot be written, Interrupted on Ctrl-C.
    """
    chosen = tuple(name for name in fleet.nodes if name in set(nodes))
    due = Due.of(Selection(fleet, chosen), phases)
    if not len(due):
        raise Trouble("no declared check is selected", fix="see specs/checks for the checks, their phases and subjects")
    run = begun(fleet, chosen, phases, clock.now())
    file = reports.resolve() / "runs" / run.id / FILE
    file.parent.mkdir(parents=True)
    with alone(file.parent):
        shards = how_many(len(chosen), len(due), jobs, extra)
        order = Order.given(fleet, run, evidence.resolve(), extra, shards, typed)
        begin(file, order).replace(file)
        _carry_out(fleet, order, due, file, means or Means(Processes(jobs)))
        return _recorded(file, ledger, clock)


def resume(
    fleet: Fleet,
    name: str,
    *,
    reports: Path,
    ledger: Ledger | None,
    clock: Clock,
    jobs: int = 1,
    means: Means | None = None,
) -> RunResult:
    """Go on with a run that was killed, interrupted, or that lost a shard; what was judged is not judged again.

    `name` is its id, how that begins, `last`, `last~1`, …. Raises Trouble where the specs, suites or evidence are
    others than the run began with, Interrupted on Ctrl-C.
    """
    file = find(reports.resolve(), name)
    with alone(file.parent):
        with Stored.open(file) as stored:
            order, lost = Order.of(stored), _lost(stored)
            whole = stored.about.get(ENDED) == WHOLE
        if whole:
            drop(file.parent)
            return replace(_recorded(file, ledger, clock), judged=False)
        order.must_still_hold(fleet)
        due = Due.of(Selection(fleet, order.run.nodes), order.run.phases)
        _carry_out(fleet, order, due, file, means or Means(Processes(jobs)))
        return _recorded(file, ledger, clock, lost)


def _carry_out(fleet: Fleet, order: Order, due: Due, file: Path, means: Means) -> None:
    shards = list(cut(fleet, order, file.parent, _environment(fleet, means.baseline)))
    through = [Ended(shard) for shard in shards if is_through(shard)]
    left = [shard for shard in shards if not is_through(shard)]
    try:
        ended = [*through, *_judged(left, through, due, means)]
    except KeyboardInterrupt:
        raise Interrupted(order.run.id) from None
    finally:
        means.shards.stop()
    finish(fleet, order, sorted(ended, key=lambda one: one.shard.number), file)


def _judged(left: Sequence[Shard], through: Sequence[Ended], due: Due, means: Means) -> Iterator[Ended]:
    """Yield each shard when it has ended, and tell how far all are."""
    far, waiting, counted = Progress(due), len(left), 0.0
    over = [one.shard for one in through]
    means.shards.start(left, means.deadline_s)
    while waiting:
        ended = means.shards.look()
        for one in ended:
            if not one.how:
                settle(one.shard)
            yield one
        waiting -= len(ended)
        over += [one.shard for one in ended]
        if means.progress and (over or time.monotonic() - counted > COUNT_S):
            means.progress(far.look(means.shards.running(), over))
            over, counted = [], time.monotonic()
        if waiting and not ended:
            time.sleep(LOOK_S)


def _recorded(file: Path, ledger: Ledger | None, clock: Clock, lost: Collection[tuple[str, str]] = ()) -> RunResult:
    """Return a run that has ended, recorded in the ledger.

    What was lost or late says nothing of its node, and is told to the ledger once it is judged, as a run of its own.
    """
    result, now = RunResult(Stored.open(file)), clock.now()
    try:
        if ledger is not None and not ledger.record(result.run, _judged_of(result.stored), now) and lost:
            again = replace(result.run, id=f"{result.run.id}+{now:%Y%m%dT%H%M%S}", at=now.isoformat())
            ledger.record(again, (one for one in _judged_of(result.stored) if (one.check, one.subject) in lost), now)
    except Trouble as trouble:
        raise Unrecorded(result.run.id, trouble) from trouble
    return result


def _judged_of(stored: Stored) -> Iterator[Outcome]:
    return (one for one in stored.outcomes() if not one.reason.startswith(NOT_JUDGED))


def _lost(stored: Stored) -> set[tuple[str, str]]:
    """Return check and subject of what was not judged since its shard was lost or late."""
    errors = stored.outcomes(verdicts=["error"])
    return {(one.check, one.subject) for one in errors if one.reason.startswith(NOT_JUDGED)}


def _environment(fleet: Fleet, baseline: str) -> dict[str, str]:
    """Return what the processes learn by environment, where a URL's password is not shown to everyone."""
    return {ASKED: baseline or asked_or_there(fleet.root / ".assay")}
