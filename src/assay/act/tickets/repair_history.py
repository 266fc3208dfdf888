"""The repairs of each machine: what was wrong, what was done by whom, which serial numbers went and came. Pure.

A repair begins with a ticket about a node. What happens to the node belongs to it until the ticket is closed and the
node is open to customers again. A machine keeps its id, the serial number of its enrolment, under any name and with
any part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from assay.act.tickets.ticket_diff import OPENING_KINDS, TICKET_KINDS, parse_ticket
from assay.act.tickets.ticket_moves import INCIDENT_TICKET_KIND, TRIAL_TICKET_KIND
from assay.model.decision import REPAIR_ACTIONS
from assay.model.entries.assets import PartReplacedEntry, PartReturnedEntry, PartsSeenEntry
from assay.model.entries.effects import EffectIntentEntry, EffectProgressEntry
from assay.model.entries.node_entries import CertifiedEntry, NodeEnrolledEntry, NodeRenamedEntry, TransitionEntry
from assay.model.entries.tickets import TicketClosedEntry, TicketDoneEntry
from assay.model.facts import fact
from assay.model.ledger_entry import LedgerEntry, Projection
from assay.model.ticket import Ticket
from assay.model.timestamps import parse_time

REPAIR_TICKETS = (INCIDENT_TICKET_KIND, "stay", TRIAL_TICKET_KIND)
"""The kinds of tickets that are about one machine."""
DOSSIER, OPENED, NODE, AT_VENDOR = "dossier", "uncordon", "node", "at vendor"
Tickets = tuple[str, ...]


@fact
class RepairStep:
    """One step of a repair."""

    at: str
    """When: ISO 8601 with the offset of UTC."""
    event: str
    """What happened: opened, updated, reopened, done, closed, certified, exchanged, at vendor, back, or an action."""
    text: str
    """What was done or seen."""
    who: str
    """Who did it; "" for assay."""
    entry: str
    """The id of its entry in the ledger."""


@fact
class ExchangedPart:
    """A part that was exchanged."""

    place: str
    """Its place in the node; "" for the node itself."""
    kind: str
    """What it is: gpu, nvme, node and so on."""
    serial_out: str
    """The serial number that went."""
    serial_in: str
    """The serial number that came."""


@fact
class MachineRepair:
    """A repair of a machine: a ticket, and all that followed from it."""

    ticket: str
    """The id of the ticket."""
    machine: str
    """The id of the machine, which no repair changes: its serial number when it was enrolled."""
    node: str
    """The name of the node at that time."""
    part: str
    """The place of the part that it is about; "" for the node."""
    kind: str
    """What kind of part that is."""
    wrong: str
    """What was wrong."""
    opened_at: str
    """When the ticket was opened: ISO 8601 with the offset of UTC."""
    updated_at: str
    """When the ticket or the repair changed last."""
    closed_at: str
    """When the ticket was closed; "" while it is open."""
    closed_by: str
    """The proof that closed it."""
    recurrences: int
    """How often it was opened again, and how many earlier repairs this part had; none of a part that was exchanged."""
    vendor_days: float
    """How many days the machine or the part was at its vendor's."""
    who: tuple[str, ...]
    """Who worked on it."""
    exchanged: tuple[ExchangedPart, ...]
    """The parts that were exchanged."""
    steps: tuple[RepairStep, ...]
    """What happened, oldest first."""


