"""The sections of a LifecyclePolicy. The vocabulary is closed: nothing in a policy is evaluated as an expression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from assay.model.backoff import Backoff
from assay.model.decision import ActionName, DecisionTiming
from assay.model.faults.fault_record import FaultBlame, FaultSeverity, Remedy
from assay.model.specs.check_catalog import Phase
from assay.model.specs.customers import StateCustomerWords
from assay.model.specs.load_parts import USUAL_PARTS, LoadPart
from assay.model.specs.spec_document import SpecName, StrictModel


class PhaseRequirement(StrictModel):
    """Every check declared for `phase` must have passed, on evidence at most `fresh_hours` old.

    `active`: at least one of them must load the hardware. `parts`: the parts of that load; checks of others need not
    pass. `newer_than_repair`: the evidence must be newer than the last verified repair. `checks`: only these, by the
    names of their functions; all without it.
    """

    phase: Phase
    checks: list[str] = Field(default=[])
    active: bool = False
    parts: list[LoadPart] = Field(default=[*USUAL_PARTS], min_length=1)
    fresh_hours: float = Field(gt=0)
    newer_than_repair: bool = True


class StateDeadline(StrictModel):
    """After `hours` in the state, the node goes `to` another state, whatever else is known.

    Without `to`, the node stays and a ticket asks a person to look. Slow alone does not mean broken.
    """

    hours: float = Field(gt=0)
    to: str | None = None
    source: str = ""


class FaultEscalation(StrictModel):
    """A node with an open fault of this `blame` goes `to` a state.

    `recurred`: only if a repair did not help. `lemon`: only if the node's lemon score has reached its threshold.
    `left_to_people`: classes of fault that do not count, as they say of no part that it is guilty.
    """

    blame: FaultBlame
    left_to_people: list[str] = Field(default=["gpu.sdc.suspect"])
    recurred: bool = True
    lemon: bool = False
    to: str


class LifecycleState(StrictModel):
    """One state of the lifecycle.

    - `in_service`: customers use the node. In every other state no job may start: assay keeps the node closed.
    - `entry`: actions on arrival, in order. All must be verified before the node may leave.
    - `watch`: phases that are judged at every observation; their failures are faults.
    - `requires`: what must pass before `pass_to`. If it fails, the node goes to `fail_to`. Without `fail_to`, the node
      stays and a ticket is opened.
    - `soak_hours`: the shortest stay. `until_idle`: it leaves only when it runs no job. `burn_in`: BurnIn specs; the
      first that is for the node must have ended well. `for_customers`: what customers of the node are told.
    - `certified_to`: where a person's certification leads. `final`: the state needs no way out.
    - `spare`: proven nodes wait there to take the place of others of their pool, which declares its `capacity`.
      `replace_after_hours`: in this state, and out of service for so long, a node is replaced by a spare; null: never.

    `summary`: the state in a sentence. In it and in `for_customers`, `{burn_in}` stands for the hours of the burn-ins
    that the policy names, such as "a day". `pass_to`, `fail_to`: the next state after `requires`. `effect_failed_to`:
    the next one if an entry action failed. `deadline`: the longest stay. `escalate`: ways out for nodes with an open
    fault.
    """

    summary: str
    for_customers: StateCustomerWords = Field(default_factory=StateCustomerWords)
    in_service: bool = False
    entry: list[ActionName] = Field(default=[])
    watch: list[Phase] = Field(default=[])
    requires: list[PhaseRequirement] = Field(default=[])
    soak_hours: float = Field(default=0, ge=0)
    burn_in: list[SpecName] = Field(default=[])
    until_idle: bool = False
    pass_to: str | None = None
    fail_to: str | None = None
    effect_failed_to: str | None = None
    certified_to: str | None = None
    deadline: StateDeadline | None = None
    escalate: list[FaultEscalation] = Field(default=[])
    final: bool = False
    spare: bool = False
    replace_after_hours: float | None = Field(default=None, ge=0)

    @property
    def first_actions(self) -> list[ActionName]:
        """The actions for a node that is enrolled in this state: nothing has closed it before."""
        closing: list[ActionName] = ["cordon", "drain"]
        return [*(action for action in closing if action not in self.entry), *self.entry]

    def list_exits(self) -> Iterator[tuple[str, str]]:
        """Yield field and target of every way out that the state names, such as `pass_to` or `escalate.0`."""
        for field in ("pass_to", "fail_to", "effect_failed_to", "certified_to"):
            if target := getattr(self, field):
                yield field, target
        if self.deadline and self.deadline.to:
            yield "deadline", self.deadline.to
        for number, escalation in enumerate(self.escalate):
            yield f"escalate.{number}", escalation.to


class FaultRule(StrictModel):
    """What a fault leads to; the first rule that matches wins. An empty list or null matches everything.

    `remedy: class` starts the ladder with the remedy of the fault's class. `to` names a state instead of the ladder.
    `remedy: configure` gives a node in service its settings where it is, as the policy's `corrections` say.
    `while_pending`: actions taken at once while a pending decision waits for the node to be idle.

    `severity`, `classes`, `blame`: the faults that it is for. `states`: the states of the node. `in_use`: whether jobs
    use the node. `timing`: at once, when the node is idle, or only recorded. `beyond_limits`: `limits` of the policy do
    not hold it back.
    """

    severity: list[FaultSeverity] = Field(default=[])
    classes: list[str] = Field(default=[])
    states: list[str] = Field(default=[])
    blame: list[FaultBlame] = Field(default=[])
    in_use: bool | None = None
    timing: DecisionTiming
    remedy: Remedy | Literal["class", "configure"] = "class"
    to: str | None = None
    while_pending: list[Literal["cordon"]] = Field(default=[])
    beyond_limits: bool = False

    @property
    def matches_everything(self) -> bool:
        """Whether the rule matches every fault."""
        return not (self.severity or self.classes or self.states or self.blame) and self.in_use is None

    def matches(self, state: str, fault_class: str, severity: FaultSeverity, blame: FaultBlame, in_use: bool) -> bool:
        """Whether the rule matches such a fault on a node in `state`."""
        return (
            (not self.severity or severity in self.severity)
            and (not self.classes or fault_class in self.classes)
            and (not self.states or state in self.states)
            and (not self.blame or blame in self.blame)
            and self.in_use in (None, in_use)
        )


class EffectConcurrency(StrictModel):
    """How many effects may run at the same time in one `pool`, and in one `rack`."""

    pool: int = Field(default=64, ge=1)
    rack: int = Field(default=18, ge=1)


class AutomationLimits(StrictModel):
    """Limits on what automation may do at once.

    - `pool_percent`: the share of a pool that automation may have out of service, of the nodes that serve and those
      that it took out. A node counts until it serves again, is retired, or a person moves it. One may always be out.
    - `rack_concurrent`: nodes of one rack that may be out at once. `reboots_per_hour`: restarts of the whole fleet.
    - `effects_at_once`: effects that run at the same time. `per_minute`: effects that may start per pool and minute.
      Cordon and uncordon take no time and do not count here.
    """

    pool_percent: float = Field(gt=0, le=100)
    rack_concurrent: int = Field(ge=1)
    reboots_per_hour: int = Field(ge=1)
    effects_at_once: EffectConcurrency = Field(default_factory=EffectConcurrency)
    per_minute: int = Field(default=60, ge=1)


def count_allowed_out(size: int, percent: float) -> int:
    """Return how many nodes of a pool of this size may be out of service: at least one."""
    return max(1, int(size * percent / 100))


class RackRule(StrictModel):
    """A rack of such nodes is one machine of `of` nodes. With more than `more_than` of them out, the rack is cordoned.

    The nodes keep their jobs and their state. They are uncordoned when enough of them serve again. One rule cordons at
    most `at_once` racks of a pool: more racks at the same time suggest a cause outside the racks.

    `node_specs`: the kinds of nodes whose racks are meant.
    """

    node_specs: list[str] = Field(min_length=1)
    of: int = Field(ge=2)
    more_than: int = Field(ge=0)
    at_once: int = Field(default=2, ge=1)


class LearntRate(StrictModel):
    """From so many `weeks` of a pool's own history on, the last year says how many nodes with a fault class are usual.

    So many standard `deviations` more than usual are a series, though they are less than `percent`. History never
    teaches more than `percent`: a fleet that slowly gets worse does not get used to it.
    """

    weeks: int = Field(ge=4, le=52)
    deviations: float = Field(ge=1)
    source: str = Field(min_length=1)


class FaultClassWave(StrictModel):
    """One fault class on this share of a pool within `hours`, and on at least `min_nodes` nodes, is a series.

    So is that share of the pool's nodes that have a rack, a leaf switch, a firmware or a commit in common.
    `percent`: the share of these nodes. `learnt`: how the pool's own history makes it smaller.
    """

    hours: float = Field(gt=0)
    percent: float = Field(gt=0, le=100)
    min_nodes: int = Field(ge=2)
    learnt: LearntRate | None = None


class FaultBreakerLimits(StrictModel):
    """Faults on this share of a pool's nodes in service, and on at least `min_nodes`, stop all moves of the pool.

    A fault counts from its arrival in the ledger, whenever it happened.

    - `window_minutes`: faults of any class count that arrived within this time.
    - `by_class`: longer times, in which the nodes with one fault class count. Such a series holds back only that class,
      moves and tickets, until a person answers.
    - `held_hours`: a wave holds back a fault that only a log told for so long. Then it is answered within the limits.
    - `drift`: fault classes that a merged change of firmware or configuration causes. They are never a wave.

    `percent`: the share that stops the pool.
    """

    percent: float = Field(gt=0, le=100)
    min_nodes: int = Field(ge=2)
    window_minutes: float = Field(gt=0)
    by_class: list[FaultClassWave] = Field(default=[])
    held_hours: float = Field(default=24, gt=0)
    drift: list[str] = Field(default=[])
    source: str = ""

    @property
    def longest_hours(self) -> float:
        """How long an arrived fault counts, in hours."""
        return max(self.window_minutes / 60, *(wave.hours for wave in self.by_class), 0)

    def list_shares(self) -> list[tuple[tuple[str | int, ...], float, int]]:
        """Return the path within the policy, the percentage and the least number of nodes of each wave."""
        waves = enumerate(self.by_class)
        return [
            (("breaker",), self.percent, self.min_nodes),
            *((("breaker", "by_class", number), wave.percent, wave.min_nodes) for number, wave in waves),
        ]


class HoldReminder(StrictModel):
    """A reminder of a person's hold is sent every `remind_hours`."""

    remind_hours: float = Field(gt=0)


