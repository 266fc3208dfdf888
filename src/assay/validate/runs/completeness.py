"""Holds a run to what is declared: every check × subject ends in exactly one outcome.

Counts how far a run is, by pool, and merges its shards into one file, with an error for whatever a shard did not
deliver.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from assay.ledger.runs.reader import ENDED_IN_PART, ENDED_KEY, ENDED_WHOLE, INFLUENCES_KEY, StoredRun
from assay.ledger.runs.run_manifest import RunManifest
from assay.ledger.runs.schema import open_writable, transaction
from assay.ledger.runs.writer import OutcomeWriter, merge_run_files, pack_run_file
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome
from assay.model.specs.check_catalog import CheckDeclaration
from assay.validate.judging.session_outcome_file import delete_run_file, merge_worker_files
from assay.validate.judging.unjudged_checks import UnjudgedReasons, locate_note
from assay.validate.runs.sharding import EndedShard, RunShard
from assay.validate.runs.subjects import NodeSelection, list_declared_checks, list_lacking

NodeOfSubject = Mapping[str, str]
"""The node of each subject ("" for racks and fabrics), by the subject's id."""
NOT_DELIVERED_REASON = "no outcome was delivered: no test of that name ran"


@dataclass(frozen=True)
class DueOutcomes:
    """The outcomes that a selection must deliver: its checks, and the subjects of each, by its id."""

    checks: tuple[CheckDeclaration, ...]
    subjects: Mapping[str, NodeOfSubject]

    @classmethod
    def of_selection(cls, selection: NodeSelection, phases: Collection[str]) -> DueOutcomes:
        """Return what a selection must deliver in these phases (none: in all)."""
        checks = tuple(list_declared_checks(selection.fleet, phases))
        known: dict[tuple[str, frozenset[str]], NodeOfSubject] = {}  # checks share what is due on the same subjects
        subjects = {}
        for check in checks:
            scope = (check.subject, frozenset(list_lacking(selection.fleet, check)))
            if scope not in known:
                known[scope] = {str(subject): node for subject, node in selection.due_subjects(check)}
            subjects[check.id] = known[scope]
        return cls(checks, subjects)

    def __len__(self) -> int:
        return sum(len(self.subjects[check.id]) for check in self.checks)


@dataclass(frozen=True)
class DeliveryGaps:
    """Differences between declared and delivered outcomes: subject ids by check, and where each is not declared."""

    missing: Mapping[str, Collection[str]]
    undeclared: Mapping[str, tuple[Collection[str], str]]

    def __bool__(self) -> bool:
        return bool(self.missing or self.undeclared)


def find_delivery_gaps(due: DueOutcomes, stored: StoredRun) -> DeliveryGaps:
    """Compare what is due with what a file holds. What the user's options left out is not missing."""
    delivered, left_out = stored.judged_subjects(), stored.left_out_subjects()
    missing: dict[str, Collection[str]] = {}
    undeclared: dict[str, tuple[Collection[str], str]] = {}
    for check in due.checks:
        judged = delivered.pop(check.id, set())
        subjects = due.subjects[check.id]
        expected = (subject for subject in subjects if subject not in left_out.get(check.id, ()))
        if absent := [subject for subject in expected if subject not in judged]:
            missing[check.id] = absent
        if others := judged - subjects.keys():
            undeclared[check.id] = (others, "for this subject")
    undeclared |= {check: (judged, "by any CheckCatalog") for check, judged in delivered.items()}
    return DeliveryGaps(missing, undeclared)


def make_gap_errors(due: DueOutcomes, gaps: DeliveryGaps, stored: StoredRun, reason: str) -> Iterator[Outcome]:
    """Yield an error for each difference. `reason` says why outcomes are missing of which the file says nothing."""
    known = UnjudgedReasons(stored.about)
    for check, (subjects, where) in gaps.undeclared.items():
        for outcome in stored.outcomes(checks=[check], subjects=subjects):
            result = f"{outcome.verdict}{': ' if outcome.reason else ''}{outcome.reason}"
            problem = f"the check is not declared {where}; declare it in specs/checks (its result was {result})"
            yield replace(outcome, verdict="error", reason=problem)
    for declared in due.checks:
        nodes = due.subjects[declared.id]
        for subject in gaps.missing.get(declared.id, ()):
            yield _missing_error(declared, subject, nodes[subject], known.find(declared.id, subject) or reason)


def _missing_error(check: CheckDeclaration, subject: str, node: str, reason: str) -> Outcome:
    return Outcome(
        check=check.id,
        subject=subject,
        node=node,
        verdict="error",
        reason=reason,
        fault=check.fault,
        phases=tuple(check.phases),
        active=check.active,
        observed=check.is_observe_only,
    )