@dataclass(slots=True)
class RepairHistory:
    """The repairs by ticket. `followed` go on, by node; `sent`: when it went to a vendor; `gone`: of former parts."""

    repairs: dict[str, MachineRepair] = field(default_factory=dict)
    machines: dict[str, str] = field(default_factory=dict)
    followed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)
    actions: dict[str, str] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()

    def copy(self) -> RepairHistory:
        """Return one that changes for itself."""
        return RepairHistory(
            dict(self.repairs), dict(self.machines), dict(self.followed), dict(self.sent), dict(self.actions), self.gone
        )

    def apply(self, entry: LedgerEntry) -> RepairHistory:
        """Apply the next entry, and return this history."""
        match entry.kind:
            case kind if kind in OPENING_KINDS:
                self._apply_opening(entry, parse_ticket(entry))
            case TicketClosedEntry.kind:
                closed = TicketClosedEntry.read(entry)
                if closed.ticket in self.repairs:
                    self._add([closed.ticket], entry, "closed", closed.by)
                    known = self.repairs[closed.ticket]
                    self.repairs[closed.ticket] = replace(known, closed_at=entry.at, closed_by=closed.by)
            case TicketDoneEntry.kind:
                done = TicketDoneEntry.read(entry)
                self._add([done.ticket], entry, "done", done.note, done.who)
            case NodeEnrolledEntry.kind:
                self.machines[entry.node] = NodeEnrolledEntry.read(entry).serial or self.machines.get(entry.node, "")
            case NodeRenamedEntry.kind:
                self._rename(entry.node, NodeRenamedEntry.read(entry).old)
            case kind:
                _HANDLERS[kind](self, entry, self.followed.get(entry.node, ()))
        return self

    def _apply_opening(self, entry: LedgerEntry, ticket: Ticket) -> None:
        if not ticket.node or ticket.key.partition("/")[0] not in REPAIR_TICKETS:
            return
        event, known = entry.kind.removeprefix("ticket."), self.repairs.get(ticket.id)
        if known is None:
            part = next((place.port for place in ticket.places if place.device == ticket.node), "")
            machine = self.machines.get(ticket.node, "")
            before = [each for each in self.repairs.values() if machine and each.machine == machine]
            known = MachineRepair(
                ticket=ticket.id,
                machine=machine,
                node=ticket.node,
                part=part,
                kind=part.rstrip("0123456789_") or NODE,
                wrong=ticket.title,
                opened_at=entry.at,
                updated_at=entry.at,
                closed_at="",
                closed_by="",
                recurrences=sum(each.part == part and each.ticket not in self.gone for each in before),
                vendor_days=0.0,
                who=(),
                exchanged=(),
                steps=(),
            )
        self.repairs[ticket.id] = replace(
            known, wrong=ticket.title, closed_at="", closed_by="", recurrences=known.recurrences + (event == "reopened")
        )
        self.followed[ticket.node] = tuple(dict.fromkeys((*self.followed.get(ticket.node, ()), ticket.id)))
        self._add([ticket.id], entry, event, ticket.seen)

    def _apply_certification(self, entry: LedgerEntry, followed: Tickets) -> None:
        certified = CertifiedEntry.read(entry)
        self._add(followed, entry, "certified", certified.reason, certified.who)

    def _apply_parts(self, entry: LedgerEntry, followed: Tickets) -> None:
        parts = PartsSeenEntry.read(entry)
        moved = {seen.was for seen in parts.parts.values()}
        if not self.machines.get(entry.node):
            self.machines[entry.node] = next(iter(parts.node_serials.values()), "")
        for place, seen in parts.parts.items():
            if seen.was is not None and seen.was != seen.serial:
                part = ExchangedPart(place, seen.kind, seen.was, seen.serial)
                self._exchange(followed, entry, part, is_new=seen.serial not in moved)

    def _apply_other_machine(self, entry: LedgerEntry, followed: Tickets) -> None:
        other = PartReplacedEntry.read(entry)
        self._exchange(followed, entry, ExchangedPart("", NODE, other.old_serial, other.new_serial))

    def _apply_return(self, entry: LedgerEntry, _: Tickets) -> None:
        """A part that went to its vendor from another place is back: the repair that sent it away says so."""
        back = PartReturnedEntry.read(entry)
        there = [each for each in self.repairs.values() if each.node == back.from_node]
        senders = tuple(each.ticket for each in there if any(step.event == AT_VENDOR for step in each.steps))[-1:]
        self._add(senders, entry, "back", f"{back.part_kind} {back.serial} is in {entry.node}")
        self._count_days(senders, back.sent_at, entry.at)

    def _apply_intent(self, entry: LedgerEntry, followed: Tickets) -> None:
        intent = EffectIntentEntry.read(entry)
        self.actions[intent.effect] = intent.action
        if intent.action == DOSSIER:
            self.sent[entry.node] = entry.at
            self._add(followed, entry, AT_VENDOR, "goes back with a dossier")

    def _apply_transition(self, entry: LedgerEntry, followed: Tickets) -> None:
        if sent_at := self.sent.pop(entry.node, ""):
            self._add(followed, entry, "back", f"back from its vendor, in {TransitionEntry.read(entry).to_state}")
            self._count_days(followed, sent_at, entry.at)

    def _apply_proof(self, entry: LedgerEntry, followed: Tickets) -> None:
        progress = EffectProgressEntry.read(entry)
        action = self.actions.pop(progress.effect, "")
        if action in REPAIR_ACTIONS:
            self._add(followed, entry, action, progress.reason)
        if action == OPENED:
            self.followed[entry.node] = tuple(ident for ident in followed if not self.repairs[ident].closed_at)

    def _exchange(self, followed: Tickets, entry: LedgerEntry, part: ExchangedPart, *, is_new: bool = True) -> None:
        """Note an exchanged part with the repairs of that part, and with those of the node; the new one had none."""
        ours = [each for each in self.repairs.values() if each.machine == self.machines.get(entry.node, "")]
        self.gone |= {each.ticket for each in ours if is_new and part.place in ("", each.part)}
        text = f"{part.kind} {part.place}: {part.serial_out} went, {part.serial_in} came"
        theirs = [each for each in followed if self.repairs[each].part in ("", part.place)]
        self._add(theirs, entry, "exchanged", text)
        for ident in theirs:
            known = self.repairs[ident]
            self.repairs[ident] = replace(known, exchanged=(*known.exchanged, part))

    def _count_days(self, tickets: Tickets, sent_at: str, at: str) -> None:
        days = (parse_time(at) - parse_time(sent_at)).total_seconds() / 86400
        for ident in tickets:
            self.repairs[ident] = replace(self.repairs[ident], vendor_days=round(days, 2))

    def _add(self, tickets: Iterable[str], entry: LedgerEntry, event: str, text: str, who: str = "") -> None:
        for known in [self.repairs[ident] for ident in tickets if ident in self.repairs]:
            step = RepairStep(entry.at, event, text, who, entry.id)
            people = tuple(dict.fromkeys((*known.who, *filter(None, [who]))))
            self.repairs[known.ticket] = replace(known, updated_at=entry.at, who=people, steps=(*known.steps, step))

    def _rename(self, new: str, old: str) -> None:
        self.machines[new] = self.machines.pop(old, "")
        self.followed[new] = self.followed.pop(old, ())
        if sent_at := self.sent.pop(old, ""):
            self.sent[new] = sent_at


