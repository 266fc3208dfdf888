"""Takes a BMC's event log in CSV out of another text: of a mail, of a ticket, or from below the head of an export."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from assay.observe.logs.event_texts.event_csv import find_event_delimiter, split_cells

QUOTE = re.compile(rb"(?:> ?)+")
_STAMP = rb"\[|<\d{1,3}>|[A-Z][a-z]{2} [ \d]\d |\d{4}-\d\d-\d\d"
STAMPED = re.compile(_STAMP)
"""How a line of a kernel log begins, which goes on with no row."""
_HEADING = rb"(?!" + _STAMP + rb")(?:[^,;\t\n]{0,64}[,;\t]){3}"
HEADING, LATER_HEADING = re.compile(_HEADING), re.compile(rb"\n" + _HEADING)
"""How a line begins that may be a heading. Most lines of a kernel log have a stamp."""
MAX_HEADING_BYTES = 1000
MOST_BROKEN_ROWS = 3
"""After so many lines that are no rows, another text follows. A mail breaks a row into fewer."""
MAX_TABLES_BYTES = 16 * 1024 * 1024
"""No BMC keeps a longer log."""


class EventTables:
    """The tables that were taken out of the pieces of a text, each with its rows."""

    def __init__(self) -> None:
        self.tables: list[list[bytes]] = []
        self._delimiter, self._columns, self._quote = "", 0, b""
        self._cells, self._broken_rows, self._length = 0, 0, 0

    def take_out(self, piece: bytes) -> bytes:
        """Return a piece, which holds whole lines, without the rows. A table may go on in the next piece."""
        rest, place = list[bytes](), 0
        while place < len(piece):
            if not self._delimiter:
                start, end = self._find_heading(piece, place)
                rest.append(piece[place:start])
                place = end
                continue
            end = piece.find(b"\n", place) + 1 or len(piece)
            if not self._take_row(piece[place:end]):
                rest.append(piece[place:end])
            place = end
        return b"".join(rest)

    def _find_heading(self, piece: bytes, place: int) -> tuple[int, int]:
        """Return where the next heading begins and ends, the end of the piece for none."""
        starts = chain([place] if HEADING.match(piece, place) else [], _find_later(piece, place))
        for start in starts:
            end = piece.find(b"\n", start) + 1 or len(piece)
            if end - start <= MAX_HEADING_BYTES and self._begin(piece[start:end]):
                return start, end
        return len(piece), len(piece)

    def _begin(self, line: bytes) -> bool:
        """Begin a table if a line is its heading."""
        quote = QUOTE.match(line)
        own = line[quote.end() :] if quote else line
        delimiter = find_event_delimiter(_text(own))
        if delimiter is None or self._length > MAX_TABLES_BYTES:
            return False
        self._delimiter, self._quote = delimiter, quote[0] if quote else b""
        self._columns = self._cells = self._count_cells(own)
        self._broken_rows = 0
        self.tables.append([own])
        return True

    def _take_row(self, line: bytes) -> bool:
        """Whether a line is a whole row. One that is not stays in the text, and belongs to the table too."""
        own = line.removeprefix(self._quote)
        if not own.strip() or self._broken_rows == MOST_BROKEN_ROWS:
            self._delimiter = ""
            return False
        rows, cells = self.tables[-1], self._count_cells(own)
        self._length += len(own)
        is_row = cells == self._columns
        self._broken_rows = 0 if is_row else self._broken_rows + 1
        if not is_row and STAMPED.match(own):
            return False
        if not is_row and len(rows) > 1 and self._cells + cells - 1 <= self._columns:
            rows[-1], self._cells = rows[-1].rstrip() + b" " + own, self._cells + cells - 1
        else:
            rows.append(own)
            self._cells = cells
        return is_row

    def _count_cells(self, line: bytes) -> int:
        return len(split_cells(_text(line), self._delimiter))


def _find_later(piece: bytes, place: int) -> Iterator[int]:
    return (found.start() + 1 for found in LATER_HEADING.finditer(piece, place))


def _text(line: bytes) -> str:
    return line.decode(errors="replace")
