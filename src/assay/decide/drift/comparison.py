"""Compares every node with what the repository declares: what differs, is it on its way, what will the policy do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assay.decide.drift.differences import (
    EvidenceWindow,
    ExpectedCheck,
    NodeDifferences,
    SettingLines,
    UnknownReason,
    list_phases,
)
from assay.decide.drift.sync_report import NodeSync, SyncReport, SyncState
from assay.decide.state.node_entry import find_start_state
from assay.decide.state.node_state import NodeState
from assay.model.decision import CONFIGURE
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import CheckStandings, PassCount, StandingFailure
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.lifecycle_policy import PhaseAges, find_max_hours
from assay.model.specs.policy_response import respond_to_class
from assay.model.timestamps import parse_time

APPLYING_ACTIONS = frozenset({"zap"})
"""The actions that bring declared firmware and configuration."""


def is_rolling(node: str, node_state: NodeState | None, applying: Collection[str], rollout: Collection[str]) -> bool:
    """Whether a node is on its way to what is declared.

    It is in a state that applies it (`applying`), or has a decision or an order to go there. Or it is among the nodes
    of a `rollout` that has not proved them yet.
    """
    if node in rollout:
        return True
    if node_state is None:
        return False
    asked, pending = node_state.move_request, node_state.pending
    targets = {node_state.state, pending.to if pending else "", asked.to if asked else ""}
    return not targets.isdisjoint(applying)


class DriftRemedies:
    """The remedies of a fleet's policy. Each is computed once for all nodes that share it."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._policy = fleet, fleet.policy
        self._known: dict[tuple[str, str, str], tuple[str, ...]] = {}

    def describe(self, state: str, profile: str, fault_class: str) -> tuple[str, ...]:
        """Return the remedy of a class in a state, for people; two if it depends on whether jobs use the node."""
        key = (state, profile, fault_class)
        if key not in self._known:
            self._known[key] = tuple(dict.fromkeys(self._list_remedies(*key)))
        return self._known[key]

    def _list_remedies(self, state: str, profile: str, fault_class: str) -> Iterator[str]:
        catalog = self._fleet.fault_catalog
        if state not in self._policy.states or catalog.find_class(fault_class) is None:
            return
        allowed = self._fleet.profiles[profile]
        if not allowed.acts_on_faults:
            yield f"{fault_class}: tracked and never acted on, by its profile {profile}"
            return
        for in_use in (False, True):
            answer = respond_to_class(self._policy, catalog, state, fault_class, in_use)
            where = self._fleet.lines.get((f"LifecyclePolicy/{self._policy.name}", f"faults.{answer.rule}"), "")
            text = str(answer)
            if answer.remedy == CONFIGURE and CONFIGURE not in allowed.actions:
                text = f"noted, ticket: its profile {profile} does not allow {CONFIGURE}"
            yield f"{fault_class}: {text} [{where} {answer.rule}]"


NO_CHECKS = "no check counts in this state whose fault is among the policy's breaker.drift"


def list_drift_checks(fleet: Fleet) -> list[CheckDeclaration]:
    """Return the checks whose failure is drift by the policy (`breaker.drift`), for nodes and their parts.

    Checks at stage `observe` are left out: they decide nothing. Checks of racks and fabrics belong to no node.
    """
    classes = set(fleet.policy.breaker.drift)
    checks = (check for catalog in fleet.check_catalogs.values() for check in catalog.checks)
    groups = ("rack", "whole_rack", "fabric", "switch", "rail")
    return [
        check
        for check in checks
        if check.fault in classes and check.subject not in groups and check.id not in fleet.observed_checks
    ]


class ExpectedCheckSource(Protocol):
    """Says what each node needs."""

    def of_node(self, node: Node) -> Sequence[ExpectedCheck]:
        """Return the checks of a node; nodes may share one answer."""

    def find_own_hash(self, check: str, node: Node) -> str:
        """Return what a check must have been judged by on a node, if that is its own."""


@dataclass(frozen=True)
class SyncInputs:
    """Everything that the comparison reads.

    `revision` names what the fleet is compared with. `rollout` are the nodes that a rollout has not proved yet.
    """

    fleet: Fleet
    node_states: Mapping[str, NodeState]
    standings: CheckStandings
    expected: ExpectedCheckSource
    revision: str
    now: datetime
    rollout: Collection[str] = frozenset()


def compare_fleet(inputs: SyncInputs, nodes: Sequence[str] | None = None) -> SyncReport:
    """Return how these nodes compare (None: all). Nodes that are gone for good by the policy are left out."""
    comparison = _FleetComparison(inputs)
    declared = inputs.fleet.nodes
    wanted = declared.values() if nodes is None else [declared[name] for name in nodes]
    compared = [comparison.compare(node) for node in wanted]
    return SyncReport(inputs.revision, [node for node in compared if node is not None])


