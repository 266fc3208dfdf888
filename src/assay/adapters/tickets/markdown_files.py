"""The ticket sink `markdown`: one Markdown file for each ticket. A file is complete at every moment."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from assay.adapters.tickets.sink_protocol import SinkContext, SinkUnavailable, TicketRefusal
from assay.adapters.tickets.ticket_markdown import format_ticket_markdown
from assay.model.specs.sink_settings import SinkSettings
from assay.model.ticket import TicketRecord

DEFAULT_TICKET_FOLDER = ".assay/tickets"


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
