"""Where one node is and how it got there, as the ledger tells it. All times are ISO 8601 UTC, in one written form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from assay.model.decision import DecisionCause

if TYPE_CHECKING:  # history is read without the specs' machinery, which takes its time to load
    from assay.model.specs.fault_catalog import FaultBlame, FaultSeverity, Remedy

EffectStatus = Literal["intent", "done", "verified", "failed", "unknown"]
FaultResponse = Literal["", "waits", "acted", "breaker"]


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """A fault that history holds. `marks`: how far each source has been read; `times`: its last sightings.

    `answer`: "waits" once a decision waits to move the node because of it, "acted" once one moved it, "breaker" once
    the breaker, which held it back at `answered_at`, took it out of the play. `cleared_at` is "" while it is open.
    """

    id: str
    fault_class: str
    subject: str
    severity: FaultSeverity
    blame: FaultBlame
    remedy: Remedy
    count: int
    first_seen: str
    last_seen: str
    detail: str
    marks: Mapping[str, str] = field(default_factory=dict)
    times: tuple[str, ...] = ()
    response: FaultResponse = ""
    responded_at: str = ""
    cleared_at: str = ""

    @property
    def is_open(self) -> bool:
        """Whether nothing has cleared it."""
        return not self.cleared_at


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """One effect as far as it got: `at` is when its standing last changed, `decision` what asked for it."""

    id: str
    action: str
    decision: str
    standing: EffectStatus
    at: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RepairRecord:
    """A moment before which no pass counts: a repair verified, a person's certification, or a part replaced."""

    kind: str
    at: str
    id: str


@dataclass(frozen=True, slots=True)
class TransitionRecord:
    """One transition, with the decision behind it ("" where a person or the inventory moved the node)."""

    at: str
    origin: str
    target: str
    decision: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class PendingDecision:
    """A decision that waits: for the node to be idle. `rule` is its rule as written; `blockers` were its jobs."""

    decision: str
    to: str
    since: str
    rule: str
    remedy: str
    because: tuple[DecisionCause, ...]
    blockers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperatorNote:
    """What a person said: a hold or a certification. `until` is when a hold ends (ISO 8601 UTC), "" where open."""

    id: str
    who: str
    reason: str
    at: str
    until: str = ""


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """Where a person wants the node to be. It stands until it is there; `now`: without waiting for it to be idle."""

    id: str
    to: str
    who: str
    reason: str
    at: str
    now: bool = False


@dataclass(frozen=True, slots=True)
class WithdrawnDecision:
    """The last decision that waited and was withdrawn in this stay, by which decision (or entry, where a person did).

    `cordoned`: it had begun to cordon the node, which is to be undone.
    """

    decision: str
    by: str
    reason: str
    cordoned: bool


@dataclass(frozen=True, slots=True)
class LostCordon:
    """A time at which a node that should be closed was read as open, and the `decision` that closes it again.

    `stay` it was in; `waits`: the decision that waited then, "" for none.
    """

    decision: str
    at: str
    reason: str
    stay_id: str
    pending_decision: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node. `stay` is the id of the entry that brought it here, `decision` the decision behind that ("": none).

    `because` is why it came here; `note` what was recorded since that needs hands or keeps it here.
    `certified` is a certification given during this stay. `spared` is when the breaker last held a deadline of this
    stay back ("": never). `decided` holds the id of every decision ever made here.
    """

    node: str
    pool: str
    state: str
    since: str
    stay_id: str
    reason: str
    enrolled_at: str
    decision: str = ""
    note: str = ""
    pending: PendingDecision | None = None
    hold: OperatorNote | None = None
    certified: OperatorNote | None = None
    move_request: MoveRequest | None = None
    withdrawn: WithdrawnDecision | None = None
    lost_cordons: tuple[LostCordon, ...] = ()
    deadline_held_at: str = ""
    faults: tuple[FaultRecord, ...] = ()
    repairs: tuple[RepairRecord, ...] = ()
    transitions: tuple[TransitionRecord, ...] = ()
    effects: tuple[EffectRecord, ...] = ()
    decision_ids: frozenset[str] = frozenset()

    @property
    def repaired_at(self) -> str:
        """When the node was last repaired or certified, "" for never."""
        return max((repair.at for repair in self.repairs), default="")

    @property
    def unsettled_effects(self) -> tuple[EffectRecord, ...]:
        """Effects that were begun and not settled by a reading of the world."""
        return tuple(effect for effect in self.effects if effect.standing in ("intent", "done", "unknown"))

    def find_effect(self, decision: str, action: str) -> EffectRecord | None:
        """Return the effect that a decision asked for, None where it was not begun."""
        return next((e for e in self.effects if e.decision == decision and e.action == action), None)
