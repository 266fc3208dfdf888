"""The state of one node and its history, projected from the ledger.

All times are ISO 8601 UTC as `format_time` writes them, so that they sort as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from assay.decide.state.burn_in_record import BurnInRecord
from assay.decide.state.correction_record import CorrectionRecord
from assay.decide.trust.record import NOTHING_SAID, MoveRequest, TrustRecord
from assay.model.decision import (
    DRAIN_ACTIONS,
    LOOKING_ACTIONS,
    PERSON_RULE,
    REPAIR_ACTIONS,
    DecisionCause,
    find_rule_name,
)
from assay.model.entries.node_entries import DecisionEntry
from assay.model.evidence import GpuIdentity
from assay.model.facts import fact, frozen, internal, set_fields, shown
from assay.model.faults.fault_record import NOT_JUDGED, FaultRecord

EffectStatus = Literal["intent", "done", "verified", "failed", "unknown"]


@fact
class EffectRecord:
    """A change that a decision asked for, and how far it is."""

    id: str
    """The id of the effect."""
    action: str
    """What is done, such as cordon, drain or reboot."""
    decision: str
    """The decision that asked for it."""
    standing: EffectStatus
    """How far it is. Only verified means that it was read back."""
    at: str
    """When that changed last: ISO 8601 UTC."""
    reason: str = ""
    """Why it failed, or what proves it; "" if nothing is to be said."""
    answers_fault: bool = False
    """Whether a fault of the node asked for it, and no person, merge or bring-up."""
    started_at: str = shown(omit_stored=True, default="")
    """When it began: ISO 8601 UTC; "" in older histories."""

    @property
    def is_harmless_failure(self) -> bool:
        """Whether it failed, and only looked at the node: nothing waits for it."""
        return self.standing == "failed" and self.action in LOOKING_ACTIONS


@frozen
class RepairRecord:
    """A point before which no pass counts: a verified repair, a certification by a person, or a replaced part.

    `seq` is its number in the ledger, 0 in a history without numbers. `boot_id` is the boot that a verified restart
    read back, and `earlier_boots` are those that had ended by then. `parts`: it mends these parts only; none: all.
    """

    kind: str
    at: str
    id: str
    seq: int = 0
    boot_id: str = ""
    earlier_boots: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()


@frozen
class TransitionRecord:
    """One transition, with the decision behind it ("" where a person or the inventory moved the node).

    `rule` is the policy's rule for it, as `file:line name`. `faults` are the ids of the faults that it answers.
    """

    at: str
    origin: str
    target: str
    decision: str = ""
    remedy: str = ""
    rule: str = ""
    faults: tuple[str, ...] = ()

    @property
    def is_order(self) -> bool:
        """Whether a person ordered it, or made it without a decision."""
        return not self.decision or find_rule_name(self.rule) == PERSON_RULE


@fact
class PendingDecision:
    """A decision that waits until the node is idle."""

    decision: str
    """The id of the decision."""
    to: str
    """The state that the node will go to."""
    since: str
    """When it was decided."""
    rule: str
    """The rule of the policy, as `file:line name`."""
    remedy: str
    """What is done; "" if nothing besides the move."""
    because: tuple[DecisionCause, ...]
    """Its reasons."""
    blockers: tuple[str, ...]
    """What it waits for, such as jobs that must end first."""

    @property
    def rule_name(self) -> str:
        """The name of the rule behind it."""
        return find_rule_name(self.rule)


@frozen
class FlapRecord:
    """The cause of a pending decision went away by itself: when, with which fault, and of which decision."""

    at: str
    fault: str
    decision: str


@fact
class OperatorNote:
    """A hold or a certification by a person. With a hold, automation observes the node but does not act on it."""

    id: str
    """The id of the order."""
    who: str
    """Who gave it."""
    reason: str
    """Why, in that person's words."""
    at: str
    """When."""
    until: str = ""
    """When a hold ends by itself; "" if only `assay release` ends it."""


@frozen
class WithdrawnDecision:
    """The last pending decision that was withdrawn in this stay.

    `by` is the id of the decision that withdrew it, or of the entry where a person did. `cordoned` says that a cordon
    had begun, which must be undone.
    """

    decision: str
    by: str
    reason: str
    cordoned: bool


