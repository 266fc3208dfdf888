"""What becomes of each operation: its nodes, their states and times, read from the ledger's entries alone. Pure.

An operation is an order for each of its nodes. Whoever is killed meanwhile: the next process reads the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from assay.decide.state.node_projection import describe_causes
from assay.model.entries.effects import EffectIntentEntry, EffectProgressEntry, EffectTriedEntry
from assay.model.entries.node_entries import (
    DecisionEntry,
    DecisionWithdrawnEntry,
    MoveEntry,
    NodeRenamedEntry,
    OperationDeferredEntry,
    OperationDroppedEntry,
    OperationPlannedEntry,
    OperationReservedEntry,
    OrderedOperation,
    OrderOutlivedEntry,
    TransitionEntry,
    ZapRequestedEntry,
)
from assay.model.facts import extend, fact, frozen
from assay.model.ledger_entry import LedgerEntry, Projection
from assay.model.timestamps import parse_time

OperationState = Literal["planned", "accepted", "waiting", "running", "succeeded", "failed", "cancelled"]
"""`planned`: its time has not come. `accepted`: nobody has decided yet.

`waiting`: for jobs, limits or a person. `running`: the node has left.
"""
CUSTOMER = "customer"
"""The role of customers."""
ENDED: tuple[OperationState, ...] = ("succeeded", "failed", "cancelled")
_ORDER: tuple[OperationState, ...] = ("planned", "accepted", "waiting", "running", "failed", "cancelled", "succeeded")


@fact
class OperationOnNode:
    """How far an operation is on one of its nodes."""

    node: str
    """The name of the node."""
    state: OperationState
    """How far it is: planned, accepted, waiting, running, succeeded, failed or cancelled."""
    text: str
    """What it waits for, what is done, or the result, in words."""
    at: str
    """Since when: ISO 8601 with the offset of UTC."""
    order: str
    """The id of its entry in the ledger."""
    deferred_to: str = ""
    """When a rollout begins here, if it was deferred on this node: ISO 8601 with the offset of UTC; else ""."""


@fact
class OperationRecord:
    """An operation that was accepted, and what became of it."""

    id: str
    """What tells it from all others."""
    operation: str
    """Its name: cordon, reboot, and so on."""
    key: str
    """The key of the caller. The same key never makes a second operation."""
    who: str
    """Who ordered it."""
    role: str
    """The role of who ordered it; "" on the command line."""
    reason: str
    """Why, in that person's words."""
    state: OperationState
    """The state of the node that is least far; failed or cancelled as soon as all have ended, and one is so."""
    created_at: str
    """When it was accepted: ISO 8601 with the offset of UTC."""
    updated_at: str
    """When something last happened to it."""
    to: str
    """The state of the policy that carries it out."""
    now: bool
    """Whether it waits for no job."""
    nodes: tuple[OperationOnNode, ...]
    """How far it is on each node."""
    gpus: tuple[int, ...] = ()
    """The slots of the GPUs that it is about; none: all, if it is about GPUs."""
    starts_at: str = ""
    """When a planned one begins: ISO 8601 with the offset of UTC; "" for one that began at once."""
    ends_at: str = ""
    """When a planned one should end."""
    deferred_hours: float = 0.0
    """For how many hours customers have deferred it."""
    position: int = 0
    """The number of the ledger's entry that last changed it."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended on every node."""
        return self.state in ENDED

    def begins_on(self, each: OperationOnNode) -> str:
        """Return when a planned one begins on one of its nodes."""
        return max(self.starts_at, each.deferred_to)

    def find(self, node: str) -> OperationOnNode | None:
        """Return how far it is on a node, None if it is not for this node."""
        return next((each for each in self.nodes if each.node == node), None)


@frozen
class _OpenOrder:
    """The order of an operation that has not ended: its decisions, its effects, and the actions not yet proved."""

    operation: str
    order: str
    to: str
    unproved: frozenset[str]
    decisions: frozenset[str] = frozenset()
    effects: frozenset[str] = frozenset()
    arrival: str | None = None


