"""Formats ledger entries for people, one line each: what changed, who changed it, and why. Shows no internal ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from assay.decide.state.asset_history import describe_returned_part
from assay.decide.state.asset_messages import ASSET_FORMATTERS
from assay.decide.state.node_state_builder import describe_causes
from assay.decide.state.provisioning_messages import PROVISIONING_FORMATTERS
from assay.decide.state.trend_messages import TREND_FORMATTERS
from assay.decide.state.wipe_messages import WIPE_FORMATTERS
from assay.model.entries import asset_entries as asset
from assay.model.entries import burn_in_entries as burn
from assay.model.entries import effect_entries as effect
from assay.model.entries import fault_entries as fault
from assay.model.entries import notice_entries as notice
from assay.model.entries import operator_entries as operator
from assay.model.entries import rollout_entries as rollout
from assay.model.entries import schedule_entries as schedule
from assay.model.entries import ticket_entries as ticket
from assay.model.entries.decision_entries import DecisionEntry, DecisionWithdrawnEntry
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.node_entries import NodeEnrolledEntry, NodeLeftEntry, NodeRenamedEntry, TransitionEntry
from assay.model.entries.registry import UnknownEntry, decode_entry
from assay.model.ledger_entry import LedgerEntry
from assay.model.text.printable_text import escape_line
from assay.model.text.text_lists import format_count, format_list
from assay.model.timestamps import parse_time

MAX_REMEMBERED_NAMES = 50_000
"""The newest names are kept, so that a long history fits into memory."""
_INTERNAL_ID = re.compile(r",? ?(?:by |of |after )?(?:the )?(?:decision|effect|fault) [0-9a-f]{16}\b")


class EntryFormatter:
    """Formats entries in their order. An entry that refers to an earlier one by id shows that one's name instead."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def format(self, entry: LedgerEntry) -> str:
        """Return an entry in one printable line."""
        return escape_line(self._format(entry))

    def _format(self, entry: LedgerEntry) -> str:
        content = decode_entry(entry)
        name = self._find_name(content)
        match content:
            case TransitionEntry():
                why = name or content.reason
                return f"{content.from_state} → {content.to_state}{f': {why}' if why else ''}"
            case asset.PartReturnedEntry():
                return describe_returned_part(entry)
        text = _FORMATTERS[type(content)](content, name)
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


def format_entries(entries: list[LedgerEntry]) -> list[str]:
    """Return consecutive entries in one line each."""
    formatter = EntryFormatter()
    return [format_entry(entry, formatter) for entry in entries]


def _format_reasons(decision: DecisionEntry) -> str:
    return _INTERNAL_ID.sub("", describe_causes(decision.causes))


def _format_decision(decision: DecisionEntry, _: str) -> str:
    why, rule = _format_reasons(decision), f"[{decision.rule}]"
    move = f"{decision.from_state} → {decision.to_state}"
    waits = f", waits for {', '.join(decision.blockers)}" if decision.blockers else ""
    match decision.timing, decision.remedy:
        case "record", "ticket":
            return f"asks for a technician: {why}  {rule}"
        case "record", "cordon":
            return f"closes the node again: {why}  {rule}"
        case "record", "configure":
            return f"gets its settings where it is: {why}  {rule}"
        case "record", "configure-idle":
            return f"gets its settings where it is, without a job: {why}  {rule}"
        case "record", "wait" if decision.from_state == decision.to_state:
            return f"does not get its settings yet{waits}: {why}  {rule}"
        case "record", "wait":
            return f"does not go to {decision.to_state} yet: {why}  {rule}"
        case "record", _:
            return f"noted: {why}  {rule}"
        case "pending", _:
            return f"{move} when idle{waits}: {why}  {rule}"
    return f"{move} at once: {why}  {rule}"


def _format_fault(seen: fault.FaultEntry, _: str) -> str:
    times = f" ({seen.count} times)" if seen.count > 1 else ""
    return f"{seen.severity} fault {seen.fault_class} on {seen.subject}{times}: {seen.detail}"


def _effect_formatter(words: str) -> Callable[[Any, str], str]:
    def format_effect(content: effect.EffectProgressEntry, name: str) -> str:
        return f"{name} {words}{f': {content.reason}' if content.reason else ''}".strip()

    return format_effect


def _ticket_formatter(word: str) -> Callable[[Any, str], str]:
    def format_ticket(content: EntryContent, name: str) -> str:
        why, to = "", ""
        match content:
            case ticket.TicketClosedEntry():
                why = content.by
            case ticket.TicketReopenedEntry():
                why = content.reason
            case ticket.TicketDeliveredEntry():
                to = f" to {content.sink}{f' as {content.external}' if content.external else ''}"
        return f"ticket {word}{to}{f': {name}' if name else ''}{f' ({why})' if why else ''}"

    return format_ticket


