"""LifecyclePolicy: states, edges, what each state requires, what a fault leads to, and how much may happen at once.

Each way out of a state is a named field (`pass_to`, `fail_to`, `deadline` …) and must be one of the policy's `edges`.
Also how old evidence may be: what the states require of a phase, and what a check says of itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from assay.model.decision import (
    CONFIGURE,
    FLAPPING_RULE,
    HELD_RULE,
    PERSON_RULE,
    ROLLOUT_RULE,
    ActionName,
    find_rule_name,
)
from assay.model.errors import ConflictError, FieldConflict
from assay.model.faults.fault_record import FaultBlame, FaultSeverity
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.customers import NoticeRules
from assay.model.specs.known_issues import ExcuseLimits
from assay.model.specs.node.declared_settings import CorrectionRules
from assay.model.specs.policy_sections import (
    AutomationLimits,
    CommitTrust,
    CordonReassertion,
    EffectRetryPolicy,
    FaultBreakerLimits,
    FaultRule,
    HandOverRules,
    HoldReminder,
    LifecycleState,
    OperationName,
    OperationRule,
    PendingReminder,
    RackRule,
)
from assay.model.specs.repeated_faults import FlappingLimits, LemonLimits, RemedyLadder, find_repetition_conflicts
from assay.model.specs.schedules import RolloutRules
from assay.model.specs.serving import AccessRules, IntakeLimits, RetentionRules, SilenceLimits
from assay.model.specs.spec_document import SpecDocument
from assay.model.specs.trust_rules import TrustRules
from assay.model.text.lists import suggest_nearest

RACK_RULE_PREFIX = "racks."
"""The prefix of rack rules' names in decisions."""
EntryPath = tuple[str | int, ...]


class LifecyclePolicy(SpecDocument):
    """The lifecycle as data.

    - `edges`: the transitions that may happen, by state. `anywhere`: states that every state may lead to.
    - `effects`: retries of each action. `racks`: rules for racks that are one machine.
    - `rollouts`: how a merged change reaches the nodes that must leave service for it.
    - `settle_minutes`: a fault this soon after a repair does not count against the node yet.
    - `reopen_days`: a fault that returns this soon after its ticket was closed reopens that ticket.

    `states`: the states by name. `faults`: rules for faults, in order. `ladder`: the remedies, from mild to hard.
    `corrections`: settings that a node gets in service. `flapping`: faults that come and go. `lemon`: nodes that cost
    too much. `limits`: what automation may do at once. `breaker`: when it stops in a pool. `holds`, `waiting`: when
    people are reminded. `excuses`: bounds of known issues. `cordons`: how cordons of others are treated. `silence`:
    when a node counts as silent. `intake`: bounds of `assay serve`. `access`: who may use its pages and API.
    `pages`: where people open them, such as https://assay.example.org; commands and messages name them.
    `notices`: where customers are told of their nodes. `commits`: which commits are accepted.
    `retention`: how long runs are kept. `trust`: how far automation goes; without it, it only watches.
    `operations`: what people may order by name; what is not there is refused. `hand_over`: what must be proved of a
    node before it serves another customer.
    """

    kind: Literal["LifecyclePolicy"]
    sources: list[str] = Field(min_length=1)
    states: dict[str, LifecycleState]
    edges: dict[str, list[str]]
    anywhere: list[str] = Field(default=[])
    faults: dict[str, FaultRule]
    ladder: RemedyLadder
    corrections: CorrectionRules = Field(default_factory=CorrectionRules)
    flapping: FlappingLimits = Field(default_factory=FlappingLimits)
    lemon: LemonLimits | None = None
    limits: AutomationLimits
    breaker: FaultBreakerLimits
    holds: HoldReminder
    excuses: ExcuseLimits = Field(default_factory=ExcuseLimits)
    racks: dict[str, RackRule] = Field(default={})
    waiting: PendingReminder = Field(default_factory=PendingReminder)
    cordons: CordonReassertion = Field(default_factory=CordonReassertion)
    effects: dict[ActionName, EffectRetryPolicy] = Field(default={})
    settle_minutes: float = Field(ge=0)
    silence: SilenceLimits = Field(default_factory=SilenceLimits)
    intake: IntakeLimits = Field(default_factory=IntakeLimits)
    access: AccessRules | None = None
    pages: str = Field(default="", pattern=r"^$|^https://[^\s/?#@]+$")
    notices: NoticeRules = Field(default_factory=NoticeRules)
    reopen_days: float = Field(default=30, ge=0, le=3650)
    commits: CommitTrust | None = None
    rollouts: RolloutRules = Field(default_factory=RolloutRules)
    retention: RetentionRules = Field(default_factory=RetentionRules)
    trust: TrustRules = Field(default_factory=TrustRules)
    operations: dict[OperationName, OperationRule] = Field(default={})
    hand_over: HandOverRules | None = None

    @property
    def states_in_service(self) -> frozenset[str]:
        """The names of the states in which customers use nodes."""
        return frozenset(name for name, state in self.states.items() if state.in_service)

    @property
    def service_state(self) -> str:
        """The state in which customers use nodes: the first that is `in_service`."""
        return next(name for name, state in self.states.items() if state.in_service)

    @property
    def spare_state(self) -> str:
        """The state in which spares wait, "" if the policy has none."""
        return next((name for name, state in self.states.items() if state.spare), "")

    def is_in_service(self, state: str) -> bool:
        """Whether customers use nodes in a state; not in one that the policy does not have."""
        return state in self.states and self.states[state].in_service

    def leads_to_service(self, state: str) -> bool:
        """Whether a state serves, or what passes there serves next."""
        known = self.states.get(state)
        return known is not None and (known.in_service or self.is_in_service(known.pass_to or ""))

    def has_edge(self, origin: str, target: str) -> bool:
        """Whether the policy has an edge from `origin` to `target`."""
        return target in self.edges.get(origin, ()) or target in self.anywhere

    def find_fault_rule(
        self, state: str, fault_class: str, severity: FaultSeverity, blame: FaultBlame, in_use: bool
    ) -> tuple[str, FaultRule]:
        """Return name and rule of the first fault rule that matches. The last rule matches everything."""
        fault = (state, fault_class, severity, blame, in_use)
        return next((name, rule) for name, rule in self.faults.items() if rule.matches(*fault))

    def find_named_rule(self, state: str, fault_class: str) -> tuple[str, str] | None:
        """Return name and target of the first rule that names this fault class and state, and a state to go to."""
        named = ((name, rule) for name, rule in self.faults.items() if fault_class in rule.classes)
        return next(((name, rule.to) for name, rule in named if rule.to and state in rule.states), None)

    def actions_while_pending(self, rule: str) -> list[ActionName]:
        """Return the actions taken at once while a decision is pending. `rule` is `file:line name`, as recorded."""
        name = find_rule_name(rule)
        if name in (PERSON_RULE, ROLLOUT_RULE):
            return [*self.waiting.by_hand]
        if name in (HELD_RULE, FLAPPING_RULE):
            return ["cordon"]
        if name in self.faults:
            return [*self.faults[name].while_pending]
        return ["cordon"] if name.removeprefix(RACK_RULE_PREFIX) in self.racks else []

    @model_validator(mode="after")
    def _makes_sense(self) -> LifecyclePolicy:
        if conflicts := _find_policy_conflicts(self):
            raise ConflictError(*conflicts)
        return self