OutcomesByPool = Mapping[str, tuple[int, int]]
"""Outcomes delivered and due, by pool (those of fabrics under `fabric`)."""
_DELIVERED_BY_POOL = """
SELECT substr(s.name, 1, instr(s.name, '/') - 1), sum(o.n)
FROM (SELECT subject, count(*) AS n FROM outcome GROUP BY subject) o JOIN subject s ON s.id = o.subject GROUP BY 1
"""


class RunProgress:
    """Counts delivered outcomes from the shards' own files."""

    def __init__(self, due: DueOutcomes) -> None:
        self._due = count_due_by_pool(due)
        self._of_ended = Counter[str]()
        self._of_running = dict[int, Counter[str]]()

    def count(self, running: Sequence[RunShard], newly_ended: Sequence[RunShard] = ()) -> OutcomesByPool:
        """Return the progress of all pools. The file of an ended shard is read once."""
        for shard in newly_ended:
            self._of_running.pop(shard.number, None)
            self._of_ended += _count_delivered(shard)
        for shard in running:
            self._of_running[shard.number] = _count_delivered(shard)
        delivered = sum(self._of_running.values(), self._of_ended)
        return {pool: (delivered[pool], due) for pool, due in self._due.items()}


def count_due_by_pool(due: DueOutcomes) -> Counter[str]:
    """Return how many outcomes are due of each pool."""
    total, known = Counter[str](), dict[int, Counter[str]]()
    for subjects in due.subjects.values():
        if id(subjects) not in known:
            known[id(subjects)] = Counter(subject.partition("/")[0] for subject in subjects)
        total.update(known[id(subjects)])
    return total


def _count_delivered(shard: RunShard) -> Counter[str]:
    """Return a shard's outcomes by pool; none while its file cannot be read, as on another machine."""
    try:
        with StoredRun.open(shard.store) as stored:
            return Counter(dict(stored.connection.execute(_DELIVERED_BY_POOL)))
    except (AssayError, sqlite3.Error):
        return Counter()


def write_empty_run(file: Path, manifest: RunManifest, facts: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Write a run without outcomes to a file beside `file`, which it can replace atomically, and return its path."""
    new = file.with_name("new.sqlite")
    delete_run_file(new)
    OutcomeWriter(new, manifest.run, {**manifest.as_about(), **facts}).close()
    return new


def merge_shards(fleet: Fleet, manifest: RunManifest, ended: Sequence[EndedShard], file: Path) -> None:
    """Write the complete run to `file` atomically. Shard files stay while any shard can be resumed."""
    how = ENDED_WHOLE if all(not shard.failure for shard in ended) else ENDED_IN_PART
    for shard in ended:
        merge_worker_files(shard.shard.store)
    new = write_empty_run(file, manifest, {ENDED_KEY: how, **_read_influences(ended)})
    merge_run_files(new, [shard.shard.store for shard in ended])
    for shard in ended:
        selection = NodeSelection(fleet, manifest.run.nodes, shard.shard.number, manifest.shards)
        _write_gap_errors(new, manifest, DueOutcomes.of_selection(selection, manifest.run.phases), shard)
    pack_run_file(new)
    new.replace(file)
    if how == ENDED_WHOLE:
        delete_shard_files(file.parent)


def _read_influences(ended: Sequence[EndedShard]) -> dict[str, str]:
    """Return the entry of `about` for what influenced the shards; the same for all that came to a check."""
    for shard in ended:
        with StoredRun.open(shard.shard.store) as stored:
            if INFLUENCES_KEY in stored.about:
                return {INFLUENCES_KEY: stored.about[INFLUENCES_KEY]}
    return {}


def delete_shard_files(home: Path) -> None:
    """Delete the files that only a resumed run needs; the logs stay."""
    for store in home.glob("share-*.sqlite"):
        delete_run_file(store)
        locate_note(store).unlink(missing_ok=True)
    (home / "nodes").unlink(missing_ok=True)


def _write_gap_errors(new: Path, manifest: RunManifest, due: DueOutcomes, ended: EndedShard) -> None:
    """Write an error for each difference between what was due of a shard and what it delivered."""
    with StoredRun.open(ended.shard.store) as stored:
        gaps = find_delivery_gaps(due, stored)
        if not gaps:
            return
        _delete_undeclared(new, gaps)
        writer = OutcomeWriter(new, manifest.run)
        for outcome in make_gap_errors(due, gaps, stored, ended.failure or NOT_DELIVERED_REASON):
            writer(outcome)
        writer.close()


def _delete_undeclared(new: Path, gaps: DeliveryGaps) -> None:
    """Delete undeclared outcomes, so that their errors can be written."""
    connection = open_writable(new)
    with transaction(connection):
        for check, (subjects, _) in gaps.undeclared.items():
            connection.execute(
                """DELETE FROM outcome WHERE check_ IN (SELECT id FROM check_ WHERE name = ?)
                AND subject IN (SELECT id FROM subject WHERE name IN (SELECT value FROM json_each(?)))""",
                (check, json.dumps(list(subjects))),
            )
    connection.close()
