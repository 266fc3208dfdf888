"""Projects ledger entries into the state of each node: a function for each kind of entry that changes it. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from assay.decide.state.asset_history import GPU
from assay.decide.state.burn_in_record import BURN_IN_KINDS, advance_burn_in
from assay.decide.state.correction_record import end_correction, make_correction
from assay.decide.state.fault_weeks import FaultWeeks
from assay.decide.state.node_state import (
    HISTORY_FIELDS,
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
from assay.decide.trust.record import TRUST_KINDS, MoveRequest, advance_trust
from assay.model.decision import (
    CORRECTION_REMEDIES,
    GPU_RESET,
    HAND_OVER,
    HELD_RULE,
    REPAIR_ACTIONS,
    RESTART_ACTIONS,
    DecisionCause,
    find_rule_name,
)
from assay.model.entries.assets import PartsSeenEntry
from assay.model.entries.boot import BmcTakeoverEntry
from assay.model.entries.effects import EffectIntentEntry, EffectProgressEntry
from assay.model.entries.faults import FaultClearedEntry, FaultEntry
from assay.model.entries.node_entries import (
    BreakerClearedEntry,
    CertifiedEntry,
    DecisionEntry,
    DecisionWithdrawnEntry,
    HoldEntry,
    MoveEntry,
    NodeEnrolledEntry,
    NodeLeftEntry,
    NodeRenamedEntry,
    NodeReplacedEntry,
    TransitionEntry,
)
from assay.model.evidence import name_gpu
from assay.model.facts import extend, from_json, set_fields, to_stored
from assay.model.faults.fault_record import FaultRecord, FaultResponse, list_boots
from assay.model.ledger_entry import LedgerEntry, Projection, StateForm
from assay.model.timestamps import format_time

R = TypeVar("R", bound="FaultRecord | EffectRecord")

if TYPE_CHECKING:
    from dataclasses import replace as change_state
else:
    _SLOTS = {slot.name: NodeState.__dict__[slot.name] for slot in fields(NodeState)}

    def change_state(state: NodeState, /, **changes: Any) -> NodeState:
        """Put values into a state that nobody has read, and return it: a start folds the whole history."""
        for name, value in changes.items():
            _SLOTS[name].__set__(state, value)
        return state


def detect_flaps(
    pending: PendingDecision | None, faults: Iterable[FaultRecord], cleared: FaultRecord
) -> list[FlapRecord]:
    """Return that a wait lost its last open cause with this fault; nothing while another cause is open.

    A fault of the same class on the same part is the same cause, also if it began after the wait.
    """
    if pending is None:
        return []
    named = {ident for cause in pending.because for ident in cause.fault_ids}
    keys = {(fault.fault_class, fault.subject) for fault in faults if fault.id in named}
    if (cleared.fault_class, cleared.subject) not in keys:
        return []
    left = any(fault.is_open and (fault.fault_class, fault.subject) in keys for fault in faults)
    return [] if left else [FlapRecord(cleared.cleared_at, cleared.id, pending.decision)]


def list_answered_faults(decision: DecisionEntry | None) -> tuple[str, ...]:
    """Return the faults that a decision answers. One that only cordons, or only brings settings, answers none."""
    if decision is None or find_rule_name(decision.rule) == HELD_RULE or decision.remedy in CORRECTION_REMEDIES:
        return ()
    return tuple(ident for cause in decision.causes for ident in cause.fault_ids)


def describe_causes(causes: Iterable[DecisionCause]) -> str:
    """Return causes in one line for people."""
    return "; ".join(cause.text for cause in causes)


def _apply_transition(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Begin a new stay. The end of an effect is no reason by itself: the former reason comes first."""
    at, move = format_time(entry.at), TransitionEntry.read(entry)
    decision = state.decisions.get(move.decision)
    remedy, rule, causes = (decision.remedy, decision.rule, decision.causes) if decision else ("", "", ())
    reason = describe_causes(causes)
    if causes and all(cause.kind == "effect" for cause in causes):
        reason = f"{state.reason}; then {reason}"
    moved = (at, move.from_state, move.to_state, move.decision, remedy, rule, list_answered_faults(decision))
    has_arrived = state.move_request is not None and state.move_request.to == move.to_state
    return change_state(
        state,
        state=move.to_state,
        since=at,
        stay_id=entry.id,
        stay_seq=entry.seq,
        decision=move.decision,
        reason=reason or move.reason,
        transitions=(*state.transitions, TransitionRecord(*moved)),
        faults=_change_responses(state.faults, "waits", "acted"),
        note="",
        pending=None,
        certified=None,
        withdrawn=None,
        move_request=None if has_arrived else state.move_request,
        deadline_held_at="",
        is_deadline_free=False,
        breaker_reason="",
    )


