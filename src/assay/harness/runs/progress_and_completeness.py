"""What was declared against what was delivered: every check × subject ends in exactly one outcome.

How far a run is, by pool.

Makes one file of a run's shards: their outcomes, and an error for whatever is declared and was not delivered.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from assay.harness.judging.outcome_delivery import delete_run_file, merge_worker_files
from assay.harness.runs.sharding import EndedShard, RunShard
from assay.harness.selection.declared_checks import NodeSelection, list_declared_checks
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.results.store.reader import StoredRun, read_judged_subjects, read_left_out_subjects
from assay.results.store.run_manifest import ENDED_IN_PART, ENDED_KEY, ENDED_WHOLE, RunManifest
from assay.results.store.schema import open_writable, transaction
from assay.results.store.writer import OutcomeWriter, merge_run_files

NodeOfSubject = Mapping[str, str]
"""Ids of subjects, each with the node that it is or belongs to ("" for racks and fabrics)."""


@dataclass(frozen=True)
class DueOutcomes:
    """What a selection must deliver: its checks, and its subjects by kind."""

    checks: tuple[CheckDeclaration, ...]
    subjects: Mapping[str, NodeOfSubject]

    @classmethod
    def of_selection(cls, selection: NodeSelection, phases: Collection[str]) -> DueOutcomes:
        """Return what is due of a selection in these phases (none: in all)."""
        found = tuple(list_declared_checks(selection.fleet, phases))
        kinds: set[str] = {check.subject for check in found}
        subjects = {kind: {str(one): node for one, node in selection.subjects(kind)} for kind in kinds}
        return cls(found, subjects)

    def __len__(self) -> int:
        return sum(len(self.subjects[check.subject]) for check in self.checks)


@dataclass(frozen=True)
class DeliveryGaps:
    """Where the delivered are not the declared: ids of subjects by that of the check. Of the undeclared, also why."""

    missing: Mapping[str, Collection[str]]
    undeclared: Mapping[str, tuple[Collection[str], str]]

    def __bool__(self) -> bool:
        return bool(self.missing or self.undeclared)


def find_delivery_gaps(due: DueOutcomes, stored: StoredRun) -> DeliveryGaps:
    """Compare what is due with what a file holds. What the user left out is not missed."""
    delivered, spared = read_judged_subjects(stored), read_left_out_subjects(stored)
    missing: dict[str, Collection[str]] = {}
    undeclared: dict[str, tuple[Collection[str], str]] = {}
    for check in due.checks:
        found = delivered.pop(check.id, set())
        subjects = due.subjects[check.subject]
        if absent := [one for one in subjects if one not in found and one not in spared.get(check.id, ())]:
            missing[check.id] = absent
        if others := found - subjects.keys():
            undeclared[check.id] = (others, "for this subject")
    undeclared |= {check: (found, "by any CheckCatalog") for check, found in delivered.items()}
    return DeliveryGaps(missing, undeclared)


def make_gap_errors(due: DueOutcomes, found: DeliveryGaps, stored: StoredRun, why: str) -> Iterator[Outcome]:
    """Yield an error for each difference. `why` says what became of what was not delivered."""
    for check, (subjects, where) in found.undeclared.items():
        for outcome in stored.outcomes(checks=[check], subjects=subjects):
            yield _undeclared_error(outcome, f"is not declared {where}; declare it in specs/checks")
    for declared in due.checks:
        nodes = due.subjects[declared.subject]
        for subject in found.missing.get(declared.id, ()):
            yield _missing_error(declared, subject, nodes[subject], why)


def _undeclared_error(outcome: Outcome, what: str) -> Outcome:
    said = f" (it said {outcome.verdict}{': ' if outcome.reason else ''}{outcome.reason})"
    return replace(outcome, verdict="error", reason=f"the check {what}{said}")


def _missing_error(check: CheckDeclaration, subject: str, node: str, why: str) -> Outcome:
    return Outcome(
        check=check.id,
        subject=subject,
        node=node,
        verdict="error",
        reason=why,
        fault=check.fault,
        phases=tuple(check.phases),
        active=check.active,
        observed=check.is_observe_only,
    )


OutcomesByPool = Mapping[str, tuple[int, int]]
"""Outcomes that are there, and those that are due, by pool (of fabrics: by `fabric`)."""
_DONE = """
SELECT substr(s.name, 1, instr(s.name, '/') - 1), sum(o.n)
FROM (SELECT subject, count(*) AS n FROM outcome GROUP BY subject) o JOIN subject s ON s.id = o.subject GROUP BY 1
"""


class RunProgress:
    """Counts what is done of what is due, from the shards' own files."""

    def __init__(self, due: DueOutcomes) -> None:
        self._due, self._over, self._going = count_due_by_pool(due), Counter[str](), dict[int, Counter[str]]()

    def count(self, running: Sequence[RunShard], over: Sequence[RunShard] = ()) -> OutcomesByPool:
        """Return how far all is. A shard is over once, and is never read again."""
        for shard in over:
            self._going.pop(shard.number, None)
            self._over += _count_done(shard)
        for shard in running:
            self._going[shard.number] = _count_done(shard)
        done = sum(self._going.values(), self._over)
        return {pool: (done[pool], due) for pool, due in self._due.items()}