def _format_visit(entry: schedule.NodeLoadedEntry, _: str) -> str:
    parts = [f"{part} {told.get('ended', '')}" for part, told in entry.parts.items()]
    took = "" if entry.gone_ms is None else f", gone within {entry.gone_ms / 1000:.1f} s"
    made_room = f"; made room for {entry.reason}{took}" if entry.reason else ""
    return f"loaded by {entry.schedule}: {', '.join(parts) or 'nothing ran'}{made_room}"


def _format_hold(hold: operator.HoldEntry, _: str) -> str:
    until = f" until {parse_time(hold.until):%Y-%m-%d %H:%M} UTC" if hold.until else ""
    return f"held by {hold.who}{until}: {hold.reason}"


def _format_move(move: operator.MoveEntry, _: str) -> str:
    return f"asked by {move.who} to go to {move.to}{' at once' if move.now else ''}: {move.reason}"


def _format_started_rollout(started: rollout.RolloutStartedEntry, _: str) -> str:
    count = format_count(sum(len(group.nodes) for group in started.groups), "node")
    why = format_list([group.reason for group in started.groups], 3)
    return f"a rollout of {started.base[:12]} → {started.commit[:12]} begins, {count}: {why}"


def _format_adopted_commit(adopted: rollout.CommitAdoptedEntry, _: str) -> str:
    before = f"{adopted.base[:12]} → " if adopted.base else ""
    rest = f", without a rollout: they cannot be compared: {adopted.uncompared}" if adopted.uncompared else ""
    return f"the fleet is brought to commit {before}{adopted.commit[:12]}{rest}"


def _format_clearance(cleared: fault.FaultClearedEntry, name: str) -> str:
    return f"fault over{', ' if name else ''}{name}: {cleared.reason}"


def _format_unknown(content: UnknownEntry, _: str) -> str:
    return ", ".join(f"{name} {value}" for name, value in content.body.items() if value not in ("", None))


