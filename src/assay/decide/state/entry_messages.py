"""Formats ledger entries for people, one line each: what changed, who changed it, and why. Shows no internal ids.

A table says for each kind of entry how its text is made; `EntryFormatter` gives entries the names that they refer to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from assay.decide.state.asset_history import describe_returned_part
from assay.decide.state.node_projection import describe_causes
from assay.model.decision import STATE_CAUSE
from assay.model.entries import assets as asset
from assay.model.entries import boot
from assay.model.entries import effects as effect
from assay.model.entries import faults as fault
from assay.model.entries import node_entries as operator
from assay.model.entries import rollouts as rollout
from assay.model.entries import schedule_entries as schedule
from assay.model.entries import tickets as ticket
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.node_entries import DecisionEntry, TransitionEntry
from assay.model.entries.registry import UnknownEntry, decode_entry
from assay.model.evidence import SOURCE_NAMES
from assay.model.ledger_entry import LedgerEntry
from assay.model.text.lists import format_count, format_list, format_nodes
from assay.model.text.safe_text import escape_line
from assay.model.timestamps import format_minute, parse_time

if TYPE_CHECKING:
    from assay.model.specs.fault_catalog import FaultCatalog


def _format_warning(entry: fault.TrendWarnedEntry, _: str) -> str:
    part = f"{entry.place} " if entry.place else ""
    reasons = [entry.reason, entry.group]
    return f"{part}gets worse ({entry.rule}): {'; '.join(filter(None, reasons))}"


def _format_closed(entry: fault.TrendClosedEntry, _: str) -> str:
    lead = f", {entry.lead_days:.0f} d before" if entry.lead_days is not None else ""
    return f"a warning of {entry.rule} was {entry.outcome}{lead}: {entry.reason}"


METHOD_WORDS = {
    "sanitize-crypto": "sanitize, crypto erase",
    "sanitize-block": "sanitize, block erase",
    "format-crypto": "format, crypto erase",
    "format-erase": "format, user data erase",
}


def _format_order(entry: effect.WipeOrderedEntry, _: str) -> str:
    marked = f"{entry.samples} of its blocks are marked"
    return f"wipes {_name(entry)} by {_method(entry.method)}; {marked}"


def _name(entry: effect.WipeOrderedEntry | effect.WipeProvedEntry | effect.WipeMissedEntry) -> str:
    return f"{entry.drive} ({entry.model}, serial {entry.serial})"


def _method(name: str) -> str:
    return METHOD_WORDS.get(name, name)


SOURCES = {"scan": "a scan", "lease": "a DHCP lease", "report": "a report"}


def _format_seen_machine(entry: boot.MachineSeenEntry, _: str) -> str:
    machine = entry.machine
    kind = " ".join(part for part in (machine.vendor, machine.model) if part)
    named = f"serial {machine.serial}" if machine.serial else f"BMC {machine.bmc_mac or machine.address}"
    where = f", at {machine.address}" if machine.address and machine.serial else ""
    return f"seen by {SOURCES.get(entry.source, entry.source)}: {named}{f', {kind}' if kind else ''}{where}"


def _format_issued_token(entry: boot.JoinIssuedEntry, _: str) -> str:
    until = f"{parse_time(entry.expires_at):%Y-%m-%d %H:%M:%S} UTC"
    return f"got a one-time token for {entry.purpose}, good until {until} (proven by {entry.proven_by})"


def _format_boot_start(entry: boot.BootStartedEntry, _: str) -> str:
    by_itself = "" if entry.effect else ", by itself"
    return f"starts with image {entry.image} ({entry.image_version}){by_itself}"


def _format_boot_stage(entry: boot.BootStageEntry, _: str) -> str:
    proof = f", proven by {entry.proven_by}" if entry.proven_by else ""
    return f"its start reached {entry.stage}{proof}{f': {entry.words}' if entry.words else ''}"


def _format_takeover(entry: boot.BmcTakeoverEntry, _: str) -> str:
    if entry.step == "started":
        return f"its BMC's factory login {entry.factory_account} is being changed to {entry.account}"
    if entry.step == "failed":
        return f"its BMC's factory login {entry.factory_account} was not changed for certain: {entry.reason}"
    return f"its BMC accepts {entry.account}, and refuses the factory login {entry.factory_account}"


def _format_seen_parts(seen: asset.PartsSeenEntry, _: str) -> str:
    """Return each changed part, the node's serial number, and the number of new parts."""
    parts = seen.parts.items()
    changed = [f"{place} is {part.serial}, was {part.was}" for place, part in parts if part.was is not None]
    gone = [f"{part.serial} of {place} is in {part.to_node} {part.to_place} now" for place, part in seen.gone.items()]
    sources: dict[str, list[str]] = {}
    for source, serial in seen.node_serials.items():
        sources.setdefault(serial, []).append(SOURCE_NAMES.get(source, source))
    numbers = [f"serial number {serial}, by {' and '.join(names)}" for serial, names in sources.items()]
    new = [f"{place} {part.serial}" for place, part in parts if part.was is None]
    owner = "its" if len(new) == 1 else "their"
    first = [f"{format_count(len(new), 'part')} with {owner} serial numbers ({format_list(new, 3)})"] if new else []
    return "; ".join([*changed, *gone, *numbers, *first])


