"""From the ledger's entries to the story of every node. Pure: the same entries tell the same stories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from assay.lifecycle.node_state import (
    EffectRecord,
    EffectStatus,
    FaultRecord,
    FaultResponse,
    LostCordon,
    MoveRequest,
    NodeState,
    OperatorNote,
    PendingDecision,
    RepairRecord,
    TransitionRecord,
    WithdrawnDecision,
)
from assay.model.decision import REPAIR_ACTIONS, DecisionCause
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time


def project_node_states(entries: Iterable[LedgerEntry]) -> dict[str, NodeState]:
    """Return the story of every enrolled node, by name. Entries of anything that was never enrolled tell none."""
    chronicle = NodeStateProjection()
    chronicle.apply(entries)
    return chronicle.node_states()


class NodeStateProjection:
    """Stories that grow with the ledger: whoever keeps one hears each entry once, in order, from `seq` on."""

    def __init__(self) -> None:
        self.seq = 0
        self._builders: dict[str, _NodeStateBuilder] = {}

    def apply(self, entries: Iterable[LedgerEntry]) -> None:
        """Take in the entries that come next."""
        for entry in entries:
            self.seq = max(self.seq, entry.seq)
            if entry.kind == "node.enrolled":
                self._builders.setdefault(entry.node, _NodeStateBuilder(_make_enrolled_state(entry)))
            elif tale := self._builders.get(entry.node):
                tale.apply(entry)

    def node_state(self, node: str) -> NodeState | None:
        """Return the story of a node so far, None where it was never enrolled."""
        tale = self._builders.get(node)
        return tale.build() if tale else None

    def node_states(self) -> dict[str, NodeState]:
        """Return every story so far, by node."""
        return {name: tale.build() for name, tale in self._builders.items()}


def _make_enrolled_state(entry: LedgerEntry) -> NodeState:
    at = format_time(entry.at)
    because = f"first seen; the inventory starts it in {entry.body['state']}"
    return NodeState(entry.node, entry.body["pool"], entry.body["state"], at, entry.id, because, at)


@dataclass(slots=True)
class _NodeStateBuilder:
    """A story while it is being told: the growing lists are kept apart, so that long histories stay cheap."""

    node_state: NodeState
    faults: dict[str, FaultRecord] = field(default_factory=dict)
    effects: dict[str, EffectRecord] = field(default_factory=dict)
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)
    repairs: list[RepairRecord] = field(default_factory=list)
    moves: list[TransitionRecord] = field(default_factory=list)
    noted_causes: tuple[DecisionCause, ...] = ()

    def apply(self, entry: LedgerEntry) -> None:
        """Take in one entry; kinds that move nothing (tickets, failed observations) are passed over."""
        if heard := _HANDLERS.get(entry.kind):
            heard(self, entry)

    def build(self) -> NodeState:
        """Return the story so far."""
        return replace(
            self.node_state,
            faults=tuple(self.faults.values()),
            repairs=tuple(self.repairs),
            transitions=tuple(self.moves),
            effects=tuple(self.effects.values()),
            decision_ids=frozenset(self.decisions),
        )

    def _transition(self, entry: LedgerEntry) -> None:
        at, body = format_time(entry.at), entry.body
        decision = body.get("decision", "")
        reasons = self.decisions.get(decision, {})
        self._change_responses("waits", "acted")
        self.moves.append(TransitionRecord(at, body["from"], body["to"], decision, reasons.get("remedy", "")))
        self.node_state = replace(
            self.node_state,
            state=body["to"],
            since=at,
            stay_id=entry.id,
            decision=decision,
            reason=self._because(_causes(reasons)) or body.get("reason", ""),
            note="",
            pending=None,
            certified=None,
            move_request=self._open_move_request(body["to"]),
            withdrawn=None,
            deadline_held_at="",
        )

    def _because(self, causes: tuple[DecisionCause, ...]) -> str:
        """Return why the node goes on. That an effect ended is no reason by itself: what began it stays in front."""
        only_effects = bool(causes) and all(cause.kind == "effect" for cause in causes)
        return f"{self.node_state.reason}; then {describe_causes(causes)}" if only_effects else describe_causes(causes)

    def _open_move_request(self, state: str) -> MoveRequest | None:
        asked = self.node_state.move_request
        return asked if asked and asked.to != state else None

    def _decision(self, entry: LedgerEntry) -> None:
        body = entry.body
        self.decisions[body["decision"]] = body
        causes = _causes(body)
        if body["timing"] == "pending":
            self.node_state = replace(self.node_state, pending=_pending(entry, causes))
        if body["timing"] != "record":
            self._set_responses(causes, "acted" if body["timing"] == "immediate" else "waits", entry.at)
        elif any(cause.kind == "breaker" for cause in causes):
            self._set_responses(causes, "breaker", entry.at)
            if any(cause.kind == "deadline" for cause in causes):
                self.node_state = replace(self.node_state, deadline_held_at=format_time(entry.at))
        if body["timing"] == "record" and body.get("remedy") == "cordon":
            self._cordon_lost(body["decision"], entry.at, describe_causes(causes))
        if body["timing"] == "record" and body.get("remedy") in ("ticket", "wait"):
            self.node_state, self.noted_causes = replace(self.node_state, note=describe_causes(causes)), causes

    def _cordon_lost(self, decision: str, at: str, reason: str) -> None:
        waits = self.node_state.pending.decision if self.node_state.pending else ""
        opened = LostCordon(decision, format_time(at), reason, self.node_state.stay_id, waits)
        self.node_state = replace(self.node_state, lost_cordons=(*self.node_state.lost_cordons, opened))

    def _set_responses(self, causes: tuple[DecisionCause, ...], answer: FaultResponse, at: str) -> None:
        for cause in causes:
            if cause.kind == "fault" and (known := self.faults.get(cause.id)) and known.response != "acted":
                self.faults[cause.id] = replace(known, response=answer, responded_at=format_time(at))

    def _decision_withdrawn(self, entry: LedgerEntry) -> None:
        """Take back what waited. What it waited for is as if nothing had been decided; so is a person's move."""
        pending, body = self.node_state.pending, entry.body
        if self.node_state.move_request and self.node_state.move_request.id == body["decision"]:
            self.node_state = replace(self.node_state, move_request=None)
        if pending is None or body["decision"] not in (pending.decision, *(cause.id for cause in pending.because)):
            return
        cordon = next(
            (e for e in self.effects.values() if e.decision == pending.decision and e.action == "cordon"), None
        )
        by, reason = body.get("by", entry.id), body.get("reason", "")
        withdrawn = WithdrawnDecision(pending.decision, by, reason, cordon is not None)
        self.node_state = replace(self.node_state, pending=None, withdrawn=withdrawn)
        self._change_responses("waits", "")

    def _change_responses(self, before: FaultResponse, answer: FaultResponse) -> None:
        for known in list(self.faults.values()):
            if known.response == before:
                self.faults[known.id] = replace(known, response=answer)

    def _fault(self, entry: LedgerEntry) -> None:
        body = entry.body
        known = self.faults.get(body["fault"])
        self.faults[body["fault"]] = FaultRecord(
            id=body["fault"],
            fault_class=body["class"],
            subject=body["subject"],
            severity=body["severity"],
            blame=body["blame"],
            remedy=body.get("remedy", "none"),
            count=body["count"],
            first_seen=format_time(body["first_seen"]),
            last_seen=format_time(body["last_seen"]),
            detail=body.get("detail", ""),
            marks=body.get("marks", {}),
            times=tuple(body.get("times", ())),
            response=known.response if known else "",
            responded_at=known.responded_at if known else "",
        )

    def _fault_cleared(self, entry: LedgerEntry) -> None:
        if known := self.faults.get(entry.body["fault"]):
            self.faults[known.id] = replace(known, cleared_at=format_time(entry.at))
            if known.id in {cause.id for cause in self.noted_causes}:
                self.node_state = replace(self.node_state, note="")

    def _intent(self, entry: LedgerEntry) -> None:
        body = entry.body
        effect = EffectRecord(body["effect"], body["action"], body["decision"], "intent", format_time(entry.at))
        self.effects.setdefault(effect.id, effect)

    def _effect(self, entry: LedgerEntry) -> None:
        begun = self.effects.get(entry.body["effect"])
        if begun is None or begun.standing in ("verified", "failed"):
            return
        standing = _standing(entry.kind)
        at = format_time(entry.at)
        self.effects[begun.id] = replace(begun, standing=standing, at=at, reason=entry.body.get("reason", ""))
        if standing == "verified" and begun.action in REPAIR_ACTIONS:
            self.repairs.append(RepairRecord(begun.action, at, begun.id))

    def _part_replaced(self, entry: LedgerEntry) -> None:
        self.repairs.append(RepairRecord("replaced", format_time(entry.at), entry.id))

    def _operator_note(self, entry: LedgerEntry) -> None:
        until = entry.body.get("until", "")
        word = OperatorNote(
            entry.id, entry.body["who"], entry.body["reason"], format_time(entry.at), until and format_time(until)
        )
        if entry.kind == "certified":
            self.repairs.append(RepairRecord("certified", word.at, word.id))
            self.node_state = replace(self.node_state, certified=word)
        else:
            self.node_state = replace(self.node_state, hold=word if entry.kind == "hold" else None)

    def _move_request(self, entry: LedgerEntry) -> None:
        body = entry.body
        to, at, now = body["to"], format_time(entry.at), bool(body.get("now"))
        asked = MoveRequest(entry.id, to, body["who"], body["reason"], at, now)
        self.node_state = replace(self.node_state, move_request=asked if to != self.node_state.state else None)


