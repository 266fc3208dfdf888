"""The rollouts of a ledger, projected from its entries: their nodes, the orders that were given, pauses and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from assay.decide.state.node_state import NodeState
from assay.model.entries.node_entries import (
    MoveEntry,
    NodeRenamedEntry,
    OperationDeferredEntry,
    OperationReservedEntry,
    ZapRequestedEntry,
)
from assay.model.entries.rollouts import (
    CommitAdoptedEntry,
    NodeProvenEntry,
    PauseRule,
    RolloutAbortedEntry,
    RolloutFinishedEntry,
    RolloutPausedEntry,
    RolloutResumedEntry,
    RolloutStartedEntry,
    RolloutSupersededEntry,
)
from assay.model.facts import fact, frozen, internal
from assay.model.ledger_entry import LedgerEntry, Projection
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.text.lists import fold_names, format_list

RolloutStatus = Literal["running", "paused", "finished", "aborted", "superseded"]
RULE_NAMES = {
    "failures": "the rule for failures",
    "hold": "the rule for holds",
    "breaker": "the breaker",
    "plan": "the rule for reviewed plans",
    "age": "the rule for orders' age",
}
SHOWN_ID = 8
"""So many characters of a rollout's id are shown, and are enough to name it."""


def shorten_id(rollout: str) -> str:
    """Return the id of a rollout as people see it."""
    return rollout[:SHOWN_ID]


@frozen
class RolloutMember:
    """One node of a rollout. `to` is the state that brings the change; `base` the commit that it was brought to before.

    `order` is the id of its order and `order_seq` that entry's number, "" and 0 before. `proof` says what proves that
    the node has the change, "" before. `is_under_way`: an earlier rollout had taken it out, and it needs another order.
    `deferred_to`: it leaves no sooner; `deferrals` counts how often it was deferred.
    """

    node: str
    to: str
    reason: str
    base: str
    is_under_way: bool = False
    order: str = ""
    order_seq: int = 0
    ordered_at: str = ""
    proof: str = ""
    deferred_to: str = ""
    deferrals: int = 0
    reserved: str = ""

    def has_left(self, policy: LifecyclePolicy, state: NodeState) -> bool:
        """Whether the node is out of service for this rollout, or is back with what its target state does."""
        is_repaired = any(repair.seq > self.order_seq for repair in state.repairs)
        return bool(self.order) and (is_repaired or not policy.is_in_service(state.state))

    @property
    def is_ordered_out(self) -> bool:
        """Whether this rollout, or the one that it replaces, ordered the node out of service."""
        return bool(self.order) or self.is_under_way


@fact
class RolloutPause:
    """Who or which rule paused a rollout."""

    who: str
    """Who paused it: a person, or assay."""
    reason: str
    """Why."""
    at: str
    """When: ISO 8601 with the offset of UTC."""
    rule: PauseRule = ""
    """What made assay pause it: failures, a hold, a breaker or its plan; "" for a person."""
    nodes: tuple[str, ...] = internal(default=())


@frozen
class Rollout:
    """A rollout as the ledger tells it. Times are ISO 8601 UTC.

    `pauses` counts them. `accepted` are the nodes because of which it was paused, and in spite of which it was resumed.
    `end_reason` says how it ended, "" while it is active; `replaced_by` is the rollout that took it over.
    """

    id: str
    base: str
    commit: str
    started_at: str
    started_seq: int
    members: Mapping[str, RolloutMember]
    plan: str = ""
    takes_back: bool = False
    status: RolloutStatus = "running"
    pause: RolloutPause | None = None
    pauses: int = 0
    accepted: frozenset[str] = frozenset()
    ended_at: str = ""
    end_reason: str = ""
    replaced_by: str = ""

    @property
    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self.status in ("running", "paused")

    @property
    def unproven(self) -> frozenset[str]:
        """The nodes of which nothing proves yet that they have the change."""
        return frozenset(name for name, member in self.members.items() if not member.proof)

    @property
    def next_wave(self) -> str:
        """When its next wave goes, as far as the ledger tells."""
        out = fold_names(name for name in self.unproven if self.members[name].is_ordered_out)
        waits = f"waits for the proof of {format_list(out, 4)}" if out else "is due"
        return f"it is paused: {self.pause.reason}" if self.pause else f"its next wave {waits}"


