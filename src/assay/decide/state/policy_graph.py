"""The states of a policy and the edges between them, with what leads along each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import FaultRule, LifecycleState

EDGE_LABELS = {"fail_to": "fails", "effect_failed_to": "an action fails", "certified_to": "certified"}
MANUAL_LABEL = "by hand"


@dataclass(frozen=True, slots=True)
class PolicyEdge:
    """One edge of a policy, and its causes."""

    origin: str
    target: str
    labels: tuple[str, ...]


def list_policy_edges(policy: LifecyclePolicy) -> list[PolicyEdge]:
    """Return every edge of the policy, in the order of its states."""
    labels: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, state in policy.states.items():
        for target, label in [*_edges_of_state(state), *_edges_by_fault(policy, name)]:
            if label not in labels[name, target]:
                labels[name, target].append(label)
    edges = [(origin, target) for origin in policy.states for target in policy.edges.get(origin, ())]
    return [PolicyEdge(origin, target, tuple(labels[origin, target]) or (MANUAL_LABEL,)) for origin, target in edges]


def find_states_out(policy: LifecyclePolicy) -> frozenset[str]:
    """Return the states to which automation takes a node that serves, without a person's certification or order."""
    by_people = {MANUAL_LABEL, EDGE_LABELS["certified_to"]}
    ways = [(edge.origin, edge.target) for edge in list_policy_edges(policy) if set(edge.labels) - by_people]
    serving = policy.states_in_service
    out: set[str] = set()
    while found := {target for origin, target in ways if origin in serving | out} - serving - out:
        out |= found
    return frozenset(out)


def _edges_of_state(state: LifecycleState) -> Iterator[tuple[str, str]]:
    """Yield the target of each exit of a state, with a label."""
    for field, target in state.list_exits():
        kind, _, number = field.partition(".")
        if kind == "deadline" and state.deadline:
            yield target, f"after {state.deadline.hours:g} h"
        elif kind == "escalate":
            step = state.escalate[int(number)]
            when = "again" if step.recurred else "of a lemon" if step.lemon else "open"
            yield target, f"{step.blame} fault {when}"
        else:
            yield target, _describe_passing(state) if kind == "pass_to" else EDGE_LABELS[kind]


def _describe_passing(state: LifecycleState) -> str:
    """Return the condition of `pass_to`."""
    what = "passes" if state.requires else "idle" if state.until_idle else "done"
    return f"{what}, after {state.soak_hours:g} h" if state.soak_hours else what


def _edges_by_fault(policy: LifecyclePolicy, state: str) -> Iterator[tuple[str, str]]:
    """Yield the targets of the fault rules from a state, each with the remedies that lead there."""
    by_target: dict[str, list[str]] = defaultdict(list)
    for rule in policy.faults.values():
        if rule.timing != "record" and (not rule.states or state in rule.states):
            for target, remedy in _list_targets(policy, rule):
                if policy.has_edge(state, target) and remedy not in by_target[target]:
                    by_target[target].append(remedy)
    for target, remedies in by_target.items():
        named = ", ".join(remedy for remedy in remedies if remedy)
        yield target, f"fault: {named}" if named else "fault"


def _list_targets(policy: LifecyclePolicy, rule: FaultRule) -> Iterator[tuple[str, str]]:
    """Yield the states that a rule can lead to, with the remedy of the ladder ("" where the rule names the state)."""
    if rule.to:
        yield rule.to, ""
        return
    for remedy, rung in policy.ladder.rungs.items():
        if rule.remedy in ("class", remedy):
            yield rung.to, remedy