_HANDLERS: dict[str, Callable[[RepairHistory, LedgerEntry, Tickets], None]] = {
    CertifiedEntry.kind: RepairHistory._apply_certification,
    PartsSeenEntry.kind: RepairHistory._apply_parts,
    PartReplacedEntry.kind: RepairHistory._apply_other_machine,
    PartReturnedEntry.kind: RepairHistory._apply_return,
    EffectIntentEntry.kind: RepairHistory._apply_intent,
    TransitionEntry.kind: RepairHistory._apply_transition,
    "effect.verified": RepairHistory._apply_proof,
}
"""What is done to a node, by kind of entry."""
REPAIRS = Projection(
    kinds=frozenset({*TICKET_KINDS, TicketDoneEntry.kind, NodeEnrolledEntry.kind, NodeRenamedEntry.kind, *_HANDLERS}),
    initial=RepairHistory,
    step=RepairHistory.apply,
    copy=RepairHistory.copy,
)


def select_repairs(history: RepairHistory, node: str = "", serial: str = "") -> list[MachineRepair]:
    """Return the repairs, the newest first: of a node's machine under any name, or by a serial number."""
    machine = history.machines.get(node, "")

    def fits(repair: MachineRepair) -> bool:
        numbers = {number for part in repair.exchanged for number in (part.serial_out, part.serial_in)} | {
            repair.machine
        }
        is_node = node in ("", repair.node) or bool(machine and repair.machine == machine)
        return is_node and (not serial or serial in numbers)

    return [repair for repair in reversed(history.repairs.values()) if fits(repair)]