def _format_setup(seen: asset.SetupSeenEntry, _: str) -> str:
    """Return where the node stands, and the versions that changed; models only as a number."""
    versions = [f"{name} {version}" for name, version in seen.versions.items()]
    models = [f"{format_count(len(seen.models), 'part')} by model"] if seen.models else []
    return "; ".join(
        [f"{seen.spec} in {seen.rack} u{seen.u}", *([format_list(versions, 4)] if versions else []), *models]
    )


def _format_replaced_node(replaced: asset.PartReplacedEntry, _: str) -> str:
    serials = f"{replaced.new_serial}, was {replaced.old_serial}"
    source = SOURCE_NAMES.get(replaced.who, replaced.who)
    return f"another node stands in this place: {serials}, by {source}; repairs are counted anew"


MAX_REMEMBERED_NAMES = 50_000
"""The newest names are kept, so that a long history fits into memory."""
_INTERNAL_ID = re.compile(r",? ?(?:by |of |after )?(?:the )?(?:decision|effect|fault) [0-9a-f]{16}\b")


class EntryFormatter:
    """Formats entries in their order. An entry that refers to an earlier one by id shows that one's name instead.

    With a fault catalogue, a fault begins with the words of its class, as its incident does.
    """

    def __init__(self, catalog: FaultCatalog | None = None) -> None:
        self._names: dict[str, str] = {}
        self._catalog = catalog

    def format(self, entry: LedgerEntry) -> str:
        """Return an entry in one printable line."""
        return escape_line(self._format(entry))

    def _format(self, entry: LedgerEntry) -> str:
        content = decode_entry(entry)
        name = self._find_name(content)
        match content:
            case TransitionEntry():
                reason = name or content.reason
                return f"{content.from_state} → {content.to_state}{f': {reason}' if reason else ''}"
            case asset.PartReturnedEntry():
                return describe_returned_part(entry)
            case effect.EffectIntentEntry() if content.reason == self._names.get(content.decision):
                return f"{name} begins"  # the line of its decision has said why
        words = _WORDS[type(content)]
        text = words.format(content) if isinstance(words, str) else words(content, name)
        if isinstance(content, fault.FaultEntry) and self._catalog and self._catalog.find_class(content.fault_class):
            text = f"{self._catalog.describe(content.fault_class)}: {text}"
        return _INTERNAL_ID.sub("", text).strip().rstrip(":")

    def _find_name(self, content: EntryContent) -> str:
        """Return the name of an entry's object, "" if no earlier entry gave it. Remember the names in this entry."""
        match content:
            case fault.FaultEntry():
                self._remember(content.fault, f"{content.fault_class} on {content.subject}")
            case DecisionEntry():
                self._remember(content.decision, _format_reasons(content))
            case effect.EffectIntentEntry():
                self._remember(content.effect, content.action)
                return content.action
            case ticket.TicketOpenedEntry() | ticket.TicketReopenedEntry():
                return self._remember(content.ticket.id, content.ticket.title)
            case ticket.TicketClosedEntry() | ticket.TicketDeliveredEntry():
                return self._remember(content.ticket, content.title)
            case effect.EffectProgressEntry() | effect.EffectTriedEntry():
                return content.action or self._names.get(content.effect, "")
            case fault.FaultClearedEntry():
                return content.name or self._names.get(content.fault, "")
            case TransitionEntry():
                return self._names.get(content.decision, "")
        return ""

    def _remember(self, ident: str, name: str) -> str:
        """Keep a name, unless it is empty; return the present name."""
        if name:
            self._names[ident] = name
        if len(self._names) > MAX_REMEMBERED_NAMES:
            del self._names[next(iter(self._names))]
        return self._names.get(ident, "")


def format_entry(entry: LedgerEntry, formatter: EntryFormatter | None = None) -> str:
    """Return an entry in one line, with the node that it is about."""
    return f"{entry.node or 'fleet'}: {(formatter or EntryFormatter()).format(entry)}"


