"""The ticket sink `markdown`: one Markdown file for each ticket. A file is complete at every moment.

Other sinks use its text too. What the fabric or a machine said stands in fences, where it is never markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from assay.adapters.tickets.sink import SinkContext, SinkUnavailable, TicketRefusal
from assay.model.specs.technician_work import SinkSettings
from assay.model.text.safe_text import escape_controls, escape_line
from assay.model.ticket import TicketRecord
from assay.model.timestamps import format_minute

if TYPE_CHECKING:
    from assay.model.ticket import TicketEvent, TicketPlace


DEFAULT_TICKET_FOLDER = ".assay/tickets"
TICKET_MARK = "assay-ticket:"
TURNS = ("closed", "reopened", "merged", "split")
"""The events that a ticket system gets a comment on."""
_MARKED = re.compile(r"\A\s*(?:<!-- )?assay-ticket: ([0-9a-f]{16})\b")


def format_ticket_markdown(
    record: TicketRecord, *, folds: bool = True, escape: Callable[[str], str] | None = None
) -> str:
    """Return the whole ticket: its answers in the first ten lines, then the work, then the evidence.

    Its first line holds the mark by which a sink finds it again. `folds`: whether its reader's system folds what stands
    in `<details>`, as those do that show Markdown. `escape` makes a text of one line harmless where nobody renders it.
    """
    ticket, escape = record.ticket, escape or _escape
    files = [line.partition("  ") for line in ticket.files.splitlines()]  # a path, two spaces, and what the file is
    work = (
        ("Where", _format_places(ticket.places, escape)),
        ("Also interrupted by this work", _fence(ticket.beside)),
        ("Steps", "\n".join(f"{n}. {escape(line)}" for n, line in enumerate(ticket.steps.splitlines(), 1))),
        ("Files", "\n".join(f"- `{escape_line(path)}` {escape(content)}" for path, _, content in files)),
        ("When you are done", _fence(ticket.verify) if ticket.verify.startswith("assay ") else ""),
    )
    evidence = (
        ("Closes by itself when this passes", "" if ticket.verify.startswith("assay ") else _fence(ticket.verify)),
        ("Likely cause", _fence(ticket.cause)),
        ("Observed", _fence(ticket.seen)),
        ("Expected", _fence(ticket.expected)),
        ("History", "\n".join(f"- {format_ticket_event(event, escape)}" for event in record.history)),
    )
    answers = [line.partition(": ") for line in record.answers]
    parts = [
        f"<!-- {TICKET_MARK} {ticket.id} -->\n# {escape(format_ticket_title(record))}",
        _format_state(record),
        "\n".join(f"- **{label}**: {escape(answer)}" for label, _, answer in answers),
        *_format_sections(work),
        *(["<details><summary>Evidence</summary>"] if folds else []),
        *_format_sections(evidence),
        *(["</details>"] if folds else []),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _format_sections(sections: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"## {heading}\n\n{text}" for heading, text in sections if text)


def find_ticket_mark(text: str) -> str:
    """Return the id in the mark of a text that `format_ticket_markdown` wrote, "" for any other text."""
    match = _MARKED.match(text)
    return match[1] if match else ""


def format_ticket_title(record: TicketRecord, longest: int = 250) -> str:
    """Return the title in one line of at most `longest` characters."""
    text = escape_line(" ".join(record.ticket.title.split()))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def format_last_turn(record: TicketRecord) -> tuple[str, str]:
    """Return the comment on a ticket's last turn, and the mark that is in it; "" twice for one without any."""
    turns = [event for event in record.history if event.what in TURNS]
    if not turns:
        return "", ""
    last = turns[-1]
    mark = f"{TICKET_MARK} {record.ticket.id} {last.what} {last.at}"
    lines = [format_ticket_event(event, _escape) for event in turns if event.at == last.at]
    return "\n".join([*lines, mark]), mark


def format_ticket_event(event: TicketEvent, escape: Callable[[str], str]) -> str:
    """Return one line of a ticket's history, with the reason of a turn, or what was done."""
    reason = " ".join(event.why.split()) if event.what in (*TURNS, "done") else ""
    return f"{format_minute(event.at)} {event.what}{f': {escape(reason)}' if reason else ''}"


def _format_state(record: TicketRecord) -> str:
    reopened_at = next((event.at for event in reversed(record.history) if event.what == "reopened"), "")
    if record.closed_at:
        state = f"Closed at {format_minute(record.closed_at)}"
    else:
        state = f"Open since {format_minute(reopened_at or record.opened_at)}"
    times = f"; reopened {record.reopen_count}×" if record.reopen_count else ""
    severity = f"; {record.ticket.severity}" if record.ticket.severity else ""
    lab = ". **Lab**: this is about a virtual machine; nobody needs to go anywhere" if record.context == "lab" else ""
    return f"**{state}**{times}{severity}; ticket `{record.ticket.id}`{lab}"


def _format_places(places: tuple[TicketPlace, ...], escape: Callable[[str], str]) -> str:
    rows = [
        (place.site, place.rack, f"U{place.u}" if place.u else "", place.device, place.port, place.label)
        for place in places
    ]
    lines = [f"| {' | '.join(map(escape, row))} |" for row in rows]
    head = ["| site | rack | U | device | port | label |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *lines]) if lines else ""


def _fence(text: str) -> str:
    """Return a text between fences that are longer than any in it."""
    if not text:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{escape_controls(text)}\n{fence}"


def _escape(text: str) -> str:
    """Return a text in which nothing is markup for Markdown or a tracker: no table, tag, link or mention."""
    return re.sub(r"([\\`*_<>\[\]|@#])", r"\\\1", escape_line(text)).replace("\\@", "@\u2060")


class MarkdownRoute(SinkSettings):
    """One file for each ticket in `folder`, relative to the repository: one that phones read, or that git syncs."""

    destination_fields: ClassVar = ("folder",)

    folder: str = Field(default=DEFAULT_TICKET_FOLDER, min_length=1)


class MarkdownFileSink:
    """Files `ID.md` in a folder. The file's name is the ticket's external id.

    The default folder is in `.assay/` wherever that is; any other folder is relative to the repository.
    """

    settings_model = MarkdownRoute
    is_local = True

    def __init__(self, settings: MarkdownRoute, context: SinkContext) -> None:
        is_default = settings.folder == DEFAULT_TICKET_FOLDER
        self._folder = context.home / "tickets" if is_default else context.root / settings.folder

    def deliver(self, record: TicketRecord, version: str, external_id: str) -> str:  # noqa: ARG002 — the id names the file
        """Write the file under another name and rename it over the old one."""
        name = f"{record.ticket.id}.md"
        if "/" in name or name.startswith("."):
            raise TicketRefusal(f"{name!r} cannot be the name of a file", where=str(self._folder))
        scratch = self._folder / f".{name}.new"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            scratch.write_text(format_ticket_markdown(record), encoding="utf-8", errors="replace")
            scratch.replace(self._folder / name)
        except OSError as error:
            raise SinkUnavailable(f"the ticket cannot be written: {error.strerror}", where=str(self._folder)) from None
        return name

    def holds(self, external_id: str) -> bool:
        """Say whether the file is there."""
        return (self._folder / external_id).is_file()