class PendingReminder(StrictModel):
    """A reminder of a pending decision, with the jobs that block it, is sent every `remind_hours`.

    `by_hand`: actions taken at once while a person's move waits.
    """

    remind_hours: float = Field(default=24, gt=0)
    by_hand: list[Literal["cordon"]] = Field(default=["cordon"])


class CordonReassertion(StrictModel):
    """If somebody uncordons a node that is out, it is cordoned again, at most `again` times in `window_hours`.

    After that, the node stays uncordoned and a ticket asks people, until the window allows it again.

    `overrule`: patterns (`*` matches anything) of the reasons of others' cordons, drains and taints that assay may
    overrule. While any other stands, assay does not restart, flash, drain or open the node: it says what it would do.
    """

    overrule: list[str] = Field(default=[])
    again: int = Field(default=3, ge=1)
    window_hours: float = Field(default=24, gt=0)
    source: str = ""


_COMMITTED_FILE = r"^\w[\w-]*([./]\w[\w-]*)*$"


class CommitTrust(StrictModel):
    """Which commits of the fleet repository the controller accepts.

    `signed`: only commits with an SSH signature by a key in the file `allowed_signers` (see ssh-keygen(1)). Every
    commit since the accepted one counts. `forge_keys` is a file of armored PGP public keys: a merge that the forge made
    and signed with one of them counts too, if it holds nothing but the merge of its two parents.

    `allowed_signers`: the path of the signers' keys. `forge_keys`: the path of the forge's keys.
    """

    signed: bool
    allowed_signers: str = Field(default="specs/allowed_signers", pattern=_COMMITTED_FILE)
    forge_keys: str = Field(default="", pattern=f"^$|{_COMMITTED_FILE}")


