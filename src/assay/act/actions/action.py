"""What an action is: one module of this package, named as the policy names it (`drain_now` for `drain-now`).

An action may be repeated after a crash, and is proved by reading the world again: `wait_until` polls until something
can be seen. `require_effect` refuses what a node's profile does not name in `may`. To add an action, add its name to
ActionName and its module here.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, get_args

from assay.act.loop.projections import read_node_states
from assay.adapters.bmc.errors import BmcLoginRefused, BmcUntrusted
from assay.adapters.scheduler import SchedulerAdapter, load_scheduler_adapter
from assay.model.backoff import Backoff
from assay.model.clock import Clock
from assay.model.decision import ActionName
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.management_profile import FarEffect
from assay.model.specs.policy_sections import EffectRetryPolicy
from assay.observe.evidence_store import EvidenceStore

if TYPE_CHECKING:
    from assay.ledger.store import Ledger


ACTION_NAMES: tuple[str, ...] = tuple(name for name in get_args(ActionName) if name != "ticket")
"""The actions that have a module. `ticket` asks for a technician; tickets/ sees to that."""
DEFAULT_EFFORT = EffectRetryPolicy()
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


@frozen
class EffectIntent:
    """One effect that is to happen: `action` on `node`, for the decision with the id `decision` and its `reason`.

    `before` is what the action read before anything was done; the verification compares with it. `named_by` is the
    ledger entry that gave the machine its name, "" if that is not known: another machine may have the name later.
    """

    effect: str
    action: str
    node: str
    decision: str
    reason: str
    at: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    named_by: str = ""


@frozen
class EffectVerification:
    """What reading the world again says: done, not done, or None if it cannot tell.

    `is_waiting`: the effect is under way and waits for others, such as a drain for a customer's job.
    """

    done: bool | None
    reason: str
    facts: EffectFacts = field(default_factory=dict)
    is_waiting: bool = False


def is_handed_over(context: ActionContext, node: str) -> bool:
    """Whether a node is in the state of a hand-over: an action that has nothing to do proves nothing there."""
    known = read_node_states(context.ledger).get(node)
    policy = context.fleet.policy_of_state.get(known.state) if known else None
    return bool(known and policy and policy.hand_over and policy.hand_over.state == known.state)


class UnfinishedAction(AssayError):
    """The action was cut short, and parts of it may still happen. So the error proves nothing."""


class ActionModule(Protocol):
    """The contract of an action's module. Its three functions may raise AssayError."""

    @property
    def patience_s(self) -> float:
        """How long `verify` is repeated before its answer is final, in seconds of the fleet's clock."""

    @property
    def undone_by(self) -> str:
        """The action that undoes this one when its decision is withdrawn, "" if none does. The module says why."""

    def before(self, context: ActionContext, intent: EffectIntent) -> EffectFacts:
        """Read what `verify` will compare with. Changes nothing."""

    def run(self, context: ActionContext, intent: EffectIntent) -> None:
        """Bring the effect about from however far it has got: after a crash the same intent runs again."""

    def verify(self, context: ActionContext, intent: EffectIntent) -> EffectVerification:
        """Read the world again and say whether the effect has happened."""


def load_action(name: str) -> ActionModule:
    """Return the action called `name`. Raises AssayError for a name that is not in ACTION_NAMES."""
    if name not in ACTION_NAMES:
        raise AssayError(
            f"there is no action {name!r}", fix=f"use one of these in the policy: {', '.join(ACTION_NAMES)}"
        )
    return cast(ActionModule, importlib.import_module(f"assay.act.actions.{name.replace('-', '_')}"))


def find_action_effort(fleet: Fleet, action: str) -> EffectRetryPolicy:
    """Return the retries and the deadline of an action: the policy's, else the defaults."""
    policy = next(iter(fleet.policies.values()), None)
    return policy.effects.get(cast(ActionName, action), DEFAULT_EFFORT) if policy else DEFAULT_EFFORT


Result = TypeVar("Result")

POLL_BACKOFF = Backoff((0.1,), factor=1.3, longest_s=5.0)
REFUSAL_TOLERANCE_S = 30.0
"""How long a BMC that starts may refuse a login that it accepts later."""


def wait_until(
    look: Callable[[], Result | None],
    deadline_s: float,
    goal: str,
    where: str = "",
    refused_s: float = REFUSAL_TOLERANCE_S,
) -> Result:
    """Return the first result of `look`. None and AssayError mean "not yet". `goal` says what is expected.

    Raises AssayError after `deadline_s` real seconds, with the last error of `look`. After `refused_s` of
    refused logins or another certificate, raises that: only a BMC that starts gets over it.
    """
    ends_at, polls, refused_at = time.monotonic() + deadline_s, 0, 0.0
    while True:
        error = None
        try:
            if (seen := look()) is not None:
                return seen
        except AssayError as met:
            error = met
        is_refused = isinstance(error, BmcLoginRefused | BmcUntrusted)
        refused_at = (refused_at or time.monotonic()) if is_refused else 0.0
        if error and refused_at and time.monotonic() - refused_at > refused_s:
            raise type(error)(f"{goal}: {error.what}", where=error.where or where, fix=error.fix)
        if time.monotonic() > ends_at:
            raise AssayError(f"{goal}: not within {deadline_s:g} s{f'; {error}' if error else ''}", where=where)
        polls += 1
        time.sleep(POLL_BACKOFF.wait_s(polls))


def require_effect(fleet: Fleet, name: str, effect: FarEffect, need: str) -> None:
    """Raise AssayError unless the profile of a node names the effect. `need` is such as "gpu needs a cycle"."""
    profile = fleet.profile_of(name)
    if effect not in profile.may:
        key = f"ManagementProfile/{profile.name}"
        where = fleet.lines.get((key, "may")) or fleet.lines.get((key, ""), key)
        fix = f"add {effect} to `may` of the profile, or take out of the specs what asks for it"
        raise AssayError(f"{name}: {need}, and its profile {profile.name} does not allow that", where=where, fix=fix)