@dataclass(slots=True)
class OperationHistory:
    """The operations by id, in their order. `open` is the one of each node that has not ended."""

    operations: dict[str, OperationRecord] = field(default_factory=dict)
    open: dict[str, _OpenOrder] = field(default_factory=dict)

    def copy(self) -> OperationHistory:
        """Return one that changes for itself."""
        return OperationHistory(dict(self.operations), dict(self.open))

    def apply(self, entry: LedgerEntry) -> OperationHistory:
        """Apply the next entry, and return this history."""
        match entry.kind:
            case MoveEntry.kind | ZapRequestedEntry.kind:
                self._apply_order(entry)
            case OperationPlannedEntry.kind:
                self._apply_plan(entry)
            case OperationDeferredEntry.kind:
                self._apply_deferral(entry)
            case OperationReservedEntry.kind:
                answer = OperationReservedEntry.read(entry)
                self._set_planned(entry, answer.operation, "planned", answer.reason)
            case OperationDroppedEntry.kind:
                dropped = OperationDroppedEntry.read(entry)
                self._set_planned(entry, dropped.operation, "cancelled" if dropped.who else "failed", dropped.reason)
            case NodeRenamedEntry.kind:
                self._rename(NodeRenamedEntry.read(entry).old, entry.node)
            case kind if entry.node in self.open and (handle := _HANDLERS.get(kind)):
                handle(self, entry, self.open[entry.node])
        return self

    def _apply_order(self, entry: LedgerEntry) -> None:
        """Begin an operation. Any later order for a node ends what has not begun there."""
        move = MoveEntry.read(entry)
        known = self.open.get(entry.node)
        if known and known.arrival is None and known.order != entry.id:
            self._set(entry, known, "cancelled", f"{move.who} ordered {move.to} instead: {move.reason}")
        if (asked := move.operation) is None:
            return
        on_node = OperationOnNode(entry.node, "accepted", "", entry.at, entry.id)
        record = self.operations.get(asked.id) or _begin(asked, move, entry)
        known_nodes = {each.node: each for each in record.nodes} | {entry.node: on_node}
        self.operations[asked.id] = _settle(record, entry, tuple(known_nodes.values()))
        self.open[entry.node] = _OpenOrder(asked.id, entry.id, move.to, frozenset(asked.actions))

    def _apply_plan(self, entry: LedgerEntry) -> None:
        plan = OperationPlannedEntry.read(entry)
        nodes = tuple(OperationOnNode(node, "planned", "", entry.at, entry.id) for node in plan.nodes)
        self.operations[plan.operation] = extend(
            OperationRecord,
            plan,
            id=plan.operation,
            operation=plan.name,
            state="planned",
            created_at=entry.at,
            updated_at=entry.at,
            nodes=nodes,
            deferred_hours=0.0,
            position=entry.seq,
        )

    def _apply_deferral(self, entry: LedgerEntry) -> None:
        deferral = OperationDeferredEntry.read(entry)
        if entry.node:  # it defers a rollout
            return
        record = self.operations[deferral.operation]
        later = (parse_time(deferral.starts_at) - parse_time(record.starts_at)).total_seconds() / 3600
        self.operations[record.id] = replace(
            record,
            starts_at=deferral.starts_at,
            ends_at=deferral.ends_at,
            nodes=tuple(replace(each, text="") for each in record.nodes),
            deferred_hours=record.deferred_hours + (later if deferral.role == CUSTOMER else 0.0),
            updated_at=entry.at,
            position=entry.seq,
        )

    def _set_planned(self, entry: LedgerEntry, operation: str, state: OperationState, text: str) -> None:
        """Change what has not begun: on one node or on all."""
        record = self.operations.get(operation)
        if record is None:  # it is a rollout's
            return
        nodes = tuple(
            OperationOnNode(each.node, state, text, entry.at, each.order)
            if each.state == "planned" and entry.node in ("", each.node)
            else each
            for each in record.nodes
        )
        self.operations[record.id] = _settle(record, entry, nodes)

    def _apply_decision(self, entry: LedgerEntry, known: _OpenOrder) -> None:
        decision = DecisionEntry.read(entry)
        if known.order not in {cause.id for cause in decision.causes}:
            return
        if decision.timing == "record":
            if decision.remedy == "wait":
                self._set(entry, known, "waiting", decision.causes[0].text)
            return
        self.open[entry.node] = replace(known, decisions=known.decisions | {decision.decision})
        waits = decision.timing == "pending"
        text = f"waits for {', '.join(decision.blockers)}" if waits else describe_causes(decision.causes)
        self._set(entry, self.open[entry.node], "waiting" if waits else "running", text)

    def _apply_transition(self, entry: LedgerEntry, known: _OpenOrder) -> None:
        move = TransitionEntry.read(entry)
        if move.to_state == known.to:
            self.open[entry.node] = replace(known, arrival=move.decision)
            self._set(entry, self.open[entry.node], "running" if known.unproved else "succeeded", f"in {known.to}")
        elif known.arrival is not None:
            self._set(entry, known, "failed", f"it left {known.to} for {move.to_state} before it was proved")
        elif move.decision in known.decisions:
            self._set(entry, known, "running", f"in {move.to_state}")

    def _apply_withdrawal(self, entry: LedgerEntry, known: _OpenOrder) -> None:
        withdrawn = DecisionWithdrawnEntry.read(entry)
        if withdrawn.decision == known.order:
            self._set(entry, known, "cancelled", f"{withdrawn.who}: {withdrawn.reason}")

    def _apply_outlived(self, entry: LedgerEntry, known: _OpenOrder) -> None:
        late = OrderOutlivedEntry.read(entry)
        if late.order == known.order:
            self._set(entry, known, "waiting", late.reason)

    def _apply_intent(self, entry: LedgerEntry, known: _OpenOrder) -> None:
        intent = EffectIntentEntry.read(entry)
        if known.arrival is not None and intent.decision == known.arrival:
            self.open[entry.node] = replace(known, effects=known.effects | {intent.effect})
            self._set(entry, self.open[entry.node], "running", f"{intent.action} begins")

    def _apply_try(self, entry: LedgerEntry, known: _OpenOrder) -> None:
        tried = EffectTriedEntry.read(entry)
        if tried.effect in known.effects:
            self._set(entry, known, "running", f"{tried.action} is tried again: {tried.reason}")

    def _apply_end(self, entry: LedgerEntry, known: _OpenOrder) -> None:
        progress = EffectProgressEntry.read(entry)
        if progress.effect not in known.effects or progress.action not in known.unproved:
            return
        if entry.kind == "effect.failed":
            self._set(entry, known, "failed", f"{progress.action} failed: {progress.reason}")
            return
        left = known.unproved - {progress.action}
        self.open[entry.node] = replace(known, unproved=left)
        text = f"{progress.action}: {progress.reason}"
        self._set(entry, self.open[entry.node], "running" if left else "succeeded", text)

    def _set(self, entry: LedgerEntry, known: _OpenOrder, state: OperationState, text: str) -> None:
        record = self.operations[known.operation]
        changed = OperationOnNode(entry.node, state, text, entry.at, known.order)
        nodes = tuple(changed if each.node == entry.node else each for each in record.nodes)
        self.operations[known.operation] = _settle(record, entry, nodes)
        if state in ENDED:
            del self.open[entry.node]

    def _rename(self, old: str, new: str) -> None:
        known = self.open.pop(old, None)
        if known:
            self.open[new] = known
        for record in self.list_planned() + ([self.operations[known.operation]] if known else []):
            nodes = tuple(replace(each, node=new) if each.node == old else each for each in record.nodes)
            self.operations[record.id] = replace(record, nodes=nodes)

    def list_planned(self) -> list[OperationRecord]:
        """Return the operations whose time has not come."""
        return [record for record in self.operations.values() if record.state == "planned"]