def _format_reasons(decision: DecisionEntry) -> str:
    return _INTERNAL_ID.sub("", describe_causes(decision.causes))


def _format_decision(decision: DecisionEntry, _: str) -> str:
    return f"{describe_decision(decision)}: {_format_reasons(decision)}  [{decision.rule}]"


RECORDED = {
    "ticket": "asks for a technician",
    "configure": "gets its settings where it is",
    "configure-idle": "gets its settings where it is, without a job",
    "withdraw": "withdraws the pending move",
    "release": "ends the hold",
}
"""What records say that move nothing, by their remedy."""


def describe_decision(decision: DecisionEntry) -> str:
    """Return what was decided, without the reasons."""
    move = f"{decision.from_state} → {decision.to_state}"
    waits = f", waits for {', '.join(decision.blockers)}" if decision.blockers else ""
    match decision.timing, decision.remedy:
        case "record", "cordon":
            return f"closes the node{'' if any(cause.kind == STATE_CAUSE for cause in decision.causes) else ' again'}"
        case "record", "wait" if decision.from_state == decision.to_state:
            return f"is not changed yet{waits}"
        case "record", "wait":
            return f"does not go to {decision.to_state} yet"
        case "record", remedy:
            return RECORDED.get(remedy, "noted")
        case "pending", _:
            return f"{move} when idle{waits}"
    return f"{move} at once"


def _format_fault(seen: fault.FaultEntry, _: str) -> str:
    times = f" ({seen.count} times)" if seen.count > 1 else ""
    return f"{seen.severity} fault {seen.fault_class} on {seen.subject}{times}: {seen.detail}"


def _effect_formatter(words: str) -> Callable[[Any, str], str]:
    def format_effect(content: effect.EffectProgressEntry, name: str) -> str:
        return f"{name} {words}{f': {content.reason}' if content.reason else ''}".strip()

    return format_effect


def _ticket_formatter(word: str) -> Callable[[Any, str], str]:
    def format_ticket(content: EntryContent, name: str) -> str:
        cause, to = "", ""
        match content:
            case ticket.TicketClosedEntry():
                cause = content.by
            case ticket.TicketReopenedEntry():
                cause = content.reason
            case ticket.TicketDeliveredEntry():
                to = f" to {content.sink}{f' as {content.external}' if content.external else ''}"
        return f"ticket {word}{to}{f': {name}' if name else ''}{f' ({cause})' if cause else ''}"

    return format_ticket


def _format_visit(entry: schedule.NodeLoadedEntry, _: str) -> str:
    parts = [f"{part} {outcome.get('ended', '')}" for part, outcome in entry.parts.items()]
    took = "" if entry.gone_ms is None else f", gone within {entry.gone_ms / 1000:.1f} s"
    made_room = f"; made room for {entry.reason}{took}" if entry.reason else ""
    without = max((int(outcome.get("without", 0)) for outcome in entry.parts.values()), default=0)
    lacks = f" without {format_count(without, 'GPU')} of its spec" if without else ""
    return f"loaded by {entry.schedule}{lacks}: {', '.join(parts) or 'nothing ran'}{made_room}"


def _format_hold(hold: operator.HoldEntry, _: str) -> str:
    until = f" until {parse_time(hold.until):%Y-%m-%d %H:%M} UTC" if hold.until else ""
    return f"held by {hold.who}{until}: {hold.reason}"


def _format_move(move: operator.MoveEntry, _: str) -> str:
    return f"asked by {move.who} to go to {move.to}{' at once' if move.now else ''}: {move.reason}"


def _format_started_rollout(started: rollout.RolloutStartedEntry, _: str) -> str:
    count = format_count(sum(len(group.nodes) for group in started.groups), "node")
    reasons = format_list([group.reason for group in started.groups], 3)
    return f"a rollout of {started.base[:12]} → {started.commit[:12]} begins, {count}: {reasons}"


def _format_adopted_commit(adopted: rollout.CommitAdoptedEntry, _: str) -> str:
    before = f"{adopted.base[:12]} → " if adopted.base else ""
    rest = f", without a rollout: they cannot be compared: {adopted.uncompared}" if adopted.uncompared else ""
    return f"the fleet is brought to commit {before}{adopted.commit[:12]}{rest}"


