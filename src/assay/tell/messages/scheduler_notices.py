"""Shows notices by the schedulers. The ledger has each intent before it is shown, and what a reading proved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from textwrap import shorten
from typing import Literal

from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.adapters.scheduler import PLANNED, NodeNotice, ShowsNotices, group_by_scheduler
from assay.decide.state.operation_record import OperationRecord
from assay.model.entries.tickets import NoticeFailedEntry, NoticeIntentEntry, NoticeVerifiedEntry
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.specs.customers import SchedulerNotices
from assay.model.timestamps import format_minute, parse_time
from assay.tell.customer.view import MAX_LINE

NOTHING_PLANNED = "The node is in service, and no work is planned on it."
KINDS = (NoticeIntentEntry.kind, NoticeVerifiedEntry.kind, NoticeFailedEntry.kind)


@frozen
class ShownNotice:
    """The last notice of a node, as the ledger has it; `at`: when it was last worked on (ISO 8601).

    `move` is the last way out of service or back that a notice announced.
    """

    intent: NoticeIntentEntry
    move: str
    at: str
    end: Literal["", "verified", "failed"] = ""


def _apply_entry(shown: dict[str, ShownNotice], entry: LedgerEntry) -> dict[str, ShownNotice]:
    known = shown.get(entry.node)
    if entry.kind == NoticeIntentEntry.kind:
        intent = NoticeIntentEntry.read(entry)
        shown[entry.node] = ShownNotice(intent, intent.move or (known.move if known else ""), entry.at)
        return shown
    is_verified = entry.kind == NoticeVerifiedEntry.kind
    ended = NoticeVerifiedEntry.read(entry).notice if is_verified else NoticeFailedEntry.read(entry).notice
    if known and known.intent.notice == ended:
        shown[entry.node] = replace(known, at=entry.at, end="verified" if is_verified else "failed")
    return shown


SHOWN_NOTICES = Projection[dict[str, ShownNotice]](KINDS, dict, _apply_entry, dict)
"""The last notice of each node."""


@dataclass
class NoticeJournal:
    """The last notice of each node, as the ledger has it and as this process has read it again.

    `lost` are the notices that somebody took away. `read_at`: when all were last read again.
    """

    recorded: Mapping[str, ShownNotice] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    read_at: datetime | None = None

    def find(self, node: str) -> ShownNotice | None:
        """Return the last notice of a node. One that is lost is shown once more, and not announced again."""
        notice = self.recorded.get(node)
        if notice and notice.intent.notice in self.lost:
            return replace(notice, intent=replace(notice.intent, text="", move=""), end="")
        return notice

    def list_told_out(self) -> set[str]:
        """Return the nodes of which the last notice does not prove that their customers know them back."""
        notices = {node: notice for node in self.recorded if (notice := self.find(node))}
        return {node for node, notice in notices.items() if not (notice.intent.in_service and notice.end == "verified")}

    def list_proved(self) -> dict[str, NodeNotice]:
        """Return the notices that nodes out of service had when they were last read."""
        shown = {node: notice for node in self.recorded if (notice := self.find(node)) and notice.end == "verified"}
        proved = {node: NodeNotice(notice.intent.in_service, notice.intent.text) for node, notice in shown.items()}
        return {node: notice for node, notice in proved.items() if not notice.in_service}


def decide_intent(
    node: str, notice: NodeNotice, shown: ShownNotice | None, rules: SchedulerNotices, now: datetime
) -> NoticeIntentEntry | None:
    """Return what to show on a node now, None for nothing: a move at once, and new words after a while. Pure."""
    in_service, line, move = notice.in_service, notice.text, notice.move
    ident = derive_id("notice", node, line, now.isoformat())
    if shown is None or shown.move != move:
        is_news = shown is not None or notice.is_worth_a_comment
        return NoticeIntentEntry(ident, in_service, line, move) if is_news else None
    if not shown.end and shown.intent.text == line:
        return shown.intent
    is_proved = shown.end == "verified"
    if is_proved and (in_service or shown.intent.text == line):
        return None
    if shown.end and now - parse_time(shown.at) < timedelta(minutes=rules.every_minutes):
        return None
    return NoticeIntentEntry(ident, in_service, line, "" if is_proved else shown.intent.move)


def list_planned_notices(
    context: ControllerContext, shown: Mapping[str, ShownNotice], operations: Iterable[OperationRecord]
) -> dict[str, NodeNotice]:
    """Return what nodes in service tell of work that is planned next; of none, where one told of some."""
    notices = {
        node: NodeNotice(True, NOTHING_PLANNED, derive_id("planned", node, notice.move))
        for node, notice in shown.items()
        if notice.intent.text.startswith(PLANNED)
    }
    planned = [record for record in operations if record.state == "planned"]
    for record in sorted(planned, key=lambda record: record.starts_at, reverse=True):
        for each in (each for each in record.nodes if each.state == "planned"):
            starts_at = record.begins_on(each)
            window = f"from {format_minute(starts_at)} to {format_minute(record.ends_at)}"
            text = shorten(f"{PLANNED}{record.operation} {window}: {record.reason}", MAX_LINE, placeholder=" …")
            notices[each.node] = NodeNotice(True, text, derive_id("planned", each.node, record.id, starts_at))
    states, serving = read_node_states(context.ledger), context.fleet.states_in_service
    return {node: notice for node, notice in notices.items() if node in states and states[node].state in serving}


def show_on_nodes(context: ControllerContext, journal: NoticeJournal, notices: Mapping[str, NodeNotice]) -> None:
    """Show what is due, each scheduler's nodes together. A scheduler that fails costs its own nodes only."""
    rules, now = context.policy.notices.scheduler, context.clock.now()
    if journal.read_at is None or now - journal.read_at >= timedelta(minutes=rules.every_minutes):
        _look_for_lost_notices(context, journal)
        journal.read_at = now
    due = {
        node: intent
        for node, notice in notices.items()
        if node in context.fleet.nodes and (intent := decide_intent(node, notice, journal.find(node), rules, now))
    }
    groups = group_by_scheduler([context.fleet.nodes[name] for name in due], context.workloads)
    for scheduler, names in groups.nodes.items():
        if isinstance(scheduler, ShowsNotices):
            try:
                _show_in_scheduler(context, scheduler, {name: due[name] for name in names})
            except AssayError as error:
                context.progress(f"{names[0]}: customers are not told on the node: {error.what}")


