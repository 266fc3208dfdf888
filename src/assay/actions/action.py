"""What an action is: something done to a node that can be done again after a crash, and proved by looking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from assay.actions.workloads import Workloads
from assay.ledger.store import Ledger
from assay.model.clock import Clock
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node
from assay.observe.store import EvidenceStore

Facts = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """What an action works with.

    `evidence` is what was last collected; an action that must know reads the world itself. `tell` shows one line
    of progress. `home` is the folder of assay's own data (`.assay/`), where node locks and runner folders lie.
    """

    fleet: Fleet
    ledger: Ledger
    clock: Clock
    home: Path
    reports: Path
    workloads: Callable[[Node], Workloads]
    evidence: EvidenceStore
    tell: Callable[[str], None]

    def scheduler(self, node: str) -> Workloads:
        """Return the adapter of the scheduler that places jobs on a node."""
        return self.workloads(self.fleet.nodes[node])


@dataclass(frozen=True, slots=True)
class Intent:
    """One effect to be: `action` on `node`, decided by `decision` because of `reason`.

    `before` holds what the action read before anything was done; it is what the proof compares with.
    """

    effect: str
    action: str
    node: str
    decision: str
    reason: str
    at: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verification:
    """What re-reading the world says: done, not done, or (None) that it cannot tell.

    `waiting` marks an effect that is under way and not ours to hurry, as a drain that waits for a customer's job.
    """

    done: bool | None
    reason: str
    facts: Facts = field(default_factory=dict)
    waiting: bool = False


class Unfinished(Trouble):
    """Trouble after which nobody knows how far it got: something may still come of it, so it proves nothing."""


class Action(Protocol):
    """Each module of this package that is named like an action is one. All three may raise Trouble.

    `COMPENSATION` of `assay.actions.catalogue` names what undoes it where its decision is withdrawn.
    """

    @property
    def patience_s(self) -> float:
        """How long, in seconds of the fleet's clock, `verify` is asked again before its answer is final."""

    def before(self, ctx: Context, intent: Intent) -> Facts:
        """Read what `verify` will compare with. Changes nothing."""

    def run(self, ctx: Context, intent: Intent) -> None:
        """Bring it about from however far it has got: after a crash the same intent is run again."""

    def verify(self, ctx: Context, intent: Intent) -> Verification:
        """Re-read the world and say whether the intent is done."""
