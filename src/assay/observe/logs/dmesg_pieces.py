"""Searches the pieces of a log in which every line begins as dmesg writes it: most of a log's bytes stand in such.

No syslog line and no row of an event log stands in such a piece, so it is not searched for them.
"""

from __future__ import annotations

import re

from assay.model.specs.kernel_log_and_xid_patterns import KernelLogMatcher

STAMP = re.compile(rb"\[ *\d+\.\d{6}\]")
BRACKETS = rb"\[[^\]]{1,40}+\]"
"""A time, or the thread or processor that some kernels write after it."""
BRACKET = b"["[0]
OPENS_DOCUMENT = b"{"


class DmesgPieces:
    """Remembers of the newest piece whether it is dmesg's alone: several readers ask, and one search answers all.

    `unusual_lines`: where the lines begin that may name a fault, if it is.
    """

    def __init__(self, matcher: KernelLogMatcher) -> None:
        harmless = rb" (?!" + matcher.prefix_regex().encode() + rb"))"
        unusual = rb"(?!" + BRACKETS + harmless + rb"(?!" + BRACKETS * 2 + harmless + rb"(?=[^\n])"
        self._begins_unusual, self._unusual = re.compile(unusual), re.compile(rb"\n" + unusual)
        self.unusual_lines: list[int] = []
        self._piece, self._is_dmesg = b"", False

    def holds_only_dmesg(self, piece: bytes) -> bool:
        """Whether the first line has the kernel's stamp, all begin with its bracket, and no document in JSON begins."""
        if piece is not self._piece:
            self._piece, self._is_dmesg = piece, False
            if STAMP.match(piece) and OPENS_DOCUMENT not in piece:
                self.unusual_lines = self._find_unusual(piece)
                self._is_dmesg = all(piece[line] == BRACKET for line in self.unusual_lines)
        return self._is_dmesg

    def _find_unusual(self, piece: bytes) -> list[int]:
        """Return where lines begin that are no stamp with a message that begins as no fault does."""
        first = [0] if self._begins_unusual.match(piece) else []
        return first + [found.end() for found in self._unusual.finditer(piece)]