@dataclass
class RolloutHistory:
    """Rollouts that grow with the ledger. Apply each entry once, in order.

    `adopted` is the newest entry that names the commit to which the fleet is brought, None before the first.
    `uncompared` are all such entries whose commit could not be compared with the one before.
    """

    adopted: LedgerEntry | None = None
    rollouts: dict[str, Rollout] = field(default_factory=dict)
    uncompared: list[LedgerEntry] = field(default_factory=list)

    _fresh_members: dict[str, dict[str, RolloutMember]] = field(default_factory=dict)

    def copy(self) -> RolloutHistory:
        """Return one that changes for itself."""
        return RolloutHistory(self.adopted, dict(self.rollouts), list(self.uncompared))

    def apply(self, entry: LedgerEntry) -> RolloutHistory:
        """Apply the next entry, and return this history. One of another kind has no effect."""
        match entry.kind:
            case CommitAdoptedEntry.kind:
                self.adopted = entry
                self.uncompared += [entry] if CommitAdoptedEntry.read(entry).uncompared else []
            case RolloutStartedEntry.kind:
                started = _start(entry, self.find_active())
                self.rollouts[started.id] = started
            case MoveEntry.kind | ZapRequestedEntry.kind:
                self._apply_order(entry)
            case NodeProvenEntry.kind:
                self._apply_proof(entry)
            case OperationDeferredEntry.kind:
                self._apply_deferral(entry)
            case OperationReservedEntry.kind:
                self._apply_reservation(entry)
            case NodeRenamedEntry.kind:
                self._rename(NodeRenamedEntry.read(entry).old, entry.node)
            case kind if kind in _CHANGES:
                self._apply_change(entry)
        return self

    def find_active(self) -> Rollout | None:
        """Return the newest rollout that has not ended, None without one."""
        return next((rollout for rollout in reversed(self.rollouts.values()) if rollout.is_active), None)

    def find_unfinished(self) -> Rollout | None:
        """Return the active rollout; else the newest if it was aborted: its nodes may not have the commit of today."""
        last = next(reversed(self.rollouts.values()), None)
        return self.find_active() or (last if last and last.status == "aborted" else None)

    def find_uncompared(self) -> LedgerEntry | None:
        """Return the entry of the adopted commit if it could not be compared with the one before, else None."""
        return self.uncompared[-1] if self.uncompared and self.uncompared[-1] is self.adopted else None

    def _apply_change(self, entry: LedgerEntry) -> None:
        """Pause an active rollout, let it go on, or end it."""
        change = _CHANGES[entry.kind].read(entry)
        known = self.rollouts.get(change.rollout)
        if known is None or not known.is_active:
            return
        ended = replace(known, pause=None, ended_at=entry.at)
        match change:
            case RolloutPausedEntry():
                pause = RolloutPause(change.who, change.reason, entry.at, change.rule, change.nodes)
                changed = replace(known, status="paused", pause=pause, pauses=known.pauses + 1)
            case RolloutResumedEntry():
                accepted = known.accepted | frozenset(known.pause.nodes if known.pause else ())
                changed = replace(known, status="running", pause=None, accepted=accepted)
            case RolloutAbortedEntry():
                reason = f"aborted by {change.who}: {change.reason}"
                changed = replace(ended, status="aborted", end_reason=reason)
            case RolloutSupersededEntry():
                changed = replace(ended, status="superseded", end_reason=change.reason, replaced_by=change.by)
            case RolloutFinishedEntry():
                changed = replace(ended, status="finished", end_reason=change.reason)
        self.rollouts[known.id] = changed

    def _apply_order(self, entry: LedgerEntry) -> None:
        rollout = self.rollouts.get(MoveEntry.read(entry).rollout)
        member = rollout.members.get(entry.node) if rollout else None
        if rollout and member and not member.order:
            ordered = replace(member, order=entry.id, order_seq=entry.seq, ordered_at=entry.at)
            self._replace_member(rollout, ordered)

    def _apply_proof(self, entry: LedgerEntry) -> None:
        proof = NodeProvenEntry.read(entry)
        rollout = self.rollouts.get(proof.rollout)
        if rollout and rollout.is_active and entry.node in rollout.members:
            self._replace_member(rollout, replace(rollout.members[entry.node], proof=proof.reason))

    def _apply_deferral(self, entry: LedgerEntry) -> None:
        deferral = OperationDeferredEntry.read(entry)
        rollout = self.rollouts.get(deferral.operation)
        if rollout and rollout.is_active and (member := rollout.members.get(entry.node)):
            later = replace(member, deferred_to=deferral.starts_at, deferrals=member.deferrals + 1)
            self._replace_member(rollout, later)

    def _apply_reservation(self, entry: LedgerEntry) -> None:
        answer = OperationReservedEntry.read(entry)
        rollout = self.rollouts.get(answer.operation)
        if rollout and (member := rollout.members.get(entry.node)):
            self._replace_member(rollout, replace(member, reserved=answer.reason))

    def _replace_member(self, rollout: Rollout, member: RolloutMember) -> None:
        """Put a member into a copy of all: one copy for all entries that are applied together."""
        if rollout.members is not self._fresh_members.get(rollout.id):
            self._fresh_members[rollout.id] = dict(rollout.members)
            self.rollouts[rollout.id] = replace(rollout, members=self._fresh_members[rollout.id])
        self._fresh_members[rollout.id][member.node] = member

    def _rename(self, old: str, new: str) -> None:
        for rollout in [active for active in self.rollouts.values() if active.is_active and old in active.members]:
            renamed = {new if name == old else name: member for name, member in rollout.members.items()}
            renamed[new] = replace(renamed[new], node=new)
            self.rollouts[rollout.id] = replace(rollout, members=renamed)