def _find_policy_conflicts(policy: LifecyclePolicy) -> list[FieldConflict]:
    """Return what contradicts itself. If a state's name is unknown, only such names are reported."""
    return list(_unknown_states(policy)) or [
        *_missing_edges(policy),
        *_dead_ends(policy),
        *find_repetition_conflicts(policy.ladder, policy.flapping, policy.lemon),
        *_missing_lemon_score(policy),
        *_unanswered_faults(policy),
        *_impossible_corrections(policy),
        *_early_deadlines(policy),
        *_unreachable_bounds(policy),
    ]


def _exit_path(state: str, field: str) -> EntryPath:
    """Return the path of a way out that `LifecycleState.list_exits` yields."""
    name, _, number = field.partition(".")
    nested: EntryPath = (int(number), "to") if number else ("to",) if name == "deadline" else ()
    return ("states", state, name, *nested)


def _unknown_states(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    fixes: dict[str, str] = {}
    for path, name in _state_references(policy):
        if name not in policy.states:
            if name not in fixes:
                fixes[name] = suggest_nearest(name, policy.states) or f"use one of {', '.join(policy.states)}"
            yield FieldConflict("ASY0088", path, f"{'.'.join(map(str, path))}: {name!r} is no state", fixes[name])


def _state_references(policy: LifecyclePolicy) -> Iterator[tuple[EntryPath, str]]:
    """Yield path and name of every state that the policy refers to."""
    for origin, targets in policy.edges.items():
        yield ("edges", origin), origin
        yield from ((("edges", origin, number), name) for number, name in enumerate(targets))
    yield from ((("anywhere", number), name) for number, name in enumerate(policy.anywhere))
    for state, content in policy.states.items():
        yield from ((_exit_path(state, field), target) for field, target in content.list_exits())
    yield from ((("ladder", "rungs", remedy, "to"), rung.to) for remedy, rung in policy.ladder.rungs.items())
    if policy.hand_over:
        yield ("hand_over", "state"), policy.hand_over.state
        yield ("hand_over", "closed"), policy.hand_over.closed
    for verb, operation in policy.operations.items():
        yield ("operations", verb, "to"), operation.to
        yield from ((("operations", verb, "origins", number), name) for number, name in enumerate(operation.origins))
    if lemon := policy.lemon:
        yield from ((("lemon", "weights", "states", name), name) for name in lemon.weights.states)
        yield from ((("lemon", "fresh_after", number), name) for number, name in enumerate(lemon.fresh_after))
    for title, rule in policy.faults.items():
        yield from ((("faults", title, "states", number), name) for number, name in enumerate(rule.states))
        if rule.to:
            yield ("faults", title, "to"), rule.to


def _missing_edges(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    for name, state in policy.states.items():
        for field, target in state.list_exits():
            if not policy.has_edge(name, target):
                message = f"states.{name}.{field} leads to {target}, but edges draw no {name} → {target}"
                fix = f"add {target} to edges.{name}, or lead elsewhere"
                yield FieldConflict("ASY0089", _exit_path(name, field), message, fix)


def _dead_ends(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    returning = policy.states_in_service
    if not returning:
        yield FieldConflict(
            "ASY0075", ("states",), "no state is in_service", "say in_service: true where customers are"
        )
        return
    while more := {name for name, targets in policy.edges.items() if returning & set(targets)} - returning:
        returning |= more
    for name, state in policy.states.items():
        if name not in returning and not state.final:
            message = f"no way back into service from: {name}"
            yield FieldConflict("ASY0075", ("states", name), message, "draw an edge out of it, or say final: true")


def _missing_lemon_score(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    for name, state in policy.states.items() if policy.lemon is None else ():
        for number, step in enumerate(state.escalate):
            if step.lemon:
                message = f"states.{name}.escalate.{number} is for lemons, and the policy has no lemon score"
                path = ("states", name, "escalate", number, "lemon")
                yield FieldConflict("ASY0225", path, message, "add the section lemon, or remove this step")


def _unanswered_faults(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    if not policy.faults:
        yield FieldConflict(
            "ASY0077", ("faults",), "no rule answers any fault", "end with a rule that only says its timing"
        )
        return
    title, last = list(policy.faults.items())[-1]
    if not last.matches_everything:
        message = "the last of the faults' rules must match everything, so that none goes unanswered"
        fix = f"add a rule below {title} that says its timing and nothing else: `everything-else: {{timing: record}}`"
        yield FieldConflict("ASY0077", ("faults", title), message, fix)


def _impossible_corrections(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    for name, number, message, fix in policy.corrections.find_contradictions():
        yield FieldConflict("ASY0274", ("corrections", name, number), f"corrections.{name}: {message}", fix)
    for title, rule in policy.faults.items():
        if rule.remedy != CONFIGURE:
            continue
        if rule.timing == "record" or rule.to or rule.while_pending:
            message = f"faults.{title} has remedy: configure, which moves no node and is never only recorded"
            fix = "say timing: immediate or pending, without to and while_pending"
            yield FieldConflict("ASY0274", ("faults", title, "remedy"), message, fix)
        elif not rule.states or not all(map(policy.is_in_service, rule.states)):
            message = f"faults.{title} has remedy: configure, which is for nodes in service"
            fix = "name in `states` only states that are in_service"
            yield FieldConflict("ASY0274", ("faults", title, "remedy"), message, fix)


def _early_deadlines(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    for name, state in policy.states.items():
        if state.deadline and state.deadline.hours <= state.soak_hours:
            late, soak = state.deadline.hours, state.soak_hours
            message = f"states.{name}.deadline is {late:g} h, and nothing leaves before {soak:g} h"
            fix = "let the deadline be longer than soak_hours"
            yield FieldConflict("ASY0190", ("states", name, "deadline", "hours"), message, fix)


def _unreachable_bounds(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    for name, rule in policy.racks.items():
        if rule.more_than >= rule.of:
            message = f"racks.{name} asks for more than {rule.more_than} of {rule.of} nodes out, which never happens"
            yield FieldConflict("ASY0191", ("racks", name, "more_than"), message, f"use a number below {rule.of}")
    at_once = policy.limits.effects_at_once
    if at_once.rack > at_once.pool:
        message = f"{at_once.rack} effects may be under way in a rack, and only {at_once.pool} in its whole pool"
        path = ("limits", "effects_at_once", "rack")
        yield FieldConflict("ASY0191", path, message, f"use at most {at_once.pool}, or let the pool have more")


PhaseAges = dict[str, float | None]
"""Phases, each with the greatest age of evidence in hours; None: any age."""


def find_longest_hours(policy: LifecyclePolicy, phase: str) -> float | None:
    """Return the greatest age of evidence that a state of the policy allows for a phase, None if none requires it."""
    wanted = (want for state in policy.states.values() for want in state.requires if want.phase == phase)
    return max((want.fresh_hours for want in wanted), default=None)


def find_max_hours(phases: PhaseAges, check: CheckDeclaration) -> float | None:
    """Return how old evidence for a check may be that has one of these phases."""
    allowed = [limit for phase in check.phases if (limit := phases.get(phase)) is not None]
    longest = max(allowed, default=None)
    if check.valid_hours is None:
        return longest
    return check.valid_hours if longest is None else min(check.valid_hours, longest)
