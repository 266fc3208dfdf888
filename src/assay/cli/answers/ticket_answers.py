"""The shapes of what `assay tickets` prints with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model.facts import fact

if TYPE_CHECKING:
    pass


@fact
class UnknownTicketsAnswer:
    """The tickets as they were last written to files, open or closed."""

    tickets: None
    """Always null: only the ledger knows which tickets are open."""
    files: dict[str, str]
    """The first line of each file of a ticket, by the path of the file."""
    problem: str
    """Why the ledger cannot be read."""
