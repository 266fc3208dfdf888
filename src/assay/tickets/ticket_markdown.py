"""A ticket as a technician reads it, in Markdown. What came from the fabric stands in fences and changes nothing."""

from __future__ import annotations

import re

from assay.model.ticket import TicketEvent, TicketPlace, TicketRecord

TICKET_MARK = "assay-ticket:"
_MARKED = re.compile(r"\A\s*(?:<!-- )?assay-ticket: ([0-9a-f]{16})\b")


def find_ticket_mark(text: str) -> str:
    """Return the id of the ticket that a text, written by `format_ticket_markdown`, is about; "" of any other text."""
    found = _MARKED.match(text)
    return found[1] if found else ""


def format_ticket_title(listed: TicketRecord, longest: int = 250) -> str:
    """Return the title in one line."""
    text = " ".join(listed.ticket.title.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def format_ticket_markdown(listed: TicketRecord) -> str:
    """Return the whole ticket; its first line is the mark by which it is found again."""
    ticket = listed.ticket
    parts = [f"<!-- {TICKET_MARK} {ticket.id} -->", f"# {_escape(format_ticket_title(listed))}", _format_state(listed)]
    parts += _section("Where", _format_places(ticket.places))
    for heading, text in (
        ("Expected", ticket.expected),
        ("Seen", ticket.seen),
        ("Likely cause", ticket.cause),
        ("Also interrupted by the work", ticket.beside),
    ):
        parts += _section(heading, _fence(text))
    parts += _section("Steps", _format_steps(ticket.steps))
    parts += _section("Files", _format_files(ticket.files))
    by_hand = ticket.verify.startswith("assay ")
    parts += _section("When it is done" if by_hand else "Closed by itself when this passes", _fence(ticket.verify))
    parts += _section("History", "\n".join(f"- {format_ticket_event(one)}" for one in listed.history))
    return "\n\n".join(parts) + "\n"


def format_ticket_event(one: TicketEvent) -> str:
    """Return one line of a ticket's history; what was seen is in the ticket."""
    why = f": {_escape(' '.join(one.why.split()))}" if one.what in ("closed", "reopened") and one.why else ""
    return f"{_format_minute(one.at)} {one.what}{why}"


def _format_state(listed: TicketRecord) -> str:
    state = (
        f"Closed at {_format_minute(listed.closed_at)}"
        if listed.closed_at
        else f"Open since {_format_minute(_find_opened_at(listed))}"
    )
    times = f"; reopened {listed.reopen_count}×" if listed.reopen_count else ""
    severity = f"; {listed.ticket.severity}" if listed.ticket.severity else ""
    return f"**{state}**{times}{severity}; ticket `{listed.ticket.id}`"


def _find_opened_at(listed: TicketRecord) -> str:
    return next((one.at for one in reversed(listed.history) if one.what == "reopened"), listed.opened_at)


def _format_minute(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


def _section(heading: str, text: str) -> list[str]:
    return [f"## {heading}", text] if text else []


def _format_places(places: tuple[TicketPlace, ...]) -> str:
    rows = [(one.site, one.rack, f"U{one.u}" if one.u else "", one.device, one.port, one.label) for one in places]
    lines = [f"| {' | '.join(map(_escape, row))} |" for row in rows]
    head = ["| site | rack | U | device | port | label |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *lines]) if lines else ""


def _format_steps(text: str) -> str:
    return "\n".join(f"{number}. {_escape(line)}" for number, line in enumerate(text.splitlines(), 1))


def _format_files(text: str) -> str:
    return "\n".join(
        f"- `{path}` {_escape(what)}" for path, _, what in (line.partition("  ") for line in text.splitlines())
    )


def _fence(text: str) -> str:
    """Return a text between fences that are longer than any in it."""
    if not text:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _escape(text: str) -> str:
    """Return a text with what Markdown or a tracker would act on (tables, tags, links, mentions) taken literally."""
    return re.sub(r"([\\`*_<>\[\]|@#])", r"\\\1", text).replace("\\@", "@\u2060")
