"""Reads what a site has stored, and lets two versions of its specs and suites judge it: evidence, ledger, runs."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
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
MOST_RUNS = 12
"""The runs that are judged again, newest first. A controller's newest run may be of one node that came back."""


@frozen
class StoredHistory:
    """What a site or its lab has stored until `now`: its ledger, its evidence, and the runs in `reports`."""

    ledger: Path | str
    evidence: EvidenceStore
    reports: Path
    now: datetime
    is_lab: bool = False


def replay_stored_history(
    root: Path, rev: str, before: FleetRevision, after: FleetRevision, stored: StoredHistory
) -> HistoryReport | None:
    """Return what `after` would have done otherwise with the stored history; None if suites and faults are alike.

    `rev` is the commit of `after` in `root`, "" for the folder as it is. What changed limits do, a backtest says.
    """
    judges_alike = before.reads == after.reads and before.checks == after.checks
    if judges_alike and before.catalog == after.catalog:
        return None
    return _replay(root, rev, before, after, stored, has_runs=not judges_alike)


def _replay(
    root: Path, rev: str, before: FleetRevision, after: FleetRevision, stored: StoredHistory, *, has_runs: bool
) -> HistoryReport:
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
    if has_runs and not (runs := _select_runs(stored.reports, since)):
        missing.append("no run of that time is stored, so nothing says what the new checks would have said")
    elif has_runs:
        outcomes = _judge_runs(replay, missing, root, rev, stored, runs)
    proof = HealthProofs(states, stored.ledger)
    closed, lost = replay.compare(proof.is_healthy)
    known = max(since, parse_time(entries[0].at)) if entries else stored.now
    days = float(f"{(stored.now - known) / timedelta(days=1):.3g}")
    return HistoryReport(days, len(digests[:MOST_DOCUMENTS]), outcomes, closed, lost, tuple(missing))


def replay_upgrade(plan: UpgradePlan, root: Path, stored: StoredHistory) -> tuple[HistoryReport | None, str]:
    """Return the report of an upgrade that is not written yet, and how it breaks the policy's bound, "" if it does not.

    It is None where no spec and no suite changes. Where both sides changed a file, the new version's text is taken.
    Raises AssayError if the files as they are now have mistakes.
    """
    touched = {change.path.partition("/")[0] for change in plan.changes if change.status not in ("unchanged", "kept")}
    if not touched & {"specs", "suites"}:
        return None, ""
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
        report = _replay(copied, "", before, after, stored, has_runs=True)
    excess = report.find_excess(before.policy.rollouts.history)  # the new version does not set its own bound
    return report, "; ".join(f"{reason} (rollouts.history.{name})" for name, reason in excess)


def _select_runs(reports: Path, since: datetime) -> list[Path]:
    """Return the newest runs that judged each node in each phase, the oldest of them first."""
    known, selected = set[tuple[str, str]](), list[Path]()
    for file in reversed(list_runs(reports)):
        with StoredRun.open(file) as stored:
            run, is_whole = stored.run, stored.is_complete
        if parse_time(run.at) < since or len(selected) == MOST_RUNS:
            break
        judged = set(product(run.nodes, run.phases))
        if is_whole and judged - known:
            selected.append(file)
            known |= judged
    return selected[::-1]


def _judge_runs(
    replay: HistoryReplay, missing: list[str], root: Path, rev: str, stored: StoredHistory, runs: Sequence[Path]
) -> int:
    """Judge runs by the new suites and specs, and return how many of their outcomes these give otherwise."""
    count, unknown = 0, 0
    for file in runs:
        again = rejudge_run(
            root, file, stored.evidence.folder, rev or WORKING_FOLDER, ledger=str(stored.ledger), is_lab=stored.is_lab
        )
        try:
            with again as judged, RunComparison(judged.old, judged.new) as comparison:
                changes = comparison.deciding
                count += sum(changes[kind] for kind in ("new_failure", "unexcused", "unseen", "fixed"))
                unknown += changes["newly_unknown"] + changes["vanished"]
                sides = [_read_failures(path) for path in (judged.old, judged.new)]
        except AssayError as error:
            missing.append(f"run {file.parent.name} was not judged again: {error.what}")
            continue
        for name in sorted({*sides[0], *sides[1]}):
            replay.read_outcomes(name, (sides[0].get(name, []), sides[1].get(name, [])))
    if unknown:
        missing.append(f"{format_count(unknown, 'outcome')} of the newest runs would no longer be known")
    return count


def _read_failures(path: Path) -> dict[str, list[RecordedOutcome]]:
    """Return by node the failures of a run that nothing excuses."""
    by_node = defaultdict[str, list[RecordedOutcome]](list)
    with StoredRun.open(path) as stored:
        for each in stored.outcomes(verdicts=["fail"]):
            if not each.known and not each.observed:
                by_node[each.node].append(RecordedOutcome(stored.run.id, stored.run.at, each))
    return by_node


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
