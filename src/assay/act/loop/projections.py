"""Node states and newest outcomes of a ledger, kept warm for the whole process: each entry is folded once.

Also since when, and why, nobody knows which jobs a node has. The controller writes that file when something changes;
`assay status` and `assay explain` read it. It may be deleted.

    .assay/unknown-jobs.json
      NODE: {since: ISO 8601 UTC, reason}
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from assay.decide.state.node_projection import NODE_STATES
from assay.decide.state.node_state import NodeState
from assay.model.facts import fact
from assay.model.outcome import RecordedOutcome

if TYPE_CHECKING:
    from assay.adapters.scheduler import StatusReadings
    from assay.ledger.store import Ledger


OutcomesByNode = dict[str, tuple[RecordedOutcome, ...]]


def read_node_states(ledger: Ledger) -> Mapping[str, NodeState]:
    """Return the current state of every node that was ever enrolled. Safe for threads."""
    from assay.ledger.ledger_reader import read_projection  # `assay status` reads only the file, and needs no database

    return read_projection(ledger, NODE_STATES).node_states()


class LatestOutcomeCache:
    """The newest outcomes of nodes that are read again and again: read anew once a later run has judged the node.

    Safe for threads.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock = ledger, Lock()
        self._cached: OutcomesByNode = {}
        self._as_of = -1

    def get(self, nodes: Collection[str], keep: Collection[str] = ()) -> Mapping[str, tuple[RecordedOutcome, ...]]:
        """Return the newest outcome of each check × subject of these nodes; cache those of the nodes `keep`."""
        head = self._ledger.outcomes_head()
        with self._lock:
            if head > self._as_of:
                judged = self._ledger.find_judged_nodes(self._as_of) if self._cached else ()
                self._cached = {name: outcomes for name, outcomes in self._cached.items() if name not in judged}
                self._as_of = head
            known = self._cached if head == self._as_of else {}
            missing = [name for name in nodes if name not in known]
            known = {name: known[name] for name in nodes if name in known}
        known |= read_latest_outcomes(self._ledger, missing)
        with self._lock:
            if head >= self._as_of:
                self._as_of, self._cached = head, {name: known[name] for name in keep if name in known}
        return known


def read_latest_outcomes(ledger: Ledger, names: Collection[str]) -> OutcomesByNode:
    """Return the newest outcome of each check × subject of these nodes."""
    recorded_by_node: dict[str, list[RecordedOutcome]] = {name: [] for name in names}
    for recorded in ledger.latest(nodes=names) if names else ():
        recorded_by_node[recorded.outcome.node].append(recorded)
    return {name: tuple(outcomes) for name, outcomes in recorded_by_node.items()}


FILE_NAME = "unknown-jobs.json"
NOT_KNOWN_THERE = "its scheduler does not know this node"


@fact
class UnknownJobs:
    """Why assay does not know the jobs on a node, so that nothing that would end jobs is done."""

    since: str
    """When the scheduler's answer was first missing: ISO 8601 UTC."""
    reason: str
    """What the scheduler, or the way to it, said last."""


def read_unknown_jobs(folder: Path) -> dict[str, UnknownJobs]:
    """Return the nodes whose jobs are not known, by name. `folder` is the fleet's `.assay`."""
    try:
        content = json.loads((folder / FILE_NAME).read_text())
        return {node: UnknownJobs(**known) for node, known in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):  # none, or half of one: the next pass writes it anew
        return {}


def record_unknown_jobs(folder: Path, readings: StatusReadings, now: str, *, is_whole: bool) -> None:
    """Write down which nodes of a reading have unknown jobs.

    If the reading `is_whole`, nodes outside of it are forgotten: nothing is to be decided about them.
    """
    known = read_unknown_jobs(folder)
    unread = {name: readings.errors.get(name, NOT_KNOWN_THERE) for name in readings.nodes - readings.statuses.keys()}
    kept = {} if is_whole else {name: jobs for name, jobs in known.items() if name not in readings.nodes}
    changed = {name: UnknownJobs(known[name].since if name in known else now, unread[name]) for name in sorted(unread)}
    if kept | changed != known:
        _write(folder, kept | changed)


def _write(folder: Path, unknown: Mapping[str, UnknownJobs]) -> None:
    """Replace the file at once. A full disk must not stop a pass: what it decides does not need the file."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"{FILE_NAME}.{os.getpid()}"
        draft.write_text(json.dumps({node: asdict(jobs) for node, jobs in unknown.items()}, indent=1))
        draft.replace(folder / FILE_NAME)
