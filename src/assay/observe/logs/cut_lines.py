"""Finds lines that were cut: the last one of a log without its end, and those of a log that was clipped at a width.

`cut -c1-80`, a table or a terminal clips every line that is longer; some tools mark it (`…`, `...`, `>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MARKS = ("…", "...", ">")
FEWEST_CLIPPED = 3
LEAST_WIDTH = 24
LONGEST_LINE = 16 * 1024
ENDING_LETTERS = 3
CLOSED = re.compile(rb"[\]}]\s*\Z")
FIELD = rb'"([^"\\\n]{1,64})"\s*(?::|=>)\s*"%s"'


class CutLines:
    """Watches the pieces of a log as they are read, and knows of a message in the newest one whether it was cut."""

    def __init__(self) -> None:
        self._piece = b""
        self._width: int | None = None

    def watch(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces."""
        for piece in pieces:
            self._piece, self._width = piece, None
            yield piece

    def find_last_line(self) -> str:
        """Return the last line of the log where it lacks its end, "" for one with its end, or for whole JSON."""
        line = self._piece[self._piece.rfind(b"\n") + 1 :]
        return "" if len(line) > LONGEST_LINE or CLOSED.search(line) else line.decode(errors="replace")

    def is_clipped(self, text: str) -> bool:
        """Whether a message ends where the log clips its lines or fields."""
        if text.endswith(MARKS):
            return True
        said = text.encode(errors="replace")
        if self._width is None:
            self._width = _find_width(self._piece.split(b"\n"))
        if self._width and any(line.endswith(said) for line in self._find_lines(said)):
            return True
        field = re.search(FIELD % re.escape(said), self._piece) if b'"' in self._piece else None
        return field is not None and len(said) == _find_width(_read_fields(self._piece, field[1]))

    def _find_lines(self, said: bytes) -> Iterator[bytes]:
        """Yield the lines of the full width that hold a text."""
        place = self._piece.find(said)
        while place >= 0:
            start, end = self._piece.rfind(b"\n", 0, place) + 1, self._piece.find(b"\n", place)
            line = self._piece[start : end if end >= 0 else len(self._piece)]
            if len(line) == self._width:
                yield line
            place = self._piece.find(said, place + 1)


def _read_fields(piece: bytes, name: bytes) -> list[bytes]:
    """Return the texts of all fields of this name."""
    return re.findall(rb'"' + re.escape(name) + rb'"\s*(?::|=>)\s*"((?:[^"\\]|\\.)*)"', piece)


def _find_width(lines: Iterable[bytes]) -> int:
    """Return the width at which several of these were clipped, 0 where they were not: each of them ends differently."""
    longest: dict[int, set[bytes]] = {}
    for line in lines:
        longest.setdefault(len(line), set()).add(line[-ENDING_LETTERS:])
    width = max(longest, default=0)
    return width if width >= LEAST_WIDTH and len(longest[width]) >= FEWEST_CLIPPED else 0
