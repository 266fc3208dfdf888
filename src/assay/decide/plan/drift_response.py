"""What the policy will do at the next pass about nodes that no longer match their spec."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from assay.decide.plan.check_reruns import StaleCheck
from assay.decide.plan.inputs import FleetRevision
from assay.decide.plan.setting_routes import find_check_route
from assay.model.decision import CONFIGURE
from assay.model.facts import frozen
from assay.model.specs.policy_response import PolicyResponse, respond_to_class
from assay.model.specs.policy_sections import LifecycleState

DriftResponseKind = Literal[
    "rolls", "at_once", "idle", "moves", "noted", "tracked", "fails", "stays", "ahead", "unseen"
]


@frozen
class DriftResponse:
    """What follows for nodes in one state. `fault` is the class under which the difference is seen, "" for none.

    `what`: they wait for their wave of the rollout, and nobody is asked meanwhile (`rolls`); they get it in service, at
    once or with the next idle moment (`at_once`, `idle`); the policy `moves` the
    nodes, or only records the fault (`noted`); their profile does not act on faults (`tracked`); the state's
    requirements fail and lead elsewhere (`fails`) or keep the node (`stays`); the nodes take the change when they come
    to it (`ahead`); no check sees it (`unseen`). `to` is the state to which they go.
    """

    nodes: tuple[str, ...]
    """The nodes."""
    state: str
    """The state that they are in."""
    what: DriftResponseKind
    fault: str = ""
    checks: tuple[str, ...] = ()
    """The checks that see the difference."""
    answer: PolicyResponse | None = None
    """What the policy answers; null if it is not asked."""
    to: str = ""
    rule: str = ""
    """The rule of the policy, as file and line."""


@frozen
class DriftGroup:
    """Nodes in one state that differ from their spec in the same way.

    `is_zapped`: zap has already run on them. `leaves`: they must leave service for the change, so a rollout takes them.
    """

    state: str
    profile: str
    stale: tuple[StaleCheck, ...]
    is_zapped: bool
    leaves: bool = False


def predict_drift_responses(
    after: FleetRevision, drifting: Iterable[tuple[DriftGroup, Sequence[str]]]
) -> tuple[DriftResponse, ...]:
    """Return what follows for groups of nodes; groups with the same result are merged."""
    merged: dict[DriftResponse, list[str]] = defaultdict(list)
    for drift, nodes in drifting:
        for response in dict.fromkeys(_predict(after, drift)):
            merged[response] += nodes
    return tuple(replace(response, nodes=tuple(nodes)) for response, nodes in merged.items())


def _predict(after: FleetRevision, drift: DriftGroup) -> Iterator[DriftResponse]:
    state, failing = after.policy.states.get(drift.state), [stale for stale in drift.stale if stale.certain]
    if state is None:
        return
    watched = [stale for stale in failing if set(state.watch) & set(stale.phases) and stale.fault]
    required = [stale for stale in failing if {want.phase for want in state.requires} & set(stale.phases)]
    if watched:
        yield from _predict_watched(after, drift, watched)
    elif "zap" in state.entry and not drift.is_zapped:
        yield DriftResponse((), drift.state, "ahead")
    elif required:
        yield _predict_required(after, drift.state, state, required)
    else:
        yield DriftResponse((), drift.state, "unseen" if state.in_service or state.final else "ahead")


def _predict_watched(after: FleetRevision, drift: DriftGroup, watched: list[StaleCheck]) -> Iterator[DriftResponse]:
    for fault in dict.fromkeys(stale.fault for stale in watched):
        failing = [stale for stale in watched if stale.fault == fault]
        answers = [respond_to_class(after.policy, after.catalog, drift.state, fault, use) for use in (False, True)]
        for answer in dict.fromkeys(answers):
            yield from _predict_fault(after, drift, failing, answer)


def _predict_fault(
    after: FleetRevision, drift: DriftGroup, failing: list[StaleCheck], answer: PolicyResponse
) -> Iterator[DriftResponse]:
    profile, fault = after.fleet.profiles[drift.profile], failing[0].fault
    checks, is_correction = tuple(stale.check for stale in failing), answer.remedy == CONFIGURE
    rule = f"{after.policy_line(f'faults.{answer.rule}')} {answer.rule}"
    if drift.leaves and profile.acts_on_faults and (is_correction or fault in after.policy.breaker.drift):
        rule = f"{after.policy_line('rollouts')} rollouts"
        yield DriftResponse((), drift.state, "rolls", fault, checks, rule=rule)
    elif profile.acts_on_faults and is_correction:
        yield from _predict_corrections(after, drift, failing, answer, rule)
    else:
        kind: DriftResponseKind = "moves" if answer.moves_node else "noted"
        if not profile.acts_on_faults:
            kind = "tracked"
        yield DriftResponse((), drift.state, kind, fault, checks, answer, answer.to, rule)


def _predict_corrections(
    after: FleetRevision, drift: DriftGroup, failing: Iterable[StaleCheck], response: PolicyResponse, rule: str
) -> Iterator[DriftResponse]:
    """Yield what follows of each check by itself: a node gets the settings of one check while people mend another."""
    profile = after.fleet.profiles[drift.profile]
    kinds: dict[DriftResponseKind, list[StaleCheck]] = defaultdict(list)
    for stale in failing:
        route = find_check_route(after, profile, drift.state, after.checks[stale.check], " ".join(stale.unmet))
        kinds["at_once" if route.way == "at_once" else "idle" if route.way == "idle" else "noted"].append(stale)
    for kind, checks in kinds.items():
        answer = replace(response, remedy="ticket", at_once=(), when_idle=()) if kind == "noted" else response
        names = tuple(stale.check for stale in checks)
        yield DriftResponse((), drift.state, kind, checks[0].fault, names, answer, "", rule)


def _predict_required(
    after: FleetRevision, name: str, state: LifecycleState, required: list[StaleCheck]
) -> DriftResponse:
    checks = tuple(stale.check for stale in required)
    path = f"states.{name}.fail_to" if state.fail_to else f"states.{name}.requires"
    kind: DriftResponseKind = "fails" if state.fail_to else "stays"
    return DriftResponse((), name, kind, required[0].fault, checks, None, state.fail_to or "", after.policy_line(path))
