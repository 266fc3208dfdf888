"""Sends customers' webhooks one signed message about all that is new. The ledger has it before it is sent.

The body is one JSON object: `message` (its id), `at`, and `nodes`, each with its `node`, `pool`, `event` (`left`,
`expected` or `back`; of planned work `planned` or `dropped`, with the `operation`), `since`, and the four texts
`happened`, `means`, `doing` and `back`. It is signed as the ticket
sink `webhook` signs. A repeated message has the same `Idempotency-Key` and the same body.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

from assay.act.loop.context import ControllerContext
from assay.decide.state.operation_record import OperationRecord
from assay.model.entries.tickets import NoticesSentEntry, NoticesStartedEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.specs.customers import CustomerWebhook
from assay.model.text.safe_text import redact
from assay.model.timestamps import format_minute, parse_time
from assay.tell.customer.view import ServiceNotice
from assay.tell.messages.routes import PostponedDeliveries, read_sink_secret

KINDS = (NoticesStartedEntry.kind, NoticesSentEntry.kind)
MAX_NODES = 500
"""A message tells of so many nodes. The next one has the rest."""
NoticeEvent = Literal["left", "expected", "back", "planned", "dropped"]
OUT: tuple[NoticeEvent, ...] = ("left", "expected")
TEXTS = ("happened", "means", "doing", "back")
Item = Mapping[str, Any]


@dataclass
class WebhookRecord:
    """What the ledger knows of one webhook: the last item of each node that was sent, and what may not have been."""

    known: dict[str, Item] = field(default_factory=dict)
    sent_at: str = ""
    unfinished: tuple[NoticesStartedEntry, str] | None = None
    """The message that was started and not noted as sent, and when it was started (ISO 8601)."""


WebhookRecords = dict[tuple[str, str], WebhookRecord]


def _apply_entry(records: WebhookRecords, entry: LedgerEntry) -> WebhookRecords:
    if entry.kind == NoticesStartedEntry.kind:
        started = NoticesStartedEntry.read(entry)
        records.setdefault((started.webhook, started.destination), WebhookRecord()).unfinished = started, entry.at
        return records
    message = NoticesSentEntry.read(entry).message
    for record in records.values():
        if record.unfinished and record.unfinished[0].message == message:
            record.known |= {_name_subject(item): item for item in record.unfinished[0].items}
            record.sent_at, record.unfinished = entry.at, None
    return records


def _name_subject(item: Item) -> str:
    """Return what an item is about: a node, or an operation that is planned there."""
    return f"{item['node']} {item['operation']}" if "operation" in item else str(item["node"])


WEBHOOK_RECORDS = Projection[WebhookRecords](
    KINDS,
    dict,
    _apply_entry,
    lambda records: {key: replace(record, known=dict(record.known)) for key, record in records.items()},
)
"""The records by the webhook's name and destination. One that was pointed elsewhere, or got other pools, has none."""


def list_told_out(records: WebhookRecords) -> set[str]:
    """Return the nodes of which a webhook last heard that they are out."""
    items = [item for record in records.values() for item in record.known.values()]
    return {item["node"] for item in items if item["event"] in OUT}


def find_news(notices: Iterable[ServiceNotice], known: Mapping[str, Item], pools: Sequence[str]) -> Iterator[Item]:
    """Yield an item for each node of these pools of which there is news. Pure."""
    for notice in notices:
        standing = notice.standing
        if standing.pool in pools and (event := _find_event(notice, known.get(notice.node))):
            about = {"node": notice.node, "pool": standing.pool, "event": event, "since": standing.since}
            yield {**about, **{name: getattr(notice.texts, name) for name in TEXTS}}


def find_planned(
    operations: Iterable[OperationRecord], known: Mapping[str, Item], pools: Mapping[str, str]
) -> Iterator[Item]:
    """Yield an item for each planned operation on a node of `pools` (node → pool) of which there is news. Pure."""
    for record in operations:
        for each in record.nodes if record.starts_at else ():
            starts_at = record.begins_on(each)
            about: Item = {"node": each.node, "operation": record.id}
            last, is_planned = known.get(_name_subject(about)), each.state == "planned"
            was_planned = last is not None and last["event"] == "planned"
            has_begun = each.order == derive_id("operation", record.id, each.node)
            is_dropped = was_planned and not is_planned and not has_begun
            if each.node not in pools or not (is_planned or is_dropped):
                continue
            if was_planned and is_planned and last and last["since"] == starts_at:
                continue
            window = f"from {format_minute(starts_at)} to {format_minute(record.ends_at)}"
            texts = {
                "happened": f"{record.operation} is planned: {record.reason}",
                "means": f"The node takes no jobs {window}.",
                "doing": "We do it in this window.",
                "back": record.ends_at,
            }
            if is_dropped:
                texts = dict.fromkeys(TEXTS, "") | {"happened": f"{record.operation} {window} does not take place."}
            event: NoticeEvent = "dropped" if is_dropped else "planned"
            yield {**about, "pool": pools[each.node], "event": event, "since": starts_at, **texts}