_HANDLERS: dict[str, Callable[[_NodeStateBuilder, LedgerEntry], None]] = {
    "transition": _NodeStateBuilder._transition,
    "decision": _NodeStateBuilder._decision,
    "decision.withdrawn": _NodeStateBuilder._decision_withdrawn,
    "fault": _NodeStateBuilder._fault,
    "fault.cleared": _NodeStateBuilder._fault_cleared,
    "effect.intent": _NodeStateBuilder._intent,
    **{f"effect.{standing}": _NodeStateBuilder._effect for standing in get_args(EffectStatus) if standing != "intent"},
    **dict.fromkeys(("hold", "release", "certified"), _NodeStateBuilder._operator_note),
    **dict.fromkeys(("move", "zap.asked"), _NodeStateBuilder._move_request),
    "part.replaced": _NodeStateBuilder._part_replaced,
}


def describe_causes(causes: Iterable[DecisionCause]) -> str:
    """Return causes in one line for people."""
    return "; ".join(cause.text for cause in causes)


def _standing(kind: str) -> EffectStatus:
    standings: dict[str, EffectStatus] = {f"effect.{one}": one for one in get_args(EffectStatus)}
    return standings[kind]


def _causes(body: dict[str, Any]) -> tuple[DecisionCause, ...]:
    return tuple(DecisionCause(one["kind"], one["id"], one["text"]) for one in body.get("because", ()))


def _pending(entry: LedgerEntry, because: tuple[DecisionCause, ...]) -> PendingDecision:
    body = entry.body
    return PendingDecision(
        decision=body["decision"],
        to=body["to"],
        since=format_time(entry.at),
        rule=body["rule"],
        remedy=body.get("remedy", ""),
        because=because,
        blockers=tuple(body["blockers"]),
    )
