"""Takes the rows of a BMC's event log out of another text: a mail, a ticket, or a kernel log in which they stand.

`ipmitool sel list` and FreeIPMI's `ipmi-sel` print one row for each event; no kernel writes such a line. The web page
of a BMC exports CSV, below a line that names the columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assay.observe.logs.dmesg_pieces import DmesgPieces
from assay.observe.logs.event_texts.event_tables import EventTables

ROW = re.compile(
    rb"^[ \t>|*`]{0,20}(?P<row>(?:[A-Za-z][\w.-]{0,63}: +)?"
    rb"[0-9a-fA-F]{1,5} {1,8}\| *(?:\d\d/\d\d/\d{2,4}|[A-Z][a-z]{2}-\d\d-\d{4}|Pre-Init) *"
    rb"\| *[\d:]{5,12}[^|\n]{0,12}\|[^\n]{3,1000}\n?)",
    re.MULTILINE,
)
ALARM = re.compile(
    rb'^\s*Severity\s*[:=]\s*Critical\b[^\n]*|[^\n]*"Severity"\s*:\s*"Critical"[^\n]*'
    rb'|^(?:[^,;\t\n]{0,64}[,;\t]){0,6}"?Critical"?[,;\t][^\n]*',
    re.MULTILINE,
)
"""A critical entry in a form that has no rows: racadm's, Redfish's, or CSV."""
SIGN_OF_ALARM = b"Critical"
SHOWN_LENGTH = 200
MAX_ROWS_BYTES = 16 * 1024 * 1024
"""No BMC keeps a longer log."""


class EventRows:
    """The event logs that were taken out of the pieces of a text, and the first critical entry that is no row."""

    def __init__(self, dmesg: DmesgPieces) -> None:
        self.alarm = ""
        self._rows: list[bytes] = []
        self._tables = EventTables()
        self._dmesg, self._length = dmesg, 0

    def logs(self) -> list[list[bytes]]:
        """Return the rows, each event log for itself."""
        return [rows for rows in (self._rows, *self._tables.tables) if rows]

    def take_out(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the text without the rows of an event log."""
        for piece in pieces:
            if self._dmesg.holds_only_dmesg(piece):
                yield piece
                continue
            rest = ROW.sub(self._take, piece) if b"|" in piece and b" | " in piece else piece
            rest = self._tables.take_out(rest)
            if not self.alarm and SIGN_OF_ALARM in rest and (found := ALARM.search(rest)):
                self.alarm = found[0].decode(errors="replace").strip()[:SHOWN_LENGTH]
            if rest:
                yield rest

    def _take(self, found: re.Match[bytes]) -> bytes:
        if self._length > MAX_ROWS_BYTES:
            return found[0]
        self._length += len(found["row"])
        self._rows.append(found["row"])
        return b""