_FORMATTERS: Mapping[type[EntryContent], Callable[[Any, str], str]] = {
    UnknownEntry: _format_unknown,
    NodeEnrolledEntry: lambda entry, _: (
        f"first seen, pool {entry.pool}, starts in {entry.state}{entry.reason and f': {entry.reason}'}"
    ),
    NodeRenamedEntry: lambda entry, _: f"renamed: the machine {entry.serial} was {entry.old}; its history goes on here",
    NodeLeftEntry: lambda entry, _: f"renamed: its machine is {entry.new} now",
    burn.BurnInStartedEntry: lambda entry, _: f"burn-in {entry.spec} began, {entry.hours:g} h",
    burn.BurnInWindowEntry: lambda entry, _: (
        f"burn-in: {entry.window['hours']:.1f} h are done, phase {entry.window['phase']}"
    ),
    burn.BurnInHeldEntry: lambda entry, _: f"burn-in goes on for {entry.hours:g} h: {'; '.join(entry.drifts)}",
    burn.BurnInEndedEntry: lambda entry, _: (
        f"burn-in {entry.outcome} after {entry.hours:.1f} h{entry.reason and f': {entry.reason}'}"
    ),
    DecisionEntry: _format_decision,
    DecisionWithdrawnEntry: lambda entry, _: f"no longer waits: {entry.reason}",
    fault.FaultEntry: _format_fault,
    fault.FaultClearedEntry: _format_clearance,
    fault.AlertResolvedEntry: lambda entry, _: f"alert {entry.alert} is over ({entry.fault})",
    fault.AlertElsewhereEntry: lambda entry, _: f"alert {entry.alert} of no node of ours: {entry.detail}",
    fault.ObservationFailedEntry: lambda entry, _: f"{entry.channel} did not answer: {entry.reason}",
    effect.EffectIntentEntry: _effect_formatter("begins"),
    effect.EffectDoneEntry: _effect_formatter("was done, not yet verified"),
    effect.EffectTriedEntry: _effect_formatter("did not succeed, and is tried again"),
    effect.EffectVerifiedEntry: _effect_formatter("verified"),
    effect.EffectFailedEntry: _effect_formatter("failed"),
    effect.EffectUnknownEntry: _effect_formatter("ended nobody knows how"),
    schedule.ScheduleStartedEntry: lambda entry, _: f"{entry.schedule} of {entry.part} begins",
    schedule.ScheduleRanEntry: lambda entry, _: f"{entry.schedule} of {entry.part} {entry.ended}: {entry.reason}",
    schedule.VerificationMissedEntry: lambda entry, _: f"not verified: {entry.reason}",
    schedule.NodeLoadedEntry: _format_visit,
    schedule.NodeUndrainedEntry: lambda entry, _: (
        f"given back after it passed {entry.schedule}; its drain said: {entry.reason}"
    ),
    operator.HoldEntry: _format_hold,
    operator.ReleaseEntry: lambda entry, _: f"released by {entry.who}: {entry.reason}",
    operator.CertifiedEntry: lambda entry, _: f"certified by {entry.who}: {entry.reason}",
    operator.MoveEntry: _format_move,
    operator.ZapRequestedEntry: _format_move,
    operator.ApprovedEntry: lambda entry, _: f"approved by {entry.who}: {entry.reason}",
    operator.DeclinedEntry: lambda entry, _: f"declined by {entry.who}: {entry.reason}",
    operator.OrderOutlivedEntry: lambda entry, _: f"waits for a person: {entry.reason}",
    operator.BreakerClearedEntry: lambda entry, _: (
        f"the breaker of pool {entry.pool} was cleared by {entry.who}: {entry.reason}"
    ),
    operator.CommitAcceptedEntry: lambda entry, _: f"acts on commit {entry.commit[:12]}, signed by {entry.signer}",
    rollout.CommitAdoptedEntry: _format_adopted_commit,
    rollout.RolloutStartedEntry: _format_started_rollout,
    rollout.RolloutPausedEntry: lambda entry, _: f"the rollout is paused by {entry.who}: {entry.reason}",
    rollout.RolloutResumedEntry: lambda entry, _: f"the rollout goes on, by {entry.who}: {entry.reason}",
    rollout.RolloutAbortedEntry: lambda entry, _: f"the rollout is aborted by {entry.who}: {entry.reason}",
    rollout.RolloutSupersededEntry: lambda entry, _: f"a later merge takes the rollout over: {entry.reason}",
    rollout.NodeProvenEntry: lambda entry, _: f"has what the rollout brings: {entry.reason}",
    rollout.RolloutFinishedEntry: lambda entry, _: f"the rollout is finished: {entry.reason}",
    operator.EntriesArchivedEntry: lambda entry, _: (
        f"{entry.who} moved {entry.archived:,} old entries into the archive {entry.file}"
    ),
    operator.OutcomesPrunedEntry: lambda entry, _: (
        f"{entry.who} deleted {format_count(entry.deleted, 'outcome')} of the runs up to number {entry.through}"
    ),
    operator.EvidencePrunedEntry: lambda entry, _: (
        f"{entry.who} deletes {format_count(entry.documents, 'document')} of evidence from before {entry.before}, "
        f"{entry.bytes / 1e6:.1f} MB"
    ),
    operator.OtherLedgerSealedEntry: lambda entry, _: (
        f"{entry.who} sealed another ledger: {', '.join(end.partition(':')[0] for end in entry.seal.split(','))} lines"
    ),
    ticket.TicketOpenedEntry: _ticket_formatter("opened"),
    ticket.TicketUpdatedEntry: _ticket_formatter("updated"),
    ticket.TicketClosedEntry: _ticket_formatter("closed"),
    ticket.TicketDoneEntry: lambda entry, _: f"{entry.who} says that the work is done: {entry.title} ({entry.note})",
    ticket.TicketPhotoEntry: lambda entry, _: f"{entry.who} added a photo to ticket {entry.title}",
    ticket.TicketReopenedEntry: _ticket_formatter("reopened"),
    ticket.TicketDeliveredEntry: _ticket_formatter("delivered"),
    ticket.DigestStartedEntry: lambda entry, _: (
        f"a digest of {format_count(len(entry.tickets), 'ticket')} for {entry.route}"
    ),
    notice.NoticeIntentEntry: lambda entry, _: f"customers are to read on the node: {entry.text}",
    notice.NoticeVerifiedEntry: lambda _, __: "customers read this on the node",
    notice.NoticeFailedEntry: lambda entry, _: f"customers do not read this on the node: {entry.reason}",
    notice.NoticesStartedEntry: lambda entry, _: (
        f"a message about {format_count(len(entry.items), 'node')} for {entry.webhook}"
    ),
    notice.NoticesSentEntry: lambda entry, _: (
        f"{entry.webhook} has a message about {format_count(entry.count, 'node')}"
    ),
    ticket.DigestSentEntry: lambda entry, _: f"{entry.route} has a digest of {format_count(entry.count, 'ticket')}",
    **ASSET_FORMATTERS,
    **PROVISIONING_FORMATTERS,
    **WIPE_FORMATTERS,
    **TREND_FORMATTERS,
}
FORMATTED_KINDS = frozenset(
    (*(content.kind for content in _FORMATTERS if content.kind), TransitionEntry.kind, asset.PartReturnedEntry.kind)
)
"""The entry kinds that have a formatter of their own."""