def count_due_by_pool(due: DueOutcomes) -> Counter[str]:
    """Return how many outcomes are due of each pool."""
    found, checks = Counter[str](), Counter(check.subject for check in due.checks)
    for kind, times in checks.items():
        pools = Counter(subject.partition("/")[0] for subject in due.subjects[kind])
        found.update({pool: count * times for pool, count in pools.items()})
    return found


def _count_done(shard: RunShard) -> Counter[str]:
    """Return what is there of a shard; nothing where its file cannot be read just now, as on another machine."""
    try:
        with StoredRun.open(shard.store) as stored:
            return Counter(dict(stored.connection.execute(_DONE)))
    except (AssayError, sqlite3.Error):
        return Counter()


NOT_DELIVERED_REASON = "no outcome was delivered: no test of that name ran"


def write_empty_run(file: Path, order: RunManifest, more: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Write a run without outcomes beside `file`, which it can replace at once, and return where."""
    fresh = file.with_name("new.sqlite")
    delete_run_file(fresh)
    OutcomeWriter(fresh, order.run, {**order.as_about(), **more}).close()
    return fresh


def merge_shards(fleet: Fleet, order: RunManifest, ended: Sequence[EndedShard], file: Path) -> None:
    """Write the run to `file`, whole or not at all, and drop the shards' files unless one can be gone on with."""
    how = ENDED_WHOLE if all(not one.failure for one in ended) else ENDED_IN_PART
    fresh = write_empty_run(file, order, {ENDED_KEY: how})
    for one in ended:
        merge_worker_files(one.shard.store)
    merge_run_files(fresh, [one.shard.store for one in ended])
    for one in ended:
        share = NodeSelection(fleet, order.run.nodes, one.shard.number, order.shards)
        _write_missing_errors(fresh, order, DueOutcomes.of_selection(share, order.run.phases), one)
    OutcomeWriter(fresh, order.run).close()  # which makes one file of it
    fresh.replace(file)
    if how == ENDED_WHOLE:
        delete_shard_files(file.parent)


def delete_shard_files(home: Path) -> None:
    """Delete what only a run that goes on needs; the logs stay."""
    for share in home.glob("share-*.sqlite"):
        delete_run_file(share)
    (home / "nodes").unlink(missing_ok=True)


def _write_missing_errors(fresh: Path, order: RunManifest, due: DueOutcomes, one: EndedShard) -> None:
    """Put an error in the place of each difference between a shard's due and what it delivered."""
    with StoredRun.open(one.shard.store) as share:
        found = find_delivery_gaps(due, share)
        if not found:
            return
        _delete_undeclared(fresh, found)
        writer = OutcomeWriter(fresh, order.run)
        for outcome in make_gap_errors(due, found, share, one.failure or NOT_DELIVERED_REASON):
            writer(outcome)
        writer.close()


def _delete_undeclared(fresh: Path, found: DeliveryGaps) -> None:
    """Take out what was delivered and not declared, so that its error can be written."""
    connection = open_writable(fresh)
    with transaction(connection):
        for check, (subjects, _) in found.undeclared.items():
            connection.execute(
                """DELETE FROM outcome WHERE check_ IN (SELECT id FROM check_ WHERE name = ?)
                AND subject IN (SELECT id FROM subject WHERE name IN (SELECT value FROM json_each(?)))""",
                (check, json.dumps(list(subjects))),
            )
    connection.close()