class EffectRetryPolicy(StrictModel):
    """How often one action is attempted.

    An attempt that raised an error is repeated after `waits_minutes` of the fleet's time; the last wait applies to all
    further attempts. An action that ran without error and did not help has failed and is not repeated, unless a merge
    was adopted while zap or configure ran. After `deadline_minutes` of real time, nothing of an attempt still runs,
    even if its controller died. `attempts`: how many attempts in all.
    """

    attempts: int = Field(default=3, ge=1, le=10)
    waits_minutes: list[float] = Field(default=[1, 5], min_length=1)
    deadline_minutes: float = Field(default=60, gt=0, le=1440)
    source: str = ""

    @property
    def backoff(self) -> Backoff:
        """The waits between attempts, in seconds of the fleet's clock."""
        return Backoff(tuple(minutes * 60 for minutes in self.waits_minutes), factor=1.0)

    @property
    def deadline_s(self) -> float:
        """The deadline in seconds."""
        return self.deadline_minutes * 60


class HandOverProof(StrictModel):
    """What proves one point of a hand-over: all that is given.

    `actions`: one of them is verified in this stay. `checks`: each passed since then on all that it is due for, by the
    names of their functions.
    """

    actions: list[ActionName] = Field(default=[])
    checks: list[str] = Field(default=[])

    @model_validator(mode="after")
    def _proves_something(self) -> HandOverProof:
        if not self.actions and not self.checks:
            raise ValueError("a proof needs `actions` or `checks`")
        return self