def _look_for_lost_notices(context: ControllerContext, journal: NoticeJournal) -> None:
    """Read again what nodes out of service show: somebody may have taken a notice away, or made the node anew."""
    proved = {name: notice for name, notice in journal.list_proved().items() if name in context.fleet.nodes}
    groups = group_by_scheduler([context.fleet.nodes[name] for name in proved], context.workloads)
    for scheduler, names in groups.nodes.items():
        if isinstance(scheduler, ShowsNotices):
            try:
                for name in scheduler.find_missing_notices({name: proved[name] for name in names}):
                    journal.lost.add(journal.recorded[name].intent.notice)
            except AssayError as error:
                context.progress(f"{names[0]}: cannot read what customers are told on the node: {error.what}")


def _show_in_scheduler(
    context: ControllerContext, scheduler: ShowsNotices, intents: Mapping[str, NoticeIntentEntry]
) -> None:
    """Record the intents, show them, read the nodes, and record what they show. Without an answer, all stay open."""
    context.ledger.append(*(intent.make_entry(intent.notice, context.now, node) for node, intent in intents.items()))
    wanted = {node: NodeNotice(intent.in_service, intent.text, intent.move) for node, intent in intents.items()}
    refusal = ""
    try:
        scheduler.show_notices(wanted)
    except AssayError as error:
        refusal = error.what
    missing = scheduler.find_missing_notices(wanted)
    ends = (_make_end(context, node, intent, missing.get(node, ""), refusal) for node, intent in intents.items())
    context.ledger.append(*ends)


def _make_end(
    context: ControllerContext, node: str, intent: NoticeIntentEntry, missing: str, refusal: str
) -> LedgerEntry:
    if not missing:
        proof = NoticeVerifiedEntry(intent.notice)
        return proof.make_entry(derive_id(intent.notice, "verified"), context.now, node)
    failure = NoticeFailedEntry(intent.notice, f"{missing}; {refusal}" if refusal else missing)
    return failure.make_entry(derive_id(intent.notice, "failed"), context.now, node)