def _start(entry: LedgerEntry, earlier: Rollout | None) -> Rollout:
    """Return a rollout that begins. Orders that it keeps are those of the `earlier` one, which it replaces."""
    started = RolloutStartedEntry.read(entry)
    members: dict[str, RolloutMember] = {}
    for group in started.groups:
        for name in group.nodes:
            known = earlier.members.get(name) if earlier and group.earlier == "kept" else None
            is_replaced = group.earlier == "replaced"
            fresh = RolloutMember(name, group.to, group.reason, group.base, is_replaced)
            if known:
                fresh = replace(fresh, order=known.order, order_seq=known.order_seq, ordered_at=known.ordered_at)
            elif earlier and name in earlier.members and not started.takes_back:
                fresh = replace(fresh, deferred_to=earlier.members[name].deferred_to)
            members[name] = fresh
    which = (started.rollout, started.base, started.commit, entry.at, entry.seq)
    return Rollout(*which, members, started.plan, started.takes_back)


RolloutChange = (
    RolloutPausedEntry | RolloutResumedEntry | RolloutAbortedEntry | RolloutSupersededEntry | RolloutFinishedEntry
)
_CHANGES: dict[str, type[RolloutChange]] = {change.kind: change for change in get_args(RolloutChange)}
ROLLOUTS = Projection(
    kinds=frozenset(
        (
            *_CHANGES,
            CommitAdoptedEntry.kind,
            RolloutStartedEntry.kind,
            NodeProvenEntry.kind,
            OperationDeferredEntry.kind,
            OperationReservedEntry.kind,
            MoveEntry.kind,
            ZapRequestedEntry.kind,
            NodeRenamedEntry.kind,
        )
    ),
    initial=RolloutHistory,
    step=RolloutHistory.apply,
    copy=RolloutHistory.copy,
)