class HandOverRules(StrictModel):
    """What proves that nothing of a customer is left on a node. The inventory says whose a node is: `customer`.

    A node that served another customer is opened only out of `state`, and only with all `proofs`, by name: the decision
    names each. A node in service that the inventory gives to another customer goes to `closed` and waits for people.
    `fresh_hours`: how old the evidence of checks may be.
    """

    state: str
    closed: str
    fresh_hours: float = Field(default=24, gt=0)
    proofs: dict[SpecName, HandOverProof] = Field(min_length=1)


OperationName = Literal[
    "cordon",
    "uncordon",
    "maintenance",
    "gpu-reset",
    "reboot",
    "power-cycle",
    "power-off",
    "power-on",
    "reimage",
    "zap",
    "wipe",
    "replace",
    "retire",
]


class OperationRule(StrictModel):
    """How one operation is carried out: the node goes `to` a state, whose `entry` does it.

    `now`: it never waits for the node's jobs. `origins`: the states in which it may be ordered; none: all that lead
    there. `customers_at_once`: how many nodes of theirs customers may have under this operation at the same time, in
    one pool; 0: it is for operators only. `lead_hours`: one that is planned begins no sooner, so that customers hear of
    it in time. `defer_hours`: for so long in all may customers defer a planned one on their nodes.
    """

    to: str
    now: bool = False
    origins: list[str] = Field(default=[])
    customers_at_once: int = Field(default=0, ge=0)
    lead_hours: float = Field(default=72, ge=0)
    defer_hours: float = Field(default=336, ge=0)