class _FleetComparison:
    """The inputs by node, and what many nodes share."""

    def __init__(self, inputs: SyncInputs) -> None:
        self._inputs, self._policy = inputs, inputs.fleet.policy
        self._lines, self._remedies = SettingLines(inputs.fleet), DriftRemedies(inputs.fleet)
        states = self._policy.states.items()
        self._applying = frozenset(name for name, state in states if APPLYING_ACTIONS & set(state.entry))
        self._phases: dict[str, PhaseAges] = {}
        self._counting: dict[tuple[str, int], tuple[Sequence[ExpectedCheck], list[ExpectedCheck]]] = {}
        self._passes: dict[str, dict[str, list[PassCount]]] = defaultdict(dict)
        self._failures: dict[str, dict[str, dict[str, StandingFailure]]] = defaultdict(dict)
        for passed in inputs.standings.passes:
            self._passes[passed.node].setdefault(passed.check, []).append(passed)
        for failure in inputs.standings.failures:
            outcome = failure.recorded.outcome
            self._failures[outcome.node].setdefault(outcome.check, {})[outcome.subject] = failure

    def compare(self, node: Node) -> NodeSync | None:
        node_state = self._inputs.node_states.get(node.name)
        state = node_state.state if node_state else find_start_state(self._policy, node, self._inputs.now)
        if state in self._policy.states and self._policy.states[state].final:
            return None
        differences = self._find_differences(node, state, EvidenceWindow.of_node(node_state, self._inputs.now))
        holder = _find_holder(node_state, self._inputs.now)
        standing = self._find_state(node, node_state, differences, holder)
        revision = self._inputs.revision if standing == "in_sync" else differences.last_revision
        remedies = self._list_remedies(node, state, differences) if standing == "drifted" else ()
        return NodeSync(node.name, node.pool, standing, differences.items, revision, holder, remedies)

    def _list_remedies(self, node: Node, state: str, differences: NodeDifferences) -> tuple[str, ...]:
        return tuple(
            text for fault in differences.faults for text in self._remedies.describe(state, node.profile, fault)
        )

    def _find_state(
        self, node: Node, node_state: NodeState | None, differences: NodeDifferences, holder: str
    ) -> SyncState:
        rolling = is_rolling(node.name, node_state, self._applying, self._inputs.rollout)
        if (rolling or differences.differences) and holder:
            return "held"
        if rolling:
            return "rolling"
        if differences.differences:
            return "drifted"
        return "unknown" if differences.unknown else "in_sync"

    def _find_differences(self, node: Node, state: str, window: EvidenceWindow) -> NodeDifferences:
        differences = NodeDifferences(node, window, self._lines)
        passes, failures = self._passes.get(node.name, {}), self._failures.get(node.name, {})
        counting = self._list_counting(state, self._inputs.expected.of_node(node))
        for expected in counting:
            by_subject = failures.get(expected.check.id) or {}
            # The key is the part of a subject of this node; a subject of another pool is no part of it.
            parts = {
                "" if subject == node.subject else subject.removeprefix(f"{node.subject}/"): failure
                for subject, failure in by_subject.items()
            }
            judged_by = expected.judged_by
            if judged_by is None:
                judged_by = self._inputs.expected.find_own_hash(expected.check.id, node)
            own = expected._replace(judged_by=judged_by)
            differences.add_check(own, passes.get(expected.check.id, ()), parts)
        if not counting:
            differences.unknown[UnknownReason(NO_CHECKS)] = ["everything"]
        return differences

    def _list_counting(self, state: str, expected: Sequence[ExpectedCheck]) -> list[ExpectedCheck]:
        """Return the checks that count in a state, with the greatest age of their evidence."""
        key = (state, id(expected))
        if key not in self._counting:
            phases = self._phases.setdefault(state, list_phases(self._policy, state))
            counting = [
                expected._replace(max_hours=find_max_hours(phases, expected.check))
                for expected in expected
                if phases.keys() & set(expected.check.phases) and expected.parts
            ]
            self._counting[key] = (expected, counting)  # kept, so that its id stays its own
        return self._counting[key][1]


def _find_holder(node_state: NodeState | None, now: datetime) -> str:
    """Return who holds a node, "" if nobody does, or if the hold is over."""
    hold = node_state.hold if node_state else None
    if hold is None or (hold.until and parse_time(hold.until) <= now):
        return ""
    return f"{hold.who}: {hold.reason}"
