"""What an action is: something done to a node that can be done again after a crash, and proved by looking.

Every action by the name that a policy uses for it.

How hard the fleet's policy wants an action to be tried.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from assay.ledger.store import Ledger
from assay.model.clock import Clock
from assay.model.decision import ActionName
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.policy_sections import EffectRetryPolicy
from assay.observe.evidence_store import EvidenceStore
from assay.schedulers.scheduler_adapter import SchedulerAdapter, load_scheduler_adapter

EffectFacts = dict[str, Any]


@dataclass(frozen=True)
class ActionContext:
    """One fleet, its ledger and its evidence: what actions, and through ControllerContext the controller, work with.

    `evidence` is what was last collected; an action that must know reads the world itself. `progress` shows one line
    to a person who waits. `home` is the folder of assay's own data (`.assay/`), with node locks and runner folders.
    """

    fleet: Fleet
    ledger: Ledger
    evidence: EvidenceStore
    clock: Clock
    home: Path
    reports: Path
    workloads: Callable[[Node], SchedulerAdapter] = load_scheduler_adapter
    progress: Callable[[str], None] = lambda _: None

    def scheduler(self, node: str) -> SchedulerAdapter:
        """Return the adapter of the scheduler that places jobs on a node."""
        return self.workloads(self.fleet.nodes[node])


@dataclass(frozen=True, slots=True)
class EffectIntent:
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
class EffectVerification:
    """What re-reading the world says: done, not done, or (None) that it cannot tell.

    `waiting` marks an effect that is under way and not ours to hurry, as a drain that waits for a customer's job.
    """

    done: bool | None
    reason: str
    facts: EffectFacts = field(default_factory=dict)
    is_waiting: bool = False


class UnfinishedAction(AssayError):
    """Trouble after which nobody knows how far it got: something may still come of it, so it proves nothing."""


class ActionModule(Protocol):
    """Each module of this package that is named like an action is one. All three may raise Trouble.

    `COMPENSATION` of `assay.actions.action` names what undoes it where its decision is withdrawn.
    """

    @property
    def patience_s(self) -> float:
        """How long, in seconds of the fleet's clock, `verify` is asked again before its answer is final."""

    def before(self, ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
        """Read what `verify` will compare with. Changes nothing."""

    def run(self, ctx: ActionContext, intent: EffectIntent) -> None:
        """Bring it about from however far it has got: after a crash the same intent is run again."""

    def verify(self, ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
        """Re-read the world and say whether the intent is done."""


ACTION_NAMES = ("cordon", "uncordon", "drain", "drain-now", "reboot", "powercycle", "zap", "dossier")
BATCHED_ACTIONS = ("cordon", "uncordon")
"""Actions that are done to many nodes at once: doing them twice is doing them once, and one reading proves them."""
UNDO_ACTIONS = {"cordon": "uncordon", "drain": "uncordon", "drain-now": "uncordon"}
"""What is done where the decision behind an action is withdrawn."""
ACTIONS_WITHOUT_UNDO = {
    "uncordon": "a node that serves again is taken out by a decision of its own",
    "reboot": "a boot that happened has happened; earlier passes no longer count",
    "powercycle": "as for reboot",
    "zap": "the bundle says which firmware is right; an older one is brought by naming the older bundle",
    "dossier": "a file more does no harm",
}
"""The other actions, and why nothing undoes them. Jobs that drain-now ended are requeued by their scheduler."""


def load_action(name: str) -> ActionModule:
    """Return the action called `name`. Raises Trouble for a name that is not in `ACTION_NAMES`."""
    if name not in ACTION_NAMES:
        raise AssayError(
            f"there is no action {name!r}", fix=f"the lifecycle policy may ask for: {', '.join(ACTION_NAMES)}"
        )
    return cast(ActionModule, importlib.import_module(f"assay.actions.{name.replace('-', '_')}"))


DEFAULT_EFFORT = EffectRetryPolicy()


def find_action_effort(fleet: Fleet, action: str) -> EffectRetryPolicy:
    """Return what the lifecycle policy says of an action, else what is usual."""
    policy = next(iter(fleet.policies.values()), None)
    return policy.effects.get(cast(ActionName, action), DEFAULT_EFFORT) if policy else DEFAULT_EFFORT
