"""Formats a digest as plain text: a headline, a line for each ticket, and where the tickets are if there are many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from assay.adapters.tickets.ticket_markdown import format_ticket_title
from assay.model.text.text_lists import format_count, format_list
from assay.model.timestamps import format_minute
from assay.tell.messages.digest import Digest, DigestItem

MAX_LINES = 20
MAX_TITLE = 200
SEVERITIES = ("catastrophic", "degraded", "informational")
"""From bad to harmless: the worst tickets come first."""
REPEAT_NOTE = "An attempt to send this message broke off, so you may have it already."


def format_headline(digest: Digest) -> str:
    """Return what happened in one line: `assay: 3 tickets opened, 1 ticket closed`. One ticket gives its title."""
    if len(digest.items) == 1:
        (item,) = digest.items
        return f"assay: {item.event.what}: {format_ticket_title(item.record, MAX_TITLE)}"
    counts = Counter(item.event.what for item in digest.items)
    words = [
        f"{format_count(counts[what], 'ticket')} {what}" for what in ("opened", "reopened", "closed") if counts[what]
    ]
    return f"assay: {', '.join(words)}"


def format_digest_lines(digest: Digest) -> list[str]:
    """Return the lines below the headline, at most a few more than MAX_LINES."""
    items = sorted(digest.items, key=_rank)
    lines = [_format_item(item) for item in items[:MAX_LINES]]
    if len(items) > MAX_LINES:
        lines.append(f"… and {len(items) - MAX_LINES} more; `assay tickets` lists all")
        lines.append(f"racks: {_count_racks(items)}")
    return [*lines, REPEAT_NOTE] if digest.may_repeat else lines


def find_worst_severity(digest: Digest) -> str:
    """Return the worst severity of the open tickets, "" if none is open."""
    return min((item.record.ticket.severity for item in digest.items if item.is_open), key=_rank_severity, default="")


def _format_item(item: DigestItem) -> str:
    ticket = item.record.ticket
    place = next((f"{one.rack} U{one.u}" if one.u else one.rack for one in ticket.places if one.rack), "")
    about = ", ".join(filter(None, [ticket.severity, place, f"ticket {ticket.id}"]))
    title = format_ticket_title(item.record, MAX_TITLE)
    return f"{format_minute(item.event.at)} {item.event.what}: {title} ({about})"


def _count_racks(items: Sequence[DigestItem]) -> str:
    racks = Counter(rack for item in items for rack in {one.rack for one in item.record.ticket.places if one.rack})
    return format_list([f"{rack} {count}" for rack, count in racks.most_common()])


def _rank(item: DigestItem) -> tuple[bool, int, str]:
    return not item.is_open, _rank_severity(item.record.ticket.severity), item.event.at


def _rank_severity(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)