_WORDS: Mapping[type[EntryContent], str | Callable[[Any, str], str]] = {
    UnknownEntry: lambda content, _: ", ".join(
        f"{name} {value}" for name, value in content.body.items() if value not in ("", None)
    ),
    operator.NodeEnrolledEntry: lambda entry, _: (
        f"first seen, pool {entry.pool}, starts in {entry.state}{entry.reason and f': {entry.reason}'}"
    ),
    operator.NodeRenamedEntry: "renamed: the machine {0.serial} was {0.old}; its history goes on here",
    operator.NodeLeftEntry: "renamed: its machine is {0.new} now",
    operator.NodeReplacedEntry: "{0.by} ({0.by_serial}) takes the place of this node ({0.serial}) in pool {0.pool}",
    effect.BurnInStartedEntry: "burn-in {0.spec} began, {0.hours:g} h",
    effect.BurnInWindowEntry: "burn-in: {0.window[hours]:.1f} h are done, phase {0.window[phase]}",
    effect.BurnInHeldEntry: lambda entry, _: f"burn-in goes on for {entry.hours:g} h: {'; '.join(entry.drifts)}",
    effect.BurnInOverEntry: "burn-in: its phases are over, and it waits for collectives with other nodes",
    effect.BurnInNoteEntry: lambda entry, _: (
        f"burn-in: {entry.text}" if entry.event != "stopped" else "burn-in: its load has ended"
    ),
    effect.BurnInEndedEntry: lambda entry, _: (
        f"burn-in {entry.outcome} after {entry.hours:.1f} h{entry.reason and f': {entry.reason}'}"
    ),
    DecisionEntry: _format_decision,
    operator.DecisionWithdrawnEntry: "no longer waits: {0.reason}",
    fault.FaultEntry: _format_fault,
    fault.FaultClearedEntry: lambda cleared, name: f"fault over{', ' if name else ''}{name}: {cleared.reason}",
    fault.AlertResolvedEntry: "alert {0.alert} is over ({0.fault})",
    fault.AlertElsewhereEntry: lambda entry, _: (
        f"{format_count(entry.alerts, 'alert')} that may speak of no node, such as {entry.alert}: {entry.detail}"
    ),
    fault.ObservationFailedEntry: "{0.channel} did not answer: {0.reason}",
    effect.EffectIntentEntry: _effect_formatter("begins"),
    effect.EffectDoneEntry: _effect_formatter("was done, not yet verified"),
    effect.EffectTriedEntry: _effect_formatter("did not succeed, and is tried again"),
    effect.EffectVerifiedEntry: _effect_formatter("verified"),
    effect.EffectFailedEntry: _effect_formatter("failed"),
    effect.EffectUnknownEntry: _effect_formatter("ended nobody knows how"),
    schedule.ScheduleStartedEntry: "{0.schedule} of {0.part} begins",
    schedule.ScheduleRanEntry: "{0.schedule} of {0.part} {0.ended}: {0.reason}",
    schedule.VerificationMissedEntry: "not verified: {0.reason}",
    schedule.NodeLoadedEntry: _format_visit,
    schedule.NodeUndrainedEntry: "given back after it passed {0.schedule}; its drain said: {0.reason}",
    operator.HoldEntry: _format_hold,
    operator.ReleaseEntry: "released by {0.who}: {0.reason}",
    operator.CertifiedEntry: "certified by {0.who}: {0.reason}",
    operator.MoveEntry: _format_move,
    operator.OperationPlannedEntry: lambda entry, _: (
        f"{entry.name} of {format_nodes(entry.nodes)} is planned by {entry.who} from {format_minute(entry.starts_at)} "
        f"to {format_minute(entry.ends_at)}: {entry.reason}"
    ),
    operator.OperationDeferredEntry: lambda entry, _: (
        f"planned work is deferred by {entry.who} to {format_minute(entry.starts_at)}: {entry.reason}"
    ),
    operator.OperationDroppedEntry: lambda entry, _: (
        f"planned work is cancelled by {entry.who}: {entry.reason}"
        if entry.who
        else f"planned work did not begin: {entry.reason}"
    ),
    operator.OperationReservedEntry: "planned work: {0.reason}",
    operator.ZapRequestedEntry: _format_move,
    operator.ApprovedEntry: "approved by {0.who}: {0.reason}",
    operator.DeclinedEntry: "declined by {0.who}: {0.reason}",
    operator.OrderOutlivedEntry: "waits for a person: {0.reason}",
    operator.BreakerClearedEntry: lambda entry, _: (
        f"the breaker of pool {entry.pool} was cleared{entry.fault_class and f' for {entry.fault_class}'} "
        f"by {entry.who}: {entry.reason}"
    ),
    operator.CommitAcceptedEntry: "acts on commit {0.commit:.12}, signed by {0.signer}",
    rollout.CommitAdoptedEntry: _format_adopted_commit,
    rollout.RolloutStartedEntry: _format_started_rollout,
    rollout.RolloutPausedEntry: "the rollout is paused by {0.who}: {0.reason}",
    rollout.RolloutResumedEntry: "the rollout goes on, by {0.who}: {0.reason}",
    rollout.RolloutAbortedEntry: "the rollout is aborted by {0.who}: {0.reason}",
    rollout.RolloutSupersededEntry: "a later merge takes the rollout over: {0.reason}",
    rollout.NodeProvenEntry: "has what the rollout brings: {0.reason}",
    rollout.RolloutFinishedEntry: "the rollout is finished: {0.reason}",
    operator.EntriesArchivedEntry: "{0.who} moved {0.archived:,} old entries into the archive {0.file}",
    operator.OutcomesPrunedEntry: lambda entry, _: (
        f"{entry.who} deleted {format_count(entry.deleted, 'outcome')} of the runs up to number {entry.through}"
    ),
    operator.EvidencePrunedEntry: lambda entry, _: (
        f"{entry.who} deletes {format_count(entry.documents, 'document')} of evidence from before {entry.before}, "
        f"{entry.bytes / 1e6:.1f} MB"
    ),
    ticket.TicketOpenedEntry: _ticket_formatter("opened"),
    ticket.TicketUpdatedEntry: _ticket_formatter("updated"),
    ticket.TicketClosedEntry: _ticket_formatter("closed"),
    ticket.TicketDoneEntry: "{0.who} says that the work is done: {0.title} ({0.note})",
    ticket.TicketReopenedEntry: _ticket_formatter("reopened"),
    ticket.TicketDeliveredEntry: _ticket_formatter("delivered"),
    ticket.DigestStartedEntry: lambda entry, _: (
        f"a digest of {format_count(len(entry.tickets), 'ticket')} for {entry.route}"
    ),
    ticket.NoticeIntentEntry: "customers are to read on the node: {0.text}",
    ticket.NoticeVerifiedEntry: "customers read this on the node",
    ticket.NoticeFailedEntry: "customers do not read this on the node: {0.reason}",
    ticket.NoticesStartedEntry: lambda entry, _: (
        f"a message about {format_count(len(entry.items), 'node')} for {entry.webhook}"
    ),
    ticket.NoticesSentEntry: lambda entry, _: (
        f"{entry.webhook} has a message about {format_count(entry.count, 'node')}"
    ),
    ticket.DigestSentEntry: lambda entry, _: f"{entry.route} has a digest of {format_count(entry.count, 'ticket')}",
    asset.PartsSeenEntry: _format_seen_parts,
    asset.SetupSeenEntry: _format_setup,
    asset.PartReplacedEntry: _format_replaced_node,
    boot.MachineSeenEntry: _format_seen_machine,
    boot.BmcTakeoverEntry: _format_takeover,
    boot.JoinIssuedEntry: _format_issued_token,
    boot.JoinUsedEntry: "used its one-time token for {0.purpose}",
    boot.JoinRefusedEntry: "was refused to join {0.purpose}: {0.why}",
    boot.JoinRevokedEntry: "its one-time token for {0.purpose} is revoked: {0.why}",
    boot.BootStartedEntry: _format_boot_start,
    boot.BootStageEntry: _format_boot_stage,
    boot.BootFailedEntry: lambda entry, _: f"its start failed after {entry.stage or 'the power-on'}: {entry.reason}",
    effect.WipeOrderedEntry: _format_order,
    effect.WipeProvedEntry: lambda entry, _: (
        f"{_name(entry)} is proven wiped by {_method(entry.method)}: {entry.proof}"
    ),
    effect.WipeMissedEntry: lambda entry, _: f"{_name(entry)} was not wiped by {_method(entry.method)}: {entry.reason}",
    fault.TrendWarnedEntry: _format_warning,
    fault.TrendClosedEntry: _format_closed,
    fault.NodeRankedEntry: lambda entry, _: (
        f"jobs come {'last' if entry.is_last else 'as before'} to the node, {entry.standing}: {entry.reason}"
    ),
    fault.TrendDemotedEntry: "the trend rule {0.rule} only observes from now on: {0.reason}",
}
"""By the content of an entry: its text, in which `0` is the content, or what makes it, of the content and a name."""
FORMATTED_KINDS = frozenset(
    (*(content.kind for content in _WORDS if content.kind), TransitionEntry.kind, asset.PartReturnedEntry.kind)
)
"""The entry kinds that have a formatter of their own."""
