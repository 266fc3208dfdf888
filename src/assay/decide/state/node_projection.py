"""Builds the state of one node from its ledger entries: a method for each kind of entry that changes it.

Projects ledger entries into the state of each node. Pure: the same entries give the same states.

Begins the state of a machine when it is enrolled, and carries it over to another name.

Recognises in a node's history when the cause of a wait went away by itself, and which effects answered faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from assay.decide.state.asset_history import INVENTORY
from assay.decide.state.burn_in_record import BURN_IN_KINDS, BurnInRecord, advance_burn_in
from assay.decide.state.corrections import CorrectionRecord, end_correction, make_correction
from assay.decide.state.node_state import (
    EffectRecord,
    EffectStatus,
    FlapRecord,
    LostCordon,
    NodeState,
    OperatorNote,
    PendingDecision,
    RepairRecord,
    TransitionRecord,
    WithdrawnDecision,
)
from assay.decide.trust.record import NOTHING_SAID, TRUST_KINDS, MoveRequest, TrustRecord, advance_trust
from assay.model.decision import (
    CORRECTION_REMEDIES,
    HELD_RULE,
    REPAIR_ACTIONS,
    RESTART_ACTIONS,
    DecisionCause,
    find_rule_name,
)
from assay.model.entries.assets import PartsSeenEntry
from assay.model.entries.effects import EffectIntentEntry, EffectProgressEntry
from assay.model.entries.faults import FaultClearedEntry, FaultEntry
from assay.model.entries.node import (
    BreakerClearedEntry,
    CertifiedEntry,
    DecisionEntry,
    DecisionWithdrawnEntry,
    HoldEntry,
    MoveEntry,
    NodeEnrolledEntry,
    NodeLeftEntry,
    NodeRenamedEntry,
    TransitionEntry,
)
from assay.model.faults.fault_record import FaultRecord, FaultResponse, list_boots
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time


def detect_flaps(
    pending: PendingDecision | None, faults: Mapping[str, FaultRecord], cleared: FaultRecord
) -> list[FlapRecord]:
    """Return that a wait lost its last open cause with this fault; nothing while another cause is open.

    A fault of the same class on the same part is the same cause, also if it began after the wait.
    """
    if pending is None:
        return []
    named = [ident for cause in pending.because for ident in cause.fault_ids]
    keys = {(faults[ident].fault_class, faults[ident].subject) for ident in named if ident in faults}
    if (cleared.fault_class, cleared.subject) not in keys:
        return []
    left = any(one.is_open and (one.fault_class, one.subject) in keys for one in faults.values())
    return [] if left else [FlapRecord(cleared.cleared_at, cleared.id, pending.decision)]


def list_answered_faults(decision: DecisionEntry | None) -> tuple[str, ...]:
    """Return the faults that a decision answers. One that only cordons, or only brings settings, answers none."""
    if decision is None or find_rule_name(decision.rule) == HELD_RULE or decision.remedy in CORRECTION_REMEDIES:
        return ()
    return tuple(ident for cause in decision.causes for ident in cause.fault_ids)


def describe_causes(causes: Iterable[DecisionCause]) -> str:
    """Return causes in one line for people."""
    return "; ".join(cause.text for cause in causes)


_SHARED_FIELDS = tuple(name for name in NodeState.__slots__ if name != "decision_ids")


def _freeze(value: Any) -> Any:
    """Return a collection of the builder as the tuple of `NodeState`, and anything else as it is."""
    members = value.values() if isinstance(value, dict) else value
    return tuple(members) if isinstance(value, dict | list) else value


@dataclass(slots=True)
class NodeStateBuilder:
    """A node state that entries still change. It has the fields of `NodeState`, some as mutable collections."""

    node: str
    pool: str
    state: str
    since: str
    stay_id: str
    reason: str
    enrolled_at: str
    decision: str = ""
    note: str = ""
    noted_causes: tuple[DecisionCause, ...] = ()
    pending: PendingDecision | None = None
    hold: OperatorNote | None = None
    certified: OperatorNote | None = None
    move_request: MoveRequest | None = None
    withdrawn: WithdrawnDecision | None = None
    deadline_held_at: str = ""
    is_deadline_free: bool = False
    flaps: list[FlapRecord] = field(default_factory=list)
    breaker_reason: str = ""
    lost_cordons: list[LostCordon] = field(default_factory=list)
    corrections: list[CorrectionRecord] = field(default_factory=list)
    faults: dict[str, FaultRecord] = field(default_factory=dict)
    effects: dict[str, EffectRecord] = field(default_factory=dict)
    decisions: dict[str, DecisionEntry] = field(default_factory=dict)
    repairs: list[RepairRecord] = field(default_factory=list)
    transitions: list[TransitionRecord] = field(default_factory=list)
    stay_seq: int = 0
    serial: str = ""
    named_by: str = ""
    burn_in: BurnInRecord | None = None
    trust: TrustRecord = NOTHING_SAID
    told_serials: dict[str, str] = field(default_factory=dict)
    known_boots: set[str] = field(default_factory=set)
    built: NodeState | None = None

    def build(self) -> NodeState:
        """Return the state as it is now."""
        if self.built is None:
            shared = {name: _freeze(getattr(self, name)) for name in _SHARED_FIELDS}
            self.built = NodeState(**shared, decision_ids=frozenset(self.decisions))
        return self.built

    def apply_transition(self, entry: LedgerEntry) -> None:
        """Begin a new stay."""
        at, move = format_time(entry.at), TransitionEntry.read(entry)
        decision = self.decisions.get(move.decision)
        remedy, rule = (decision.remedy, decision.rule) if decision else ("", "")
        self._change_responses("waits", "acted")
        moved = (at, move.from_state, move.to_state, move.decision, remedy, rule)
        self.transitions.append(TransitionRecord(*moved, list_answered_faults(decision)))
        self.state, self.since, self.stay_id, self.decision = move.to_state, at, entry.id, move.decision
        self.stay_seq = entry.seq
        self.reason = self._describe_reason(decision.causes if decision else ()) or move.reason
        self.note, self.pending, self.certified, self.withdrawn = "", None, None, None
        self.deadline_held_at, self.is_deadline_free, self.breaker_reason = "", False, ""
        if self.move_request and self.move_request.to == move.to_state:
            self.move_request = None

    def _describe_reason(self, causes: tuple[DecisionCause, ...]) -> str:
        """Return why a new stay begins. The end of an effect is no reason by itself: the former reason comes first."""
        only_effects = bool(causes) and all(cause.kind == "effect" for cause in causes)
        return f"{self.reason}; then {describe_causes(causes)}" if only_effects else describe_causes(causes)

    def apply_decision(self, entry: LedgerEntry) -> None:
        """Record a decision, its response to the faults behind it, and its outstanding effects."""
        at, decision = format_time(entry.at), DecisionEntry.read(entry)
        self.decisions[decision.decision] = decision
        if decision.timing == "pending":
            self.pending = PendingDecision(
                decision=decision.decision,
                to=decision.to_state,
                since=at,
                rule=decision.rule,
                remedy=decision.remedy,
                because=decision.causes,
                blockers=decision.blockers,
            )
        if decision.timing == "record" and decision.remedy in CORRECTION_REMEDIES:
            self.corrections.append(make_correction(decision, at, entry.seq, self.stay_id))
            self.note = ""
        elif decision.timing == "record":
            self._apply_record(decision, at)
        elif find_rule_name(decision.rule) != HELD_RULE:  # it answers no fault
            self._set_responses(decision.causes, "acted" if decision.timing == "immediate" else "waits", at)

    def _apply_record(self, decision: DecisionEntry, at: str) -> None:
        kinds = {cause.kind: cause.text for cause in decision.causes}
        if "breaker" in kinds:
            self._set_responses(decision.causes, "breaker", at)
            self.breaker_reason = kinds["breaker"]
            if "deadline" in kinds:
                self.deadline_held_at = at
        if decision.remedy == "cordon":
            pending = self.pending.decision if self.pending else ""
            reason = describe_causes(decision.causes)
            self.lost_cordons.append(LostCordon(decision.decision, at, reason, self.stay_id, pending))
        elif decision.remedy in ("ticket", "wait"):
            self.note, self.noted_causes = describe_causes(decision.causes), decision.causes

    def apply_withdrawal(self, entry: LedgerEntry) -> None:
        """Withdraw the pending decision, or the move that a person requested."""
        pending, withdrawal = self.pending, DecisionWithdrawnEntry.read(entry)
        if self.move_request and self.move_request.id == withdrawal.decision:
            self.move_request = None
        if pending is None or withdrawal.decision not in (pending.decision, *(cause.id for cause in pending.because)):
            return
        effects = self.effects.values()
        cordoned = any(one.decision == pending.decision and one.action == "cordon" for one in effects)
        by = withdrawal.by or entry.id
        self.pending = None
        self.withdrawn = WithdrawnDecision(pending.decision, by, withdrawal.reason, cordoned)
        self._change_responses("waits", "")

    def _set_responses(self, causes: tuple[DecisionCause, ...], response: FaultResponse, at: str) -> None:
        """Set the response to the faults among the causes. A fault that moved the node keeps that response."""
        for ident in [one for cause in causes for one in cause.fault_ids]:
            if (fault := self.faults.get(ident)) and fault.response != "acted":
                self.faults[ident] = replace(fault, response=response, responded_at=at)

    def _change_responses(self, before: FaultResponse, after: FaultResponse) -> None:
        for fault in [one for one in self.faults.values() if one.response == before]:
            self.faults[fault.id] = replace(fault, response=after)

    def apply_fault(self, entry: LedgerEntry) -> None:
        """Add a fault, or update a known one."""
        fault = FaultEntry.read(entry)
        known = self.faults.get(fault.fault)
        self.faults[fault.fault] = FaultRecord(
            id=fault.fault,
            fault_class=fault.fault_class,
            subject=fault.subject,
            severity=fault.severity,
            blame=fault.blame,
            remedy=fault.remedy,
            count=fault.count,
            first_seen=format_time(fault.first_seen),
            last_seen=format_time(fault.last_seen),
            detail=fault.detail,
            marks=fault.marks,
            times=fault.times,
            response=known.response if known else "",
            responded_at=known.responded_at if known else "",
            seq=entry.seq,
            arrived_at=known.arrived_at if known and known.is_open else format_time(entry.at),
            no_wave=known.no_wave if known and known.is_open else "",
        )
        self.known_boots |= list_boots(fault.marks)

    def apply_clearance(self, entry: LedgerEntry) -> None:
        """End a fault, and the note about it, unless the fault was seen again after what ended it."""
        cleared = FaultClearedEntry.read(entry)
        if (fault := self.faults.get(cleared.fault)) and not 0 < cleared.seen_up_to < fault.seq:
            self.faults[fault.id] = ended = replace(fault, cleared_at=format_time(entry.at))
            self.flaps += detect_flaps(self.pending, self.faults, ended) if fault.is_open else []
            if any(fault.id in cause.fault_ids for cause in self.noted_causes):
                self.note = ""

    def apply_intent(self, entry: LedgerEntry) -> None:
        """Add an effect that starts."""
        intent = EffectIntentEntry.read(entry)
        effect = EffectRecord(intent.effect, intent.action, intent.decision, "intent", format_time(entry.at))
        effect = replace(effect, answers_fault=bool(list_answered_faults(self.decisions.get(intent.decision))))
        self.effects.setdefault(effect.id, effect)
        self.known_boots |= {str(intent.before["boot_id"])} if intent.before.get("boot_id") else set()

    def apply_effect_progress(self, entry: LedgerEntry) -> None:
        """Take an effect further. A verified or failed effect has ended and stays as it is."""
        progress = EffectProgressEntry.read(entry)
        effect = self.effects.get(progress.effect)
        if effect is None or effect.standing in ("verified", "failed"):
            return
        at, standing = format_time(entry.at), _STANDINGS[entry.kind]
        self.effects[effect.id] = replace(effect, standing=standing, at=at, reason=progress.reason)
        end_correction(self.corrections, effect.action, effect.decision, standing, at, entry.seq)
        if standing == "verified" and effect.action in REPAIR_ACTIONS:
            self._add_repair(effect.action, at, effect.id, entry.seq, progress.facts)

    def _add_repair(self, kind: str, at: str, ident: str, seq: int, facts: Mapping[str, Any] = {}) -> None:
        """Add a repair. A restart ends every boot that is known, but the one that it read back."""
        boot = str(facts.get("boot_id") or "") if kind in RESTART_ACTIONS else ""
        earlier = frozenset(self.known_boots - {boot}) if boot else frozenset[str]()
        self.repairs.append(RepairRecord(kind, at, ident, seq, boot, earlier))

    def apply_replacement(self, entry: LedgerEntry) -> None:
        """Count a replaced part as a repair."""
        self._add_repair("replaced", format_time(entry.at), entry.id, entry.seq)

    def apply_hold(self, entry: LedgerEntry) -> None:
        """Hold the node. This replaces an earlier hold."""
        hold, at = HoldEntry.read(entry), format_time(entry.at)
        self.hold = OperatorNote(entry.id, hold.who, hold.reason, at, hold.until and format_time(hold.until))

    def apply_release(self, _: LedgerEntry) -> None:
        """End the hold."""
        self.hold = None

    def apply_certification(self, entry: LedgerEntry) -> None:
        """Count the certification as a repair too: no earlier pass counts."""
        certified, at = CertifiedEntry.read(entry), format_time(entry.at)
        self.certified = OperatorNote(entry.id, certified.who, certified.reason, at)
        self._add_repair("certified", at, entry.id, entry.seq)

    def apply_cleared_breaker(self, entry: LedgerEntry) -> None:
        """Count the faults so far for no wave, and let what the breaker held back be answered."""
        cleared = BreakerClearedEntry.read(entry)
        self._change_responses("breaker", "")
        self.faults = {ident: replace(fault, no_wave=entry.id) for ident, fault in self.faults.items()}
        self.is_deadline_free, self.deadline_held_at = self.is_deadline_free or bool(self.deadline_held_at), ""
        if self.note and any(cause.kind == "breaker" for cause in self.noted_causes):
            self.note = f"{cleared.who} cleared the breaker: {cleared.reason}"
        if self.pending and self.pending.rule_name == HELD_RULE:
            self.pending = replace(self.pending, blockers=("room within the limits",))

    def apply_move_request(self, entry: LedgerEntry) -> None:
        """Remember the state that a person wants, unless the node is there."""
        move = MoveEntry.read(entry)
        words = (move.to, move.who, move.reason, format_time(entry.at), bool(move.now), move.rollout, move.within_hours)
        self.move_request = MoveRequest(entry.id, *words) if move.to != self.state else None


_STANDINGS: dict[str, EffectStatus] = {f"effect.{one}": one for one in get_args(EffectStatus) if one != "intent"}
ENTRY_HANDLERS: dict[str, Callable[[NodeStateBuilder, LedgerEntry], None]] = {
    "transition": NodeStateBuilder.apply_transition,
    "decision": NodeStateBuilder.apply_decision,
    "decision.withdrawn": NodeStateBuilder.apply_withdrawal,
    "fault": NodeStateBuilder.apply_fault,
    "fault.cleared": NodeStateBuilder.apply_clearance,
    "effect.intent": NodeStateBuilder.apply_intent,
    **dict.fromkeys(_STANDINGS, NodeStateBuilder.apply_effect_progress),
    "hold": NodeStateBuilder.apply_hold,
    "release": NodeStateBuilder.apply_release,
    "certified": NodeStateBuilder.apply_certification,
    "move": NodeStateBuilder.apply_move_request,
    "zap.asked": NodeStateBuilder.apply_move_request,
    "part.replaced": NodeStateBuilder.apply_replacement,
    "breaker.cleared": NodeStateBuilder.apply_cleared_breaker,
}
"""By entry kind. Kinds that change no node state (tickets, failed observations) have no handler."""


def make_builder(entry: LedgerEntry) -> NodeStateBuilder:
    """Return the builder of a node that is enrolled."""
    at, enrolled = format_time(entry.at), NodeEnrolledEntry.read(entry)
    reason = f"first seen; the inventory starts it in {enrolled.state}{enrolled.reason and f': {enrolled.reason}'}"
    builder = NodeStateBuilder(entry.node, enrolled.pool, enrolled.state, at, entry.id, reason, at)
    builder.stay_seq, builder.serial, builder.named_by = entry.seq, enrolled.serial, entry.id
    return builder


def rename_machine(machine: NodeStateBuilder, node: str, pool: str, named_by: str) -> NodeStateBuilder:
    """Return a machine under another name. Whatever is asked for or under way goes on under the new name."""
    before, now = f"{machine.pool}/{machine.node}", f"{pool}/{node}"
    faults = {
        ident: replace(fault, subject=f"{now}{fault.subject.removeprefix(before)}")
        for ident, fault in machine.faults.items()
    }
    return replace(deepcopy(machine), node=node, pool=pool, named_by=named_by, faults=faults, built=None)


MACHINE_KINDS = frozenset({NodeEnrolledEntry.kind, NodeRenamedEntry.kind, NodeLeftEntry.kind})


def project_node_states(entries: Iterable[LedgerEntry]) -> dict[str, NodeState]:
    """Return the state of every enrolled node, by name. Entries of other nodes have no effect."""
    projection = NodeStateProjection()
    projection.apply(entries)
    return projection.node_states()


class NodeStateProjection:
    """Node states that grow with the ledger. Apply each entry once, in order; `seq` is the last one applied."""

    def __init__(self) -> None:
        self.seq = 0
        self._builders: dict[str, NodeStateBuilder] = {}
        self._machines: dict[str, NodeStateBuilder] = {}
        self._used_names: set[str] = set()

    def apply(self, entries: Iterable[LedgerEntry]) -> None:
        """Apply the next entries."""
        for entry in entries:
            self.seq = max(self.seq, entry.seq)
            if entry.kind in MACHINE_KINDS:
                self._change_machine(entry)
            elif entry.kind in BURN_IN_KINDS:
                self._change_burn_in(entry)
            elif builder := self._builders.get(entry.node):
                _change_state(builder, entry)

    def _change_burn_in(self, entry: LedgerEntry) -> None:
        if builder := self._builders.get(entry.node):
            builder.built = None
            builder.burn_in = advance_burn_in(builder.burn_in, entry, builder.stay_id)

    def _change_machine(self, entry: LedgerEntry) -> None:
        """Enrol a machine, or give it another name. Another serial number under a known name is another machine."""
        known = self._builders.get(entry.node)
        if entry.kind == NodeEnrolledEntry.kind:
            serial = NodeEnrolledEntry.read(entry).serial
            if known is None or (serial and known.serial != serial):
                machine = make_builder(entry)
                if entry.node in self._used_names:  # the newest outcomes of this name are of another machine
                    machine.apply_replacement(entry)
                self._name(entry.node, machine)
        elif entry.kind == NodeRenamedEntry.kind:
            renamed = NodeRenamedEntry.read(entry)
            if before := self._machines.get(renamed.serial):
                self._name(entry.node, rename_machine(before, entry.node, renamed.pool, entry.id))
        elif known:
            del self._builders[entry.node]

    def _name(self, node: str, machine: NodeStateBuilder) -> None:
        self._builders[node] = machine
        self._used_names.add(node)
        if machine.serial:
            self._machines[machine.serial] = machine

    def node_state(self, node: str) -> NodeState | None:
        """Return the state of a node, None if it was never enrolled."""
        builder = self._builders.get(node)
        return builder.build() if builder else None

    def node_states(self) -> dict[str, NodeState]:
        """Return the state of every node, by name."""
        return {name: builder.build() for name, builder in self._builders.items()}


def _change_state(builder: NodeStateBuilder, entry: LedgerEntry) -> None:
    if handle := ENTRY_HANDLERS.get(entry.kind):
        builder.built = None
        handle(builder, entry)
    if entry.kind == PartsSeenEntry.kind and (told := PartsSeenEntry.read(entry).node_serials):
        builder.built = None
        builder.told_serials |= {source: serial for source, serial in told.items() if source != INVENTORY}
    if entry.kind in TRUST_KINDS:
        builder.built = None
        known = builder.decisions[DecisionEntry.read(entry).decision] if entry.kind == DecisionEntry.kind else None
        builder.trust = advance_trust(builder.trust, entry, known)