def _find_event(notice: ServiceNotice, last: Item | None) -> NoticeEvent | None:
    """Return what is news of a node. Who never heard that it left does not hear that it is back."""
    is_told_out = last is not None and last["event"] in OUT
    if notice.standing.in_service:
        return "back" if is_told_out else None
    if last is None or not is_told_out or last["since"] != notice.standing.since:
        return "left"
    return "expected" if last["back"] != notice.texts.back else None


def send_to_webhooks(
    context: ControllerContext,
    records: WebhookRecords,
    notices: Sequence[ServiceNotice],
    operations: Collection[OperationRecord] = (),
) -> None:
    """Send each webhook what is new to it; in a lab, nothing. One that fails is tried later, and stops no other."""
    hooks = {} if context.fleet.is_lab else context.policy.notices.webhooks
    postponed, now = PostponedDeliveries(context.home / "notices.json"), context.clock.now()
    for name, hook in hooks.items():
        if postponed.find_retry_time(name, now):
            continue
        try:
            _WebhookDelivery(context, name, hook).deliver(records, notices, operations)
            postponed.clear(name)
        except AssayError as error:
            wait = timedelta(seconds=getattr(error, "after_s", 0.0))
            reason = redact(error.what)
            until = postponed.postpone(name, reason, now, wait)
            context.progress(f"the webhook of {name} got no notices: {reason}; tries again at {until}")
    postponed.save()


class _WebhookDelivery:
    """The delivery to one webhook."""

    def __init__(self, context: ControllerContext, name: str, hook: CustomerWebhook) -> None:
        self._context, self._name, self._hook = context, name, hook
        self._destination = derive_id("customer webhook", hook.url, *sorted(hook.pools))

    def deliver(
        self, records: WebhookRecords, notices: Sequence[ServiceNotice], operations: Collection[OperationRecord]
    ) -> None:
        """Send the message that was interrupted, else one of all news. Raises AssayError if it is not taken."""
        record = records.get((self._name, self._destination)) or WebhookRecord()
        unfinished = record.unfinished
        since = self._context.clock.now() - parse_time(record.sent_at) if record.sent_at else None
        may_send = since is None or since >= timedelta(minutes=self._hook.every_minutes)
        if unfinished is None and may_send:
            pools = {
                name: node.pool for name, node in self._context.fleet.nodes.items() if node.pool in self._hook.pools
            }
            news = [*find_news(notices, record.known, self._hook.pools), *find_planned(operations, record.known, pools)]
            unfinished = self._start(tuple(news)[:MAX_NODES])
        watched = self._context.fleet.is_watched
        if unfinished and not any(watched(item["node"]) for item in unfinished[0].items):
            self._send(*unfinished)

    def _start(self, items: tuple[Item, ...]) -> tuple[NoticesStartedEntry, str] | None:
        """Record the message that is about to be sent. Return None if it has nothing to tell."""
        if not items:
            return None
        at = self._context.now
        ident = derive_id("notices", self._name, self._destination, at)
        started = NoticesStartedEntry(ident, self._name, self._destination, items)
        self._context.ledger.append(started.make_entry(derive_id(ident, "started"), at))
        return started, at

    def _send(self, started: NoticesStartedEntry, at: str) -> None:
        from assay.adapters.tickets.sink import SinkHttpClient
        from assay.adapters.tickets.webhook import make_signer

        where = f"notices.webhooks.{self._name}"
        secret = read_sink_secret(self._hook.credentials, self._context.fleet.root, where)
        client = SinkHttpClient(self._hook.url, where, make_signer(secret))
        body = {"message": started.message, "at": at, "nodes": [dict(sorted(item.items())) for item in started.items]}
        client.request("POST", "", body, headers={"Idempotency-Key": started.message})
        sent = NoticesSentEntry(started.message, self._name, len(started.items))
        self._context.ledger.append(sent.make_entry(derive_id(started.message, "sent"), self._context.now))
