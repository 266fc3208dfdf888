"""Reads from the ledger how far the fleet is what its repository declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from assay.decide.drift.comparison import SyncInputs, compare_fleet, list_drift_checks
from assay.decide.drift.differences import ExpectedCheck
from assay.decide.drift.sync_report import SyncReport
from assay.decide.rollouts.rollout_history import ROLLOUTS
from assay.decide.state.node_state import NodeState
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.fabric.design.node_cables import digest_node_cables
from assay.ledger.ledger_reader import read_projection
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.model.gc_pause import pause_gc
from assay.model.node import Node
from assay.model.outcome import CheckStandings
from assay.validate.runs.subjects import list_node_subjects

CHANGED = "-dirty"
"""Follows the commit if files differ from it, as in `git describe --dirty`."""


def read_sync(
    fleet: Fleet,
    ledger: Ledger | None,
    node_states: Mapping[str, NodeState],
    now: datetime,
    nodes: Sequence[str] | None = None,
    checks: ExpectedChecks | None = None,
) -> SyncReport:
    """Return how these nodes (None: all) compare with the fleet's repository; without a ledger, all are unknown.

    `checks` are those of this fleet, for callers that keep them.
    """
    checks = checks or ExpectedChecks(fleet)
    with pause_gc():
        standings = ledger.standings([check.id for check in checks.checks], nodes) if ledger else CheckStandings()
        rollout = list_rolling_nodes(ledger) if ledger else frozenset[str]()
        revision = f"{fleet.commit}{CHANGED if fleet.dirty else ''}" if fleet.commit else ""
        inputs = SyncInputs(fleet, node_states, standings, checks, revision, now, rollout)
        return compare_fleet(inputs, nodes)


def list_rolling_nodes(ledger: Ledger) -> frozenset[str]:
    """Return the nodes of the rollout that has not ended of which nothing proves that they have the change."""
    active = read_projection(ledger, ROLLOUTS).find_active()
    return active.unproven if active else frozenset()


class ExpectedChecks:
    """The checks of drift that each node needs. `hashes` are those of this fleet, for callers that keep them."""

    def __init__(self, fleet: Fleet, hashes: JudgingHashes | None = None) -> None:
        self._fleet = fleet
        self._hashes = hashes or JudgingHashes(fleet, digest_node_cables)
        self.checks = list_drift_checks(fleet)
        self._lines = {
            check.id: fleet.lines.get((f"CheckCatalog/{name}", f"checks.{number}"), "")
            for name, catalog in fleet.check_catalogs.items()
            for number, check in enumerate(catalog.checks)
        }
        self._known: dict[tuple[str, frozenset[str], str], tuple[ExpectedCheck, ...]] = {}

    def of_node(self, node: Node) -> tuple[ExpectedCheck, ...]:
        """Return the checks of a node, with its parts that they judge. Nodes of one kind and profile share them."""
        key = (node.spec, self._fleet.parts_of(node.name), node.profile)
        if key not in self._known:
            self._known[key] = tuple(self._list_checks(node))
        return self._known[key]

    def find_own_hash(self, check: str, node: Node) -> str:
        """Return what a check must have been judged by on a node, where nodes of a spec do not share that."""
        return self._hashes.of_check(check, node.name)

    def _list_checks(self, node: Node) -> list[ExpectedCheck]:
        expected = []
        has = self._fleet.parts_of(node.name)
        for check in (check for check in self.checks if not check.find_lacking(has)):
            parts = frozenset(subject.part for subject in list_node_subjects(self._fleet, node.name, check.subject))
            shared = self._hashes.is_shared(check.id)
            judged_by = self._hashes.of_check(check.id, node.name) if shared else None
            expected.append(ExpectedCheck(check, parts, judged_by, where=self._find_place(check.id, node)))
        return expected

    def _find_place(self, check: str, node: Node) -> str:
        """Return the line of the one value of the spec that a check reads, or of its parent; else the check's own."""
        path = self._hashes.find_only_path(check)
        while path and (f"NodeSpec/{node.spec}", path) not in self._fleet.lines:
            path = path.rpartition(".")[0]
        return self._fleet.lines[f"NodeSpec/{node.spec}", path] if path else self._lines[check]