def _apply_decision(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Record a decision, its response to the faults behind it, and its outstanding effects."""
    at, decision = format_time(entry.at), DecisionEntry.read(entry)
    state = change_state(state, decisions={**state.decisions, decision.decision: decision})
    is_handed_over = decision.timing == "immediate" and any(cause.kind == HAND_OVER for cause in decision.causes)
    if decision.customer or is_handed_over:
        state = change_state(state, customer=decision.customer)
    if decision.timing == "pending":
        pending = PendingDecision(
            decision=decision.decision,
            to=decision.to_state,
            since=at,
            rule=decision.rule,
            remedy=decision.remedy,
            because=decision.causes,
            blockers=decision.blockers,
        )
        state = change_state(state, pending=pending)
    if decision.timing == "record" and decision.remedy in CORRECTION_REMEDIES:
        correction = make_correction(decision, at, entry.seq, state.stay_id)
        return change_state(state, corrections=(*state.corrections, correction), note="")
    if decision.timing == "record":
        return _apply_record(state, decision, at)
    if find_rule_name(decision.rule) == HELD_RULE:  # it answers no fault
        return state
    return _set_responses(state, decision.causes, "acted" if decision.timing == "immediate" else "waits", at)


def _apply_record(state: NodeState, decision: DecisionEntry, at: str) -> NodeState:
    kinds = {cause.kind: cause.text for cause in decision.causes}
    if "breaker" in kinds and decision.remedy == "wait":  # a reminder only says again what a wait waits for
        state = _set_responses(state, decision.causes, "breaker", at)
        held_at = at if "deadline" in kinds else state.deadline_held_at
        state = change_state(state, breaker_reason=kinds["breaker"], deadline_held_at=held_at)
    reason = describe_causes(decision.causes)
    if decision.remedy == "cordon":
        pending = state.pending.decision if state.pending else ""
        lost = LostCordon(decision.decision, at, reason, state.stay_id, pending)
        return change_state(state, lost_cordons=(*state.lost_cordons, lost))
    if decision.remedy in ("ticket", "wait"):
        return change_state(state, note=reason, noted_causes=decision.causes)
    return state


def _apply_withdrawal(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Withdraw the pending decision, or the move that a person requested."""
    pending, withdrawal = state.pending, DecisionWithdrawnEntry.read(entry)
    if state.move_request and state.move_request.id == withdrawal.decision:
        state = change_state(state, move_request=None)
    if pending is None or withdrawal.decision not in (pending.decision, *(cause.id for cause in pending.because)):
        return state
    cordoned = any(effect.decision == pending.decision and effect.action == "cordon" for effect in state.effects)
    withdrawn = WithdrawnDecision(pending.decision, withdrawal.by or entry.id, withdrawal.reason, cordoned)
    faults = _change_responses(state.faults, "waits", "")
    return change_state(state, pending=None, withdrawn=withdrawn, faults=faults)


def _set_responses(state: NodeState, causes: tuple[DecisionCause, ...], response: FaultResponse, at: str) -> NodeState:
    """Set the response to the faults among the causes. A fault that moved the node keeps that response."""
    named = {ident for cause in causes for ident in cause.fault_ids}
    held_by = next((cause.id for cause in causes if cause.kind == "breaker"), "")
    series = "" if held_by == state.pool else held_by
    faults = tuple(
        replace(fault, response=response, responded_at=at, series=series)
        if fault.id in named and fault.response != "acted"
        else fault
        for fault in state.faults
    )
    return change_state(state, faults=faults)


def _change_responses(
    faults: tuple[FaultRecord, ...], before: FaultResponse, after: FaultResponse
) -> tuple[FaultRecord, ...]:
    return tuple(replace(fault, response=after) if fault.response == before else fault for fault in faults)


def _put(records: tuple[R, ...], record: R) -> tuple[R, ...]:
    """Return the records with this one in the place of that with its id, or at the end."""
    for number, known in enumerate(records):
        if known.id == record.id:
            return (*records[:number], record, *records[number + 1 :])
    return (*records, record)


def _find(records: tuple[R, ...], ident: str) -> R | None:
    for known in records:
        if known.id == ident:
            return known
    return None


def _apply_fault(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Add a fault, or update a known one."""
    fault = FaultEntry.read(entry)
    known = _find(state.faults, fault.fault)
    record = extend(
        FaultRecord,
        fault,
        id=fault.fault,
        first_seen=format_time(fault.first_seen),
        last_seen=format_time(fault.last_seen),
        response=known.response if known else "",
        responded_at=known.responded_at if known else "",
        cleared_at="",
        seq=entry.seq,
        arrived_at=known.arrived_at if known and known.is_open else format_time(entry.at),
        no_wave=known.no_wave if known and known.is_open else "",
        series=known.series if known else "",
    )
    boots = state.known_boots | list_boots(fault.marks)
    return change_state(state, faults=_put(state.faults, record), known_boots=boots)


def _apply_clearance(state: NodeState, entry: LedgerEntry) -> NodeState:
    """End a fault, and the note about it, unless the fault was seen again after what ended it.

    What a spec made a fault that is taken back holds no breaker open.
    """
    cleared = FaultClearedEntry.read(entry)
    fault = _find(state.faults, cleared.fault)
    if fault is None or 0 < cleared.seen_up_to < fault.seq:
        return state
    ended = replace(fault, cleared_at=format_time(entry.at))
    if cleared.is_taken_back:
        ended = replace(ended, response="", series="")
    faults = _put(state.faults, ended)
    flaps = detect_flaps(state.pending, faults, ended) if fault.is_open else []
    is_noted = any(fault.id in cause.fault_ids for cause in state.noted_causes)
    return change_state(state, faults=faults, flaps=(*state.flaps, *flaps), note="" if is_noted else state.note)


def _apply_intent(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Add an effect that starts."""
    intent = EffectIntentEntry.read(entry)
    if boot := intent.before.get("boot_id"):
        state = change_state(state, known_boots=state.known_boots | {str(boot)})
    if _find(state.effects, intent.effect):
        return state
    answers = bool(list_answered_faults(state.decisions.get(intent.decision)))
    at = format_time(entry.at)
    effect = EffectRecord(intent.effect, intent.action, intent.decision, "intent", at, "", answers, at)
    return change_state(state, effects=(*state.effects, effect))


def _apply_takeover(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Remember when the node's BMC got its login."""
    if BmcTakeoverEntry.read(entry).step != "done":
        return state
    at = format_time(entry.at)
    return change_state(
        state, effects=(*state.effects, EffectRecord(entry.id, "take-over", "", "verified", at, started_at=at))
    )


def _apply_effect_progress(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Take an effect further. A verified or failed effect has ended and stays as it is."""
    progress = EffectProgressEntry.read(entry)
    effect = _find(state.effects, progress.effect)
    if effect is None or effect.standing in ("verified", "failed"):
        return state
    at, standing = format_time(entry.at), _STANDINGS[entry.kind]
    effects = _put(state.effects, replace(effect, standing=standing, at=at, reason=progress.reason))
    corrections = end_correction(state.corrections, effect.action, effect.decision, standing, at, entry.seq)
    state = change_state(state, effects=effects, corrections=corrections)
    if standing == "verified" and effect.action in REPAIR_ACTIONS:
        return _add_repair(state, effect.action, at, effect.id, entry.seq, progress.facts)
    return state


def _add_repair(state: NodeState, kind: str, at: str, ident: str, seq: int, facts: Mapping[str, Any] = {}) -> NodeState:
    """Add a repair. A restart ends every boot that is known, but the one that it read back; others end none."""
    boot = str(facts.get("boot_id") or "") if kind in RESTART_ACTIONS else ""
    ended = frozenset[str]().union(*(repair.earlier_boots for repair in state.repairs[-1:]))
    earlier = state.known_boots - {boot} if boot else ended
    parts = tuple(facts.get("parts") or ()) if kind == GPU_RESET else ()
    return change_state(state, repairs=(*state.repairs, RepairRecord(kind, at, ident, seq, boot, earlier, parts)))


def _apply_replacement(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Count a replaced part as a repair."""
    return _add_repair(state, "replaced", format_time(entry.at), entry.id, entry.seq)


def _apply_hold(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Hold the node. This replaces an earlier hold."""
    hold, at = HoldEntry.read(entry), format_time(entry.at)
    until = hold.until and format_time(hold.until)
    return change_state(state, hold=OperatorNote(entry.id, hold.who, hold.reason, at, until))


def _apply_certification(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Count the certification as a repair too: no earlier pass counts."""
    certified, at = CertifiedEntry.read(entry), format_time(entry.at)
    state = change_state(state, certified=OperatorNote(entry.id, certified.who, certified.reason, at))
    return _add_repair(state, "certified", at, entry.id, entry.seq)


def _apply_cleared_breaker(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Count the faults so far for no wave, and let what the breaker held back be answered: all, or those of a class."""
    cleared = BreakerClearedEntry.read(entry)
    note, pending, name = state.note, state.pending, cleared.fault_class
    theirs = [fault for fault in state.faults if not name or name in (fault.fault_class, *fault.series.split("/"))]
    answered = {fault.id: fault for fault in _change_responses(tuple(theirs), "breaker", "")}
    deadline_held_at = state.deadline_held_at if name else ""
    if note and any(cause.kind == "breaker" for cause in state.noted_causes):
        note = f"{cleared.who} cleared the breaker: {cleared.reason}"
    if pending and pending.rule_name == HELD_RULE:
        pending = replace(pending, blockers=("room within the limits",))
    return change_state(
        state,
        faults=tuple(
            replace(answered[fault.id], no_wave=entry.id) if fault.id in answered else fault for fault in state.faults
        ),
        is_deadline_free=state.is_deadline_free or bool(state.deadline_held_at and not deadline_held_at),
        deadline_held_at=deadline_held_at,
        note=note,
        pending=pending,
    )


def _apply_move_request(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Remember the state that a person wants, unless the node is there; a rollout may want it anew."""
    move = MoveEntry.read(entry)
    words = (move.to, move.who, move.reason, format_time(entry.at), bool(move.now), move.rollout, move.within_hours)
    is_wanted = bool(move.rollout) or move.to != state.state
    return change_state(state, move_request=MoveRequest(entry.id, *words) if is_wanted else None)


def _apply_seen_parts(state: NodeState, entry: LedgerEntry) -> NodeState:
    """Remember the machine's GPUs, and what was exchanged (not: moved): its proofs and repairs are not the others'."""
    parts = PartsSeenEntry.read(entry).parts
    new = {place: (part.serial, part.uuid) for place, part in parts.items() if part.kind == GPU}
    gpus, known = {**state.gpus, **new}, {*map(name_gpu, state.gpus.values())}
    came = {place for place, gpu in new.items() if place in state.gpus and name_gpu(gpu) not in known}
    came |= {place for place, part in parts.items() if part.kind != GPU and part.was}
    exchanged = {**state.exchanged, **dict.fromkeys(came, format_time(entry.at))}
    former = state.former_gpus.union(known) - {*map(name_gpu, gpus.values())}
    return change_state(state, gpus=gpus, former_gpus=former, exchanged=exchanged)


_STANDINGS: dict[str, EffectStatus] = {
    f"effect.{status}": status for status in get_args(EffectStatus) if status != "intent"
}
ENTRY_HANDLERS: dict[str, Callable[[NodeState, LedgerEntry], NodeState]] = {
    "transition": _apply_transition,
    "decision": _apply_decision,
    "decision.withdrawn": _apply_withdrawal,
    "fault": _apply_fault,
    "fault.cleared": _apply_clearance,
    "effect.intent": _apply_intent,
    BmcTakeoverEntry.kind: _apply_takeover,
    **dict.fromkeys(_STANDINGS, _apply_effect_progress),
    "hold": _apply_hold,
    "release": lambda state, _: change_state(state, hold=None),
    "certified": _apply_certification,
    "move": _apply_move_request,
    "zap.asked": _apply_move_request,
    "part.replaced": _apply_replacement,
    "breaker.cleared": _apply_cleared_breaker,
    NodeReplacedEntry.kind: lambda state, entry: change_state(state, replaced_at=format_time(entry.at)),
    PartsSeenEntry.kind: _apply_seen_parts,
    **dict.fromkeys(
        BURN_IN_KINDS,
        lambda state, entry: change_state(state, burn_in=advance_burn_in(state.burn_in, entry, state.stay_id)),
    ),
}
"""By entry kind. Kinds that change no node state (tickets, failed observations) have no handler."""


def enroll_machine(entry: LedgerEntry) -> NodeState:
    """Return the state of a node that is enrolled."""
    at, enrolled = format_time(entry.at), NodeEnrolledEntry.read(entry)
    reason = f"first seen; the inventory starts it in {enrolled.state}{enrolled.reason and f': {enrolled.reason}'}"
    start = NodeState(entry.node, enrolled.pool, enrolled.state, at, entry.id, reason, at)
    decision = entry.id if enrolled.acts else ""
    return replace(start, stay_seq=entry.seq, serial=enrolled.serial, named_by=entry.id, decision=decision)


def rename_machine(machine: NodeState, node: str, pool: str, named_by: str) -> NodeState:
    """Return a machine under another name. Whatever is asked for or under way goes on under the new name."""
    before, now = f"{machine.pool}/{machine.node}", f"{pool}/{node}"
    faults = tuple(replace(fault, subject=f"{now}{fault.subject.removeprefix(before)}") for fault in machine.faults)
    return replace(machine, node=node, pool=pool, named_by=named_by, faults=faults)


MACHINE_KINDS = frozenset({NodeEnrolledEntry.kind, NodeRenamedEntry.kind, NodeLeftEntry.kind})


def project_node_states(entries: Iterable[LedgerEntry]) -> dict[str, NodeState]:
    """Return the state of every enrolled node, by name. Entries of other nodes have no effect."""
    return NODE_STATES.fold(entries).node_states()


@dataclass(slots=True)
class NodeStateProjection:
    """Node states by name. Apply each entry once, in order; `seq` is the last one applied.

    A state that was read stays as it is. Machines are by serial number, as they were under their last name.
    `fault_weeks` is how often faults came.
    """

    seq: int = 0
    fault_weeks: FaultWeeks = field(default_factory=FaultWeeks)
    _states: dict[str, NodeState] = field(default_factory=dict)
    _machines: dict[str, NodeState] = field(default_factory=dict)
    _used_names: set[str] = field(default_factory=set)
    _unread: set[str] = field(default_factory=set, compare=False)

    def node_state(self, node: str) -> NodeState | None:
        """Return the state of a node, None if it was never enrolled."""
        self._unread.discard(node)
        return self._states.get(node)

    def node_states(self) -> dict[str, NodeState]:
        """Return the state of every node, by name. Do not change it."""
        self._unread.clear()
        return self._states

    def copy(self) -> NodeStateProjection:
        """Return one that changes for itself."""
        weeks = self.fault_weeks.copy()
        return NodeStateProjection(self.seq, weeks, dict(self._states), dict(self._machines), set(self._used_names))

    def apply(self, entry: LedgerEntry) -> NodeStateProjection:
        """Apply the next entry, and return this projection."""
        self.seq = max(self.seq, entry.seq)
        self.fault_weeks.begin(entry.at, self._states.values())
        if entry.kind in MACHINE_KINDS:
            self._change_machine(entry)
        elif known := self._states.get(entry.node):
            if entry.node not in self._unread:
                self._unread.add(entry.node)
                self._states[entry.node] = changing = replace(known)
                if self._machines.get(known.serial) is known:
                    self._machines[known.serial] = changing
                known = changing
            if entry.kind == FaultEntry.kind:
                self.fault_weeks.count(known, entry)
            _advance(known, entry)
        return self

    def _change_machine(self, entry: LedgerEntry) -> None:
        """Enrol a machine, or give it another name. Another serial number under a known name is another machine."""
        known = self._states.get(entry.node)
        if entry.kind == NodeEnrolledEntry.kind:
            serial = NodeEnrolledEntry.read(entry).serial
            if known is None or (serial and known.serial != serial):
                machine = enroll_machine(entry)
                if entry.node in self._used_names:  # the newest outcomes of this name are of another machine
                    machine = _apply_replacement(machine, entry)
                self._name(machine)
        elif entry.kind == NodeRenamedEntry.kind:
            renamed = NodeRenamedEntry.read(entry)
            if before := self._machines.get(renamed.serial):
                self._name(rename_machine(before, entry.node, renamed.pool, entry.id))
        elif known:
            del self._states[entry.node]

    def _name(self, machine: NodeState) -> None:
        self._states[machine.node] = machine
        self._unread.add(machine.node)
        self._used_names.add(machine.node)
        if machine.serial:
            self._machines[machine.serial] = machine


def _advance(state: NodeState, entry: LedgerEntry) -> None:
    """Bring the state of a node up to an entry about it."""
    if handle := ENTRY_HANDLERS.get(entry.kind):
        handle(state, entry)
    if entry.kind in TRUST_KINDS:
        known = state.decisions[DecisionEntry.read(entry).decision] if entry.kind == DecisionEntry.kind else None
        change_state(state, trust=advance_trust(state.trust, entry, known, state.move_request))


NODE_STATES = Projection(
    kinds=MACHINE_KINDS | ENTRY_HANDLERS.keys() | TRUST_KINDS,
    initial=NodeStateProjection,
    step=NodeStateProjection.apply,
    copy=NodeStateProjection.copy,
)


CURRENT_FIELDS = tuple(each.name for each in fields(NodeState) if each.name not in (*HISTORY_FIELDS, "unread"))


def encode_node_states(projected: NodeStateProjection) -> list[Any]:
    """Return the states as plain JSON data, then the history of each: most are never read.

    A machine that has its last name still is only named.
    """
    states = projected.node_states()
    others = {
        serial: machine.node if states.get(machine.node) is machine else to_stored(machine)
        for serial, machine in projected._machines.items()
    }
    names = sorted(projected._used_names - states.keys())
    rows = [[each.may_stay_unread, *_list_stored(each, CURRENT_FIELDS)] for each in states.values()]
    plain = {"seq": projected.seq, "states": rows, "machines": others, "former": names}
    histories = [_list_stored(each, HISTORY_FIELDS) for each in states.values()]
    return [{**plain, "weeks": projected.fault_weeks.encode()}, *histories]


def _list_stored(state: NodeState, names: Iterable[str]) -> list[Any]:
    return [to_stored(getattr(state, name)) for name in names]


def decode_node_states(lines: Sequence[str]) -> NodeStateProjection:
    """Return the states that `encode_node_states` gave, each line as JSON."""
    plain, states = json.loads(lines[0]), dict[str, NodeState]()
    for (may_stay_unread, *values), history in zip(plain["states"], lines[1:], strict=True):
        state = object.__new__(NodeState)
        set_fields(state, CURRENT_FIELDS, values)
        states[state.node] = change_state(state, unread=history if may_stay_unread else "")
        if not may_stay_unread:
            set_fields(state, HISTORY_FIELDS, json.loads(history))
    machines = {
        serial: states[machine] if isinstance(machine, str) else change_state(from_json(NodeState, machine), unread="")
        for serial, machine in plain["machines"].items()
    }
    weeks = FaultWeeks.decode(plain["weeks"])
    return NodeStateProjection(plain["seq"], weeks, states, machines, {*states, *plain["former"]})


STORED_NODE_STATES = StateForm(NODE_STATES, "node-states", 14, encode_node_states, decode_node_states)