def _begin(asked: OrderedOperation, move: MoveEntry, entry: LedgerEntry) -> OperationRecord:
    return OperationRecord(
        id=asked.id,
        operation=asked.name,
        key=asked.key,
        who=move.who,
        role=asked.role,
        reason=move.reason,
        state="accepted",
        created_at=entry.at,
        updated_at=entry.at,
        to=move.to,
        now=move.now,
        nodes=(),
        gpus=asked.gpus,
    )


def _settle(record: OperationRecord, entry: LedgerEntry, nodes: tuple[OperationOnNode, ...]) -> OperationRecord:
    """Return the record with its nodes as they are now: its state is that of the node that is least far."""
    state = min((each.state for each in nodes), key=_ORDER.index)
    return replace(record, nodes=nodes, state=state, updated_at=entry.at, position=entry.seq)


PLANNING = frozenset(
    {OperationPlannedEntry.kind, OperationDeferredEntry.kind, OperationReservedEntry.kind, OperationDroppedEntry.kind}
)
_HANDLERS = {
    DecisionEntry.kind: OperationHistory._apply_decision,
    TransitionEntry.kind: OperationHistory._apply_transition,
    DecisionWithdrawnEntry.kind: OperationHistory._apply_withdrawal,
    OrderOutlivedEntry.kind: OperationHistory._apply_outlived,
    EffectIntentEntry.kind: OperationHistory._apply_intent,
    EffectTriedEntry.kind: OperationHistory._apply_try,
    "effect.verified": OperationHistory._apply_end,
    "effect.failed": OperationHistory._apply_end,
}
OPERATIONS = Projection(
    kinds=frozenset({MoveEntry.kind, ZapRequestedEntry.kind, NodeRenamedEntry.kind, *PLANNING, *_HANDLERS}),
    initial=OperationHistory,
    step=OperationHistory.apply,
    copy=OperationHistory.copy,
)
