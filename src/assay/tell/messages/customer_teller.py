"""Tells customers what became of their nodes, wherever the policy's `notices` say. Called once in each round.

Notices are kept for a while: each costs a reading of what is known of the node.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.act.loop.context import ControllerContext
from assay.adapters.scheduler import NodeNotice
from assay.decide.state.service_absences import list_fleet_absences
from assay.ledger.ledger_reader import read_projection
from assay.model.specs.customers import NoticeRules
from assay.tell.customer.view import ServiceNotice, ServiceStanding, list_standings, make_notice
from assay.tell.messages.scheduler_notices import SHOWN_NOTICES, NoticeJournal, list_planned_notices, show_on_nodes
from assay.tell.messages.webhook_notices import WEBHOOK_RECORDS, list_told_out, send_to_webhooks
from assay.tell.views.records import LiveRecords

KEPT = timedelta(minutes=30)
"""An estimate changes with the absences of other nodes, so that a notice is read again after so long."""
BUDGET_S = 20.0
"""So long one look may take. After a wave of faults, the next look reads the rest."""


@dataclass
class CurrentNotices:
    """Reads notices, the same one again only after the node moved on, or after KEPT."""

    _kept: dict[str, tuple[datetime, ServiceNotice]] = field(default_factory=dict)

    def read(self, records: LiveRecords, told_out: Collection[str]) -> list[ServiceNotice]:
        """Return the notices of the nodes that are out of service, and of those whose customers were told so."""
        states, now, ends_at = records.read_node_states(), records.clock.now(), time.monotonic() + BUDGET_S
        standings = {standing.state.node: standing for standing in list_standings(records, states)}
        wanted = {node: standing for node, standing in standings.items() if not standing.in_service or node in told_out}
        absences = list_fleet_absences(records.fleet.policies.values(), states) if wanted else []
        for node, standing in wanted.items():
            if time.monotonic() < ends_at and not self._is_fresh(standing, now):
                self._kept[node] = now, make_notice(records, absences, standing)
        self._kept = {node: self._kept[node] for node in wanted if node in self._kept}
        return list(self._list_valid(wanted.values()))

    def _is_fresh(self, standing: ServiceStanding, now: datetime) -> bool:
        read_at, notice = self._kept.get(standing.state.node, (None, None))
        if not notice or not read_at or now - read_at >= KEPT:
            return False
        before, after = notice.standing.state, standing.state
        return (before.stay_id, before.hold) == (after.stay_id, after.hold)

    def _list_valid(self, wanted: Collection[ServiceStanding]) -> Iterator[ServiceNotice]:
        for standing in wanted:
            _, notice = self._kept.get(standing.state.node, (None, None))
            if notice and notice.standing.move == standing.move:
                yield notice


@dataclass
class CustomerTeller:
    """Tells what is new. One object belongs to one ledger."""

    _shown: NoticeJournal = field(default_factory=NoticeJournal)
    _current: CurrentNotices = field(default_factory=CurrentNotices)
    _context: ControllerContext | None = None
    _records: LiveRecords | None = None

    def __call__(self, context: ControllerContext) -> None:
        """Tell what is new."""
        rules = context.policy.notices
        if rules == NoticeRules():
            return
        shown, sent = read_projection(context.ledger, SHOWN_NOTICES), read_projection(context.ledger, WEBHOOK_RECORDS)
        self._shown.recorded = shown
        self._context = context
        records = self._records = self._records or LiveRecords(self._get_context)
        operations = list(records.read_operations(None).values())
        notices = self._current.read(records, self._shown.list_told_out() | list_told_out(sent))
        notices = [notice for notice in notices if not context.fleet.is_watched(notice.node)]
        if rules.scheduler.shown:
            on_nodes = {
                each.node: NodeNotice(each.standing.in_service, each.line, each.standing.move) for each in notices
            }
            planned = list_planned_notices(context, shown, operations)
            on_nodes |= {node: notice for node, notice in planned.items() if not context.fleet.is_watched(node)}
            show_on_nodes(context, self._shown, on_nodes)
        send_to_webhooks(context, sent, notices, operations)

    def _get_context(self) -> ControllerContext:
        assert self._context is not None
        return self._context
