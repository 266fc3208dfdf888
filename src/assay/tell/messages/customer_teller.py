"""Tells customers what became of their nodes, wherever the policy's `notices` say. Called once in each round."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.act.loop.context import ControllerContext
from assay.model.specs.notice_rules import NoticeRules
from assay.tell.messages import scheduler_notices, webhook_notices
from assay.tell.messages.current_notices import CurrentNotices
from assay.tell.messages.scheduler_notices import NoticeJournal, show_on_nodes
from assay.tell.messages.webhook_notices import WebhookJournal, send_to_webhooks
from assay.tell.views.live_records import LiveRecords


@dataclass
class CustomerTeller:
    """Reads each entry about notices once. One object belongs to one ledger."""

    _shown: NoticeJournal = field(default_factory=NoticeJournal)
    _sent: WebhookJournal = field(default_factory=WebhookJournal)
    _current: CurrentNotices = field(default_factory=CurrentNotices)
    _seq: int = 0

    def __call__(self, context: ControllerContext) -> None:
        """Tell what is new."""
        rules = context.policy.notices
        if rules == NoticeRules():
            return
        self._read_new_entries(context)
        notices = self._current.read(
            LiveRecords(lambda: context), self._shown.list_told_out() | self._sent.list_told_out()
        )
        notices = [one for one in notices if not context.fleet.is_watched(one.node)]
        if rules.scheduler.shown:
            show_on_nodes(context, self._shown, notices)
        send_to_webhooks(context, self._sent, notices)

    def _read_new_entries(self, context: ControllerContext) -> None:
        if entries := context.ledger.entries(kinds=[*scheduler_notices.KINDS, *webhook_notices.KINDS], after=self._seq):
            self._shown.add(entries)
            self._sent.add(entries)
            self._seq = entries[-1].seq
