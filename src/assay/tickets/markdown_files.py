"""Tickets as Markdown files: one a ticket, whole at every moment."""

from __future__ import annotations

from pathlib import Path

from assay.model.ticket import TicketRecord
from assay.tickets.sink_protocol import SinkUnavailable, TicketRefusal
from assay.tickets.ticket_markdown import format_ticket_markdown


class MarkdownFileSink:
    """`ID.md` in a folder; its name is how the sink calls the ticket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def deliver(self, listed: TicketRecord, version: str, external: str) -> str:  # noqa: ARG002 — a file's name says it all
        """Write the file anew and put it in the old one's place at once."""
        name = f"{listed.ticket.id}.md"
        if "/" in name or name.startswith("."):
            raise TicketRefusal(f"{name!r} cannot be the name of a file", where=str(self._folder))
        scratch = self._folder / f".{name}.new"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            scratch.write_text(format_ticket_markdown(listed), encoding="utf-8", errors="replace")
            scratch.replace(self._folder / name)
        except OSError as error:
            raise SinkUnavailable(f"cannot be written: {error.strerror}", where=str(self._folder)) from None
        return name

    def holds(self, external: str) -> bool:
        """Whether the file is there."""
        return (self._folder / external).is_file()
