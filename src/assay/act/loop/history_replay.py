"""Reads what a site has stored, and lets two versions of its specs and suites judge it: evidence, ledger, last run."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from assay.act.loop.plan_inputs import load_folder_revision
from assay.decide.plan.backtest import BACKTEST_DAYS, StateTimeline
from assay.decide.plan.history_replay import HistoryReplay, make_recorded_documents
from assay.decide.plan.inputs import FleetRevision, HistoryReport
from assay.decide.state.node_projection import project_node_states
from assay.decide.state.node_state import NodeState
from assay.declare.starter.upgrade_plan import UpgradePlan
from assay.ledger.location import read_all_entries
from assay.ledger.runs.reader import StoredRun, list_runs
from assay.ledger.runs.run_manifest import PYTEST_SETTINGS
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.outcome import RecordedOutcome
from assay.model.text.lists import format_count
from assay.model.timestamps import parse_time
from assay.observe.evidence_store import EvidenceStore
from assay.validate.results.run_comparison import RunComparison
from assay.validate.runs.rejudge import COMMIT_FOLDERS, WORKING_FOLDER, rejudge_run

MOST_DOCUMENTS = 10_000
"""The documents that are read, newest first: on one core, each takes both versions some hundredths of a second."""


@frozen
class StoredHistory:
    """What a site has stored until `now`: its ledger, its evidence, and the runs in the folder `reports`."""

    ledger: Path | str
    evidence: EvidenceStore
    reports: Path
    now: datetime


def replay_stored_history(
    root: Path, rev: str, before: FleetRevision, after: FleetRevision, stored: StoredHistory
) -> HistoryReport | None:
    """Return what `after` would have done otherwise with the stored history; None if both judge alike.

    `rev` is the commit of `after` in `root`, "" for the folder as it is.
    """
    judges_alike = before.reads == after.reads and before.checks == after.checks
    if judges_alike and before.catalog == after.catalog:
        return None
    since, entries = stored.now - timedelta(days=BACKTEST_DAYS), read_all_entries(stored.ledger) or []
    states = project_node_states(entries)
    replay, missing = HistoryReplay(before, after, states, StateTimeline(entries)), list[str]()
    for state in states.values():
        for document in make_recorded_documents(state, since):
            replay.read_document(document)
    digests = stored.evidence.list_since(since.timestamp())
    for digest in digests[:MOST_DOCUMENTS]:
        try:
            replay.read_document(stored.evidence.get(digest))
        except AssayError as error:
            missing.append(f"not read: {error}")
    if left := len(digests[MOST_DOCUMENTS:]):
        missing.append(f"the {format_count(left, 'oldest document')} of that time were not read")
    outcomes = 0
    if not judges_alike:
        try:
            outcomes = _judge_last_run(replay, missing, root, rev, stored)
        except AssayError as error:
            missing.append(f"the last run was not judged again: {error.what}")
    proof = HealthProofs(states, stored.ledger)
    closed, lost = replay.compare(proof.is_healthy)
    return HistoryReport(BACKTEST_DAYS, len(digests[:MOST_DOCUMENTS]), outcomes, closed, lost, tuple(missing))


def replay_upgrade(plan: UpgradePlan, root: Path, stored: StoredHistory) -> tuple[HistoryReport | None, str]:
    """Return the report of an upgrade that is not written yet, and how it breaks the policy's bound, "" if it does not.

    Where both sides changed a file, the new version's text is taken. Raises AssayError if the files as they are now
    have mistakes.
    """
    before = load_folder_revision(root)
    with tempfile.TemporaryDirectory(prefix="assay-upgrade-") as scratch:
        copied = Path(scratch)
        for name in COMMIT_FOLDERS:
            shutil.copytree(root / name, copied / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in filter(lambda name: (root / name).is_file(), PYTEST_SETTINGS):
            shutil.copy(root / name, copied / name)
        for change in plan.changes:
            if change.old_path:
                (copied / change.old_path).unlink(missing_ok=True)
            text = (change.theirs or change.before) if change.status == "conflict" else change.after
            if text is None:
                (copied / change.path).unlink(missing_ok=True)
            else:
                (copied / change.path).parent.mkdir(parents=True, exist_ok=True)
                (copied / change.path).write_bytes(text)
        try:
            after = load_folder_revision(copied)
        except AssayError as error:
            return HistoryReport(BACKTEST_DAYS, 0, 0, (), (), (f"not asked: {error.what}",)), ""
        report = replay_stored_history(copied, "", before, after, stored)
    excess = report.find_excess(after.policy.rollouts.history) if report else ()
    return report, "; ".join(f"{reason} (rollouts.history.{name})" for name, reason in excess)


def _judge_last_run(replay: HistoryReplay, missing: list[str], root: Path, rev: str, stored: StoredHistory) -> int:
    """Judge the newest run by the new suites, and return how many of its outcomes they give otherwise."""
    runs = list_runs(stored.reports)
    if not runs:
        missing.append("no run is stored, so nothing says what the new checks would have said")
        return 0
    with (
        rejudge_run(root, runs[-1], stored.evidence.folder, rev or WORKING_FOLDER, ledger=str(stored.ledger)) as judged,
        RunComparison(judged.old, judged.new) as comparison,
    ):
        changed = {(each.check, each.subject): each for each in comparison.changes("new_failure", "fixed")}
        if unknown := comparison.deciding["newly_unknown"] + comparison.deciding["vanished"]:
            missing.append(f"{format_count(unknown, 'outcome')} of the last run would no longer be known")
        by_node: dict[str, tuple[list[RecordedOutcome], list[RecordedOutcome]]] = defaultdict(lambda: ([], []))
        for side, path in enumerate((judged.old, judged.new)):
            with StoredRun.open(path) as run:
                checks, subjects = {key[0] for key in changed}, {key[1] for key in changed}
                for each in run.outcomes(verdicts=["fail"], checks=checks, subjects=subjects) if changed else ():
                    if (each.check, each.subject) in changed and not each.known and not each.observed:
                        by_node[each.node][side].append(RecordedOutcome(run.run.id, run.run.at, each))
        for name, outcomes in by_node.items():
            replay.read_outcomes(name, outcomes)
    return len(changed)


class HealthProofs:
    """Says from the newest outcomes of a node whether it was proven healthy after a time, with no repair since."""

    def __init__(self, states: Mapping[str, NodeState], ledger: Path | str) -> None:
        self._states, self._ledger = states, ledger
        self._newest: dict[str, list[RecordedOutcome]] = {}

    def is_healthy(self, name: str, since: str) -> bool:
        """Whether checks of the node passed after `since`, and none failed."""
        if any(repair.at > since for repair in self._states[name].repairs):
            return False
        later = [each for each in self._read(name) if parse_time(each.measured_at) > parse_time(since)]
        verdicts = {each.outcome.verdict for each in later if not each.outcome.known and not each.outcome.observed}
        return "pass" in verdicts and "fail" not in verdicts

    def _read(self, name: str) -> list[RecordedOutcome]:
        if not self._newest:
            ledger = Ledger.open_for_reading(self._ledger)
            try:
                for recorded in ledger.latest():
                    self._newest.setdefault(recorded.outcome.node, []).append(recorded)
            finally:
                ledger.close()
        return self._newest.get(name, [])