@fact
class LostCordon:
    """A node that had to be closed and read as open: somebody removed assay's cordon, or there was none yet."""

    decision: str
    """The decision that cordons the node again."""
    at: str
    """When assay saw that."""
    reason: str
    """What assay saw."""
    stay_id: str
    """The node's stay in a state of that time."""
    pending_decision: str
    """The decision that was pending then; "" for none."""


HISTORY_FIELDS = (
    *("faults", "flaps", "repairs", "transitions", "decisions"),
    *("gpus", "former_gpus", "exchanged", "known_boots"),
)
"""The fields that grow with a node's history, and that say nothing of what is wrong now where its faults are over."""


@frozen
class NodeState:
    """The projected state of one node. A stay is the time from one transition to the next.

    `serial` is the machine's serial number, "" if that is not known; `named_by` is the entry that gave it this name.
    `stay_id` is the id of the entry that began this stay and `stay_seq` its number, `decision` the decision behind it
    ("" for none), `reason` why it was made. `note` is what was recorded since that needs a technician or keeps the node
    here, because of the `noted_causes`. `certified` is a certification during this stay. `deadline_held_at` is when the
    circuit breaker last held back a deadline of this stay, "" for never. `is_deadline_free` says that a person has
    cleared the breaker since then. `breaker_reason` is why it last held something back in this stay. `decisions` holds
    every decision ever made for the node, by id. `corrections` are the settings that it got in service, `burn_in` its
    last burn-in, `trust` what people said to its decisions. `gpus` are the machine's GPUs by place, `former_gpus` the
    short names of those that others took the place of, `known_boots` the boots of which anything was ever recorded.
    `exchanged` says when another part took a place, `replaced_at` when a spare last took the node's, "" for never.
    `customer` is the customer whom it served last, "" for none that an inventory names.

    In a stored state of a node whose faults are over, `HISTORY_FIELDS` are JSON text, `unread`, until one of them is
    used: most nodes of a fleet are well, and most of their state is what they have been through.
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
    noted_causes: tuple[DecisionCause, ...] = ()
    pending: PendingDecision | None = None
    hold: OperatorNote | None = None
    certified: OperatorNote | None = None
    move_request: MoveRequest | None = None
    withdrawn: WithdrawnDecision | None = None
    flaps: tuple[FlapRecord, ...] = ()
    lost_cordons: tuple[LostCordon, ...] = ()
    corrections: tuple[CorrectionRecord, ...] = ()
    deadline_held_at: str = ""
    is_deadline_free: bool = False
    breaker_reason: str = ""
    faults: tuple[FaultRecord, ...] = ()
    repairs: tuple[RepairRecord, ...] = ()
    transitions: tuple[TransitionRecord, ...] = ()
    effects: tuple[EffectRecord, ...] = ()
    decisions: Mapping[str, DecisionEntry] = field(default_factory=dict)
    stay_seq: int = 0
    serial: str = ""
    named_by: str = ""
    burn_in: BurnInRecord | None = None
    trust: TrustRecord = NOTHING_SAID
    gpus: Mapping[str, GpuIdentity] = field(default_factory=dict)
    former_gpus: frozenset[str] = frozenset()
    exchanged: Mapping[str, str] = field(default_factory=dict)
    known_boots: frozenset[str] = frozenset()
    replaced_at: str = ""
    customer: str = ""
    unread: str = internal(default="")

    def __getattr__(self, name: str) -> Any:
        """Return a field of the history, which is read now. Python asks here for fields that are not set."""
        if name not in HISTORY_FIELDS:
            raise AttributeError(name)
        set_fields(self, HISTORY_FIELDS, json.loads(self.unread))
        object.__setattr__(self, "unread", "")
        return getattr(self, name)

    @property
    def may_stay_unread(self) -> bool:
        """Whether the faults of the node are over, so that its history says nothing of what is wrong now."""
        return not any(fault.is_open or fault.open_series for fault in self.faults)

    @property
    def _live_faults(self) -> tuple[FaultRecord, ...]:
        """Its faults, or none while they are over and nobody has read them."""
        return () if self.unread else self.faults

    @property
    def repaired_at(self) -> str:
        """When the node was last repaired or certified by the clock of that time, "" for never."""
        return self.repairs[-1].at if self.repairs else ""

    @property
    def repaired_seq(self) -> int:
        """The number of the last repair or certification in the ledger, 0 for never."""
        return self.repairs[-1].seq if self.repairs else 0

    def is_repaired(self, fault: FaultRecord) -> bool:
        """Whether a fault was last seen before the last repair that can mend it, so that the repair answers it."""
        part = fault.subject.rpartition("/")[2]
        repairs: Sequence[RepairRecord] = [
            repair for repair in self.repairs if not repair.parts or part in repair.parts
        ]
        if fault.needs_people:
            repairs = [repair for repair in repairs if repair.kind not in REPAIR_ACTIONS]
        boots = fault.boots if repairs else frozenset()
        is_known = bool(boots) and any(boots <= repair.earlier_boots for repair in repairs)
        return is_known or any(is_before(fault, repair) for repair in repairs[-1:])

    @property
    def open_faults(self) -> tuple[FaultRecord, ...]:
        """The faults that are more than recorded and that nothing has cleared: a repair ends them with its proof."""
        return tuple(fault for fault in self._live_faults if fault.is_open and fault.severity != "informational")

    @property
    def unjudged(self) -> int:
        """How many errors of the node no class of faults has."""
        return sum(fault.count for fault in self._live_faults if fault.is_open and fault.fault_class == NOT_JUDGED)

    @property
    def unsettled_effects(self) -> tuple[EffectRecord, ...]:
        """Effects that have started and that no reading has settled yet."""
        return tuple(effect for effect in self.effects if effect.standing in ("intent", "done", "unknown"))

    @property
    def is_held_by_breaker(self) -> bool:
        """Whether the breaker holds back the answer to an open fault, or to a missed deadline."""
        return bool(self.deadline_held_at) or bool(self.faults_held_by_breaker)

    @property
    def faults_held_by_breaker(self) -> tuple[FaultRecord, ...]:
        """The open faults whose answer the breaker holds back."""
        return tuple(
            fault
            for fault in self._live_faults
            if fault.response == "breaker" and fault.is_open and not self.is_repaired(fault)
        )

    @property
    def open_series(self) -> frozenset[str]:
        """The series of faults that the node is a member of, until a person answers them."""
        return frozenset({fault.open_series for fault in self._live_faults} - {""})

    @property
    def held_back_by(self) -> str:
        """What keeps the answer to a fault of the node back: breaker, limit or profile; "" for nothing of these."""
        if self.is_held_by_breaker:
            return "breaker"
        kinds = [cause.kind for cause in self.noted_causes] if self.note else []
        return next((kind for kind in kinds if kind in ("limit", "profile")), "")

    def takes_for_empty(self, drain: EffectRecord) -> bool:
        """Whether work goes on although a drain is not known to be done: a person has said yes to just that.

        An order that goes through even while the node has jobs says the same.
        """
        if drain.action not in DRAIN_ACTIONS or drain.standing != "unknown":
            return False
        consent, order = self.trust.find_consent(drain.decision), self.trust.find_order(drain.decision)
        has_yes = consent is not None and consent.is_yes and consent.at >= drain.at
        return has_yes or (order is not None and order.now)

    def find_effect(self, decision: str, action: str) -> EffectRecord | None:
        """Return the effect of a decision, None where it has not started."""
        return next((e for e in self.effects if e.decision == decision and e.action == action), None)

    def find_request(self, decision: str, action: str) -> str:
        """Return who asks for an action now: its decision, or the certification after which it is tried again.

        Only a failure is tried again: a certification after a try that succeeded asks for nothing.
        """
        effect, certified = self.find_effect(decision, action), self.certified
        if effect is None or effect.standing != "failed":
            return decision
        last = [e for e in self.effects if e.action == action and e.at >= effect.at][-1]
        return certified.id if certified and last.standing == "failed" and certified.at > last.at else last.decision

    def find_entry_effect(self, action: str) -> EffectRecord | None:
        """Return the effect of an entry action of its state, None where it has not started, or is to be tried again."""
        return self.find_effect(self.find_request(self.decision, action), action)


def is_before(fault: FaultRecord, repair: RepairRecord) -> bool:
    """Whether a fault was last seen before a repair.

    The boot says so where the fault's source has one and the repair is a restart: no clock can change it. Otherwise
    the order in the ledger says so, and the time only in a history without numbers.
    """
    if repair.boot_id and (boots := fault.boots):
        if repair.boot_id in boots:
            return False
        if boots <= repair.earlier_boots:
            return True
    if fault.seq and repair.seq:
        return fault.seq < repair.seq
    return fault.last_seen <= repair.at
