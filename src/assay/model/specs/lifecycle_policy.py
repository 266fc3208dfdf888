"""LifecyclePolicy: states, edges, what each state requires, what a fault leads to, and how much may happen at once.

A closed vocabulary: nothing in a policy is evaluated as an expression. Ways out of a state are named fields
(`pass_to`, `fail_to`, `deadline` …), each of which must also be one of the policy's `edges`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from assay.model.decision import ActionName, DecisionTiming
from assay.model.errors import ConflictError
from assay.model.specs.check_catalog_and_gates import Phase
from assay.model.specs.fault_catalog import FaultBlame, FaultSeverity, Remedy
from assay.model.specs.management_profile_and_retries import EffectRetryPolicy
from assay.model.specs.policy_validation import find_policy_conflicts
from assay.model.specs.spec_document import SpecDocument, StrictModel

PERSON_RULE = "person"
"""The name of the rule by which a person's move is decided."""
RACK_RULE_PREFIX = "racks."
"""What the names of rack rules begin with in decisions."""


class PhaseRequirement(StrictModel):
    """Every check declared for `phase` must have passed, its evidence at most `fresh_hours` old.

    `active`: at least one of these checks must load the hardware. `newer_than_repair`: the evidence must be younger
    than the last verified repair or certification.
    """

    phase: Phase
    active: bool = False
    fresh_hours: float = Field(gt=0)
    newer_than_repair: bool = True


class StateDeadline(StrictModel):
    """After `hours` in the state the node goes `to` another, whatever else is known.

    Without `to` it stays where it is and a person is asked to look: what takes long is no proof that it went wrong.
    """

    hours: float = Field(gt=0)
    to: str | None = None
    source: str = ""


class FaultEscalation(StrictModel):
    """A node with an open fault of this `blame` goes `to`; `recurred`: the fault came back after its repair."""

    blame: FaultBlame
    recurred: bool = True
    to: str


class LifecycleState(StrictModel):
    """Where a node can be.

    `in_service`: customers use it. `counts_out`: it counts against the blast radius. `entry`: the actions on
    arrival, in order, all verified before the node may pass on. `watch`: phases judged at every look, whose failures
    are faults. `until_idle`: it passes on only when no job is left. `certified_to`: where a person's certification
    leads. `final`: no way out is needed. A state whose `requires` fail and that has no `fail_to` keeps the node and
    asks for a ticket.
    """

    summary: str
    in_service: bool = False
    counts_out: bool = False
    entry: list[ActionName] = Field(default=[])
    watch: list[Phase] = Field(default=[])
    requires: list[PhaseRequirement] = Field(default=[])
    soak_hours: float = Field(default=0, ge=0)
    until_idle: bool = False
    pass_to: str | None = None
    fail_to: str | None = None
    effect_failed_to: str | None = None
    certified_to: str | None = None
    deadline: StateDeadline | None = None
    escalate: list[FaultEscalation] = Field(default=[])
    final: bool = False

    def list_exits(self) -> Iterator[tuple[str, str]]:
        """Yield (field, state) for every way out that the state itself names."""
        for field in ("pass_to", "fail_to", "effect_failed_to", "certified_to"):
            if target := getattr(self, field):
                yield field, target
        if self.deadline and self.deadline.to:
            yield "deadline", self.deadline.to
        for number, escalation in enumerate(self.escalate):
            yield f"escalate.{number}", escalation.to


class FaultRule(StrictModel):
    """What a fault leads to; the first rule that matches wins. An empty list or null matches everything.

    `remedy` "class" starts the ladder where the fault's class says; `to` names a state instead of the ladder.
    `while_pending`: what is done at once while a pending decision waits for the node to be idle.
    """

    severity: list[FaultSeverity] = Field(default=[])
    classes: list[str] = Field(default=[])
    states: list[str] = Field(default=[])
    blame: list[FaultBlame] = Field(default=[])
    in_use: bool | None = None
    timing: DecisionTiming
    remedy: Remedy | Literal["class"] = "class"
    to: str | None = None
    while_pending: list[Literal["cordon"]] = Field(default=[])

    @property
    def matches_everything(self) -> bool:
        """Whether no fault can pass this rule by."""
        return not (self.severity or self.classes or self.states or self.blame) and self.in_use is None

    def matches(self, state: str, fault_class: str, severity: FaultSeverity, blame: FaultBlame, in_use: bool) -> bool:
        """Whether the rule answers such a fault on a node in `state`."""
        return (
            (not self.severity or severity in self.severity)
            and (not self.classes or fault_class in self.classes)
            and (not self.states or state in self.states)
            and (not self.blame or blame in self.blame)
            and self.in_use in (None, in_use)
        )


class LadderRung(StrictModel):
    """One step of the ladder: `to` this state, at most `times` per node within the window, `then` the next step."""

    to: str
    times: int = Field(default=1, ge=1)
    then: Remedy | None = None


class RemedyLadder(StrictModel):
    """Remedies by name, counted per node over `window_hours` since the node was last certified."""

    window_hours: float = Field(gt=0)
    rungs: dict[Remedy, LadderRung]


class EffectConcurrency(StrictModel):
    """How many effects may be under way at the same time in one `pool`, and in one `rack`."""

    pool: int = Field(default=64, ge=1)
    rack: int = Field(default=18, ge=1)


