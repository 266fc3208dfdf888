"""Where one node is and how it got there, as the ledger tells it. All times are ISO 8601 UTC, in one written form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from assay.model.decision import Cause

if TYPE_CHECKING:  # history is read without the specs' machinery, which takes its time to load
    from assay.model.faults import Blame, Remedy, Severity

Standing = Literal["intent", "done", "verified", "failed", "unknown"]
Answer = Literal["", "waits", "acted", "breaker"]


@dataclass(frozen=True, slots=True)
class Known:
    """A fault that history holds. `marks`: how far each source has been read; `times`: its last sightings.

    `answer`: "waits" once a decision waits to move the node because of it, "acted" once one moved it, "breaker" once
    the breaker, which held it back at `answered_at`, took it out of the play. `cleared_at` is "" while it is open.
    """

    id: str
    fault_class: str
    subject: str
    severity: Severity
    blame: Blame
    remedy: Remedy
    count: int
    first_seen: str
    last_seen: str
    detail: str
    marks: Mapping[str, str] = field(default_factory=dict)
    times: tuple[str, ...] = ()
    answer: Answer = ""
    answered_at: str = ""
    cleared_at: str = ""

    @property
    def open(self) -> bool:
        """Whether nothing has cleared it."""
        return not self.cleared_at


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect as far as it got: `at` is when its standing last changed, `decision` what asked for it."""

    id: str
    action: str
    decision: str
    standing: Standing
    at: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Repair:
    """A moment before which no pass counts: a repair verified, a person's certification, or a part replaced."""

    what: str
    at: str
    id: str


@dataclass(frozen=True, slots=True)
class Move:
    """One transition, with the decision behind it ("" where a person or the inventory moved the node)."""

    at: str
    origin: str
    target: str
    decision: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """A decision that waits: for the node to be idle. `rule` is its rule as written; `blockers` were its jobs."""

    decision: str
    to: str
    since: str
    rule: str
    remedy: str
    because: tuple[Cause, ...]
    blockers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Word:
    """What a person said: a hold or a certification. `until` is when a hold ends (ISO 8601 UTC), "" where open."""

    id: str
    who: str
    reason: str
    at: str
    until: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a person wants the node to be. It stands until it is there; `now`: without waiting for it to be idle."""

    id: str
    to: str
    who: str
    reason: str
    at: str
    now: bool = False


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The last decision that waited and was withdrawn in this stay, by which decision (or entry, where a person did).

    `cordoned`: it had begun to cordon the node, which is to be undone.
    """

    decision: str
    by: str
    reason: str
    cordoned: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """A time at which a node that should be closed was read as open, and the `decision` that closes it again.

    `stay` it was in; `waits`: the decision that waited then, "" for none.
    """

    decision: str
    at: str
    reason: str
    stay: str
    waits: str


@dataclass(frozen=True, slots=True)
class Story:
    """One node. `stay` is the id of the entry that brought it here, `decision` the decision behind that ("": none).

    `because` is why it came here; `note` what was recorded since that needs hands or keeps it here.
    `certified` is a certification given during this stay. `spared` is when the breaker last held a deadline of this
    stay back ("": never). `decided` holds the id of every decision ever made here.
    """

    node: str
    pool: str
    state: str
    since: str
    stay: str
    because: str
    enrolled_at: str
    decision: str = ""
    note: str = ""
    pending: Pending | None = None
    held: Word | None = None
    certified: Word | None = None
    asked: Asked | None = None
    withdrawn: Withdrawn | None = None
    opened: tuple[Opened, ...] = ()
    spared: str = ""
    faults: tuple[Known, ...] = ()
    repairs: tuple[Repair, ...] = ()
    moves: tuple[Move, ...] = ()
    effects: tuple[Effect, ...] = ()
    decided: frozenset[str] = frozenset()

    @property
    def repaired_at(self) -> str:
        """When the node was last repaired or certified, "" for never."""
        return max((repair.at for repair in self.repairs), default="")

    @property
    def in_flight(self) -> tuple[Effect, ...]:
        """Effects that were begun and not settled by a reading of the world."""
        return tuple(effect for effect in self.effects if effect.standing in ("intent", "done", "unknown"))

    def effect_of(self, decision: str, action: str) -> Effect | None:
        """Return the effect that a decision asked for, None where it was not begun."""
        return next((e for e in self.effects if e.decision == decision and e.action == action), None)
