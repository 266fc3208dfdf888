"""Takes the rows of a BMC's event log out of another text: a ticket, or a kernel log in which they stand.

`ipmitool sel list` and FreeIPMI's `ipmi-sel` print one row for each event; no kernel writes such a line. What nobody
reads here must not pass for a quiet log: the first such line is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from assay.observe.logs.dmesg_pieces import DmesgPieces

ROW = re.compile(
    rb"^[ \t>|*`]{0,20}(?P<row>(?:[A-Za-z][\w.-]{0,63}: +)?"
    rb"[0-9a-fA-F]{1,5} {1,8}\| *(?:\d\d/\d\d/\d{2,4}|[A-Z][a-z]{2}-\d\d-\d{4}|Pre-Init) *"
    rb"\| *[\d:]{5,12}[^|\n]{0,12}\|[^\n]{3,1000}\n?)",
    re.MULTILINE,
)
_CELLS = rb"(?:[^,;\t\n]{0,64}[,;\t]){0,9}"
_TABLE_HEAD = (
    rb'^(?=[^\n]{0,1000}(?i:date|time))[> ]{0,20}(?:\xef\xbb\xbf)?' + _CELLS
    + rb'"?(?i:(?:event )?severity|level|sev|priority|type)"?(?:[,;\t]|\s*$)[^\n]*'
)  # fmt: skip
UNREAD = re.compile(
    rb'^\s*Severity\s*[:=]\s*(?!(?i:ok|info|nor|nom))\w[^\n]*|[^\n]*"Severity"\s*:\s*"(?!OK")[^\n]*'
    rb"|^" + _CELLS + rb'"?Critical"?[,;\t][^\n]*|<EVENT\b[^\n]*|' + _TABLE_HEAD
    + rb"|^(?i:content-transfer-encoding): *(?i:base64|quoted-printable)[^\n]*",
    re.MULTILINE,
)  # fmt: skip
"""An entry that is no row and tells of a problem, the head of a BMC's table in CSV, an encoded part of a mail."""
UNREAD_SIGNS = (b"Critical", b"everity", b"<EVENT", b"-Encoding", b"-encoding")
OTHER_LOG = re.compile(_TABLE_HEAD + rb"|\d{4}-\d\d-\d\dT\S+ [A-Za-z]\w*(?:\.\d+){2,3}\.[A-Z]|\s*<EVENT\b")
"""A line of an event log that tells times as a kernel log does: a table in CSV, OpenBMC's registry log, RIBCL."""
SHOWN_LENGTH = 200
MAX_ROWS_BYTES = 16 * 1024 * 1024
"""No BMC keeps a longer log."""


def is_of_other_log(sample: Sequence[bytes]) -> bool:
    """Whether a log's first lines are those of an event log that nobody reads here."""
    return any(map(OTHER_LOG.match, sample))


class EventRows:
    """The rows that were taken out of the pieces of a text, and the first line in it that nobody reads."""

    def __init__(self, dmesg: DmesgPieces) -> None:
        self.unread, self.rows = "", list[bytes]()
        self._dmesg, self._length = dmesg, 0

    def take_out(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the text without the rows of an event log."""
        for piece in pieces:
            if self._dmesg.holds_only_dmesg(piece):
                yield piece
                continue
            rest = ROW.sub(self._take, piece) if b"|" in piece and b" | " in piece else piece
            if not self.unread and any(sign in rest for sign in UNREAD_SIGNS) and (found := UNREAD.search(rest)):
                self.unread = found[0].decode(errors="replace").strip()[:SHOWN_LENGTH]
            if rest:
                yield rest

    def _take(self, found: re.Match[bytes]) -> bytes:
        if self._length > MAX_ROWS_BYTES:
            return found[0]
        self._length += len(found["row"])
        self.rows.append(found["row"])
        return b""