class AutomationLimits(StrictModel):
    """How much may be out of service through automation: of a pool, in a rack at once, restarts of the fleet an hour.

    A pool may always have one node out, however small it is. `effects_at_once` and `per_minute` (how many may begin in
    a pool within a minute) pace what was decided; cordon and uncordon, which take no time, count in neither.
    """

    pool_percent: float = Field(gt=0, le=100)
    rack_concurrent: int = Field(ge=1)
    reboots_per_hour: int = Field(ge=1)
    effects_at_once: EffectConcurrency = Field(default_factory=EffectConcurrency)
    per_minute: int = Field(default=60, ge=1)


class RackRule(StrictModel):
    """A rack of such nodes is one machine of `of` nodes: with more than `more_than` of them out, it is cordoned whole.

    Its nodes keep their jobs and their state, and are uncordoned when enough of them serve again. At most `at_once`
    racks of a pool are cordoned by one rule: that many at the same time more likely have a cause outside of them.
    """

    node_specs: list[str] = Field(min_length=1)
    of: int = Field(ge=2)
    more_than: int = Field(ge=0)
    at_once: int = Field(default=2, ge=1)


class FaultBreakerLimits(StrictModel):
    """Faults on this share of a pool's serving nodes (and at least `min_nodes`) within the window hold the pool."""

    percent: float = Field(gt=0, le=100)
    min_nodes: int = Field(ge=2)
    window_minutes: float = Field(gt=0)


class HoldReminder(StrictModel):
    """A person's hold is brought to mind again every `remind_hours`."""

    remind_hours: float = Field(gt=0)


class PendingReminder(StrictModel):
    """What waits for a node to be idle is brought to mind every `remind_hours`, with what it waits for.

    `by_hand`: what is done at once while a person's move waits.
    """

    remind_hours: float = Field(default=24, gt=0)
    by_hand: list[Literal["cordon"]] = Field(default=["cordon"])


class CordonReassertion(StrictModel):
    """A node that is out and that somebody opens in its scheduler is closed again, `again` times in `window_hours`.

    Whoever opens it more often is not fought: it is left open, and people are asked, until the window has room again.
    """

    again: int = Field(default=3, ge=1)
    window_hours: float = Field(default=24, gt=0)
    source: str = ""


class SilenceLimits(StrictModel):
    """How long a node may stay silent before that is a fault of its own (`telemetry.lost`), never health.

    `agent_minutes`: without a word of its agent, where the inventory declares one. `readings_minutes`: without an
    answer of its probe or of its BMC. Nothing counts while nobody listens.
    """

    agent_minutes: float = Field(default=5, gt=0)
    readings_minutes: float = Field(default=60, gt=0)


class CommitTrust(StrictModel):
    """Which commits of the fleet repository may be acted on.

    `signed`: only those with an SSH signature by a key that the file `allowed_signers` names (see ssh-keygen(1)).
    """

    signed: bool
    allowed_signers: str = Field(default="specs/allowed_signers", pattern=r"^\w[\w-]*([./]\w[\w-]*)*$")


class LifecyclePolicy(SpecDocument):
    """The lifecycle as data. `effects`: how hard each action is tried.

    `settle_minutes`: what is seen so soon after a repair is not yet held against a node.

    `reopen_days`: what is wrong again so soon after its ticket was closed reopens that ticket.
    """

    kind: Literal["LifecyclePolicy"]
    sources: list[str] = Field(min_length=1)
    states: dict[str, LifecycleState]
    edges: dict[str, list[str]]
    anywhere: list[str] = Field(default=[])
    faults: dict[str, FaultRule]
    ladder: RemedyLadder
    limits: AutomationLimits
    breaker: FaultBreakerLimits
    holds: HoldReminder
    racks: dict[str, RackRule] = Field(default={})
    waiting: PendingReminder = Field(default_factory=PendingReminder)
    cordons: CordonReassertion = Field(default_factory=CordonReassertion)
    effects: dict[ActionName, EffectRetryPolicy] = Field(default={})
    settle_minutes: float = Field(ge=0)
    silence: SilenceLimits = Field(default_factory=SilenceLimits)
    reopen_days: float = Field(default=30, ge=0, le=3650)
    commits: CommitTrust | None = None

    def has_edge(self, origin: str, target: str) -> bool:
        """Whether the policy draws an edge from `origin` to `target`."""
        return target in self.edges.get(origin, ()) or target in self.anywhere

    def find_fault_rule(
        self, state: str, fault_class: str, severity: FaultSeverity, blame: FaultBlame, in_use: bool
    ) -> tuple[str, FaultRule]:
        """Return the rule that answers such a fault, with its name: the first that matches; the last matches all."""
        asked = (state, fault_class, severity, blame, in_use)
        return next((name, rule) for name, rule in self.faults.items() if rule.matches(*asked))

    def actions_while_pending(self, rule: str) -> list[ActionName]:
        """Return what is done at once for a decision that waits, by its rule (as written, `file:line name`)."""
        name = rule.rpartition(" ")[2]
        if name == PERSON_RULE:
            return [*self.waiting.by_hand]
        if name in self.faults:
            return [*self.faults[name].while_pending]
        return ["cordon"] if name.removeprefix(RACK_RULE_PREFIX) in self.racks else []

    @model_validator(mode="after")
    def _makes_sense(self) -> LifecyclePolicy:
        if found := find_policy_conflicts(self):
            raise ConflictError(*found)
        return self
