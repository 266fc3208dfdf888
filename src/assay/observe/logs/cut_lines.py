"""Finds lines that were cut: the last one of a log without its end, and those of a log that was clipped at a width.

`cut -c1-80`, a table or a terminal clips every line that is longer; some tools mark it (`…`, `...`, `>`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

MARKS = ("…", "...", ">")
FEWEST_CLIPPED = 3
LEAST_WIDTH = 24
LONGEST_LINE = 16 * 1024
ENDING_LETTERS = 3
CLOSED = re.compile(rb"[\]}]\s*\Z")
FIELD = re.compile(rb'"([^"\\\n]{1,64})"\s*(?::|=>)\s*"((?:[^"\\]|\\.)*)"')


class CutLines:
    """Watches the pieces of a log as they are read, and knows of a message in the newest one whether it was cut."""

    def __init__(self) -> None:
        self._piece, self._widths = b"", _PieceWidths(b"")

    def watch(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces."""
        for piece in pieces:
            self._piece, self._widths = piece, _PieceWidths(piece)
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
        return self._widths.ends_line(said) or self._widths.fills_field(said)


class _PieceWidths:
    """The widths at which a piece clips its lines, and its fields by name. Each is found once, when it is asked for."""

    def __init__(self, piece: bytes) -> None:
        self._piece = piece
        self._ends: dict[int, set[bytes]] = {}

    def ends_line(self, said: bytes) -> bool:
        """Whether a line of the full width ends so."""
        if not self._clipped_lines:
            return False
        length = len(said)
        if length not in self._ends:
            self._ends[length] = {line[-length:] for line in self._clipped_lines}
        return said in self._ends[length]

    def fills_field(self, said: bytes) -> bool:
        """Whether the first field that says so is of the full width of all fields of its name."""
        return said in self._clipped_texts

    @cached_property
    def _clipped_lines(self) -> list[bytes]:
        lines = self._piece.split(b"\n")
        width = _find_width(lines)
        return [line for line in lines if len(line) == width] if width else []

    @cached_property
    def _clipped_texts(self) -> set[bytes]:
        name_of, texts = dict[bytes, bytes](), defaultdict[bytes, set[bytes]](set)
        for name, text in FIELD.findall(self._piece) if b'"' in self._piece else ():
            name_of.setdefault(text, name)
            texts[name].add(text)
        widths = {name: _find_width(of_name) for name, of_name in texts.items()}
        return {text for text, name in name_of.items() if len(text) == widths[name]}


def _find_width(lines: Iterable[bytes]) -> int:
    """Return the width at which several of these were clipped, 0 where they were not: each of them ends differently."""
    longest: dict[int, set[bytes]] = {}
    for line in lines:
        longest.setdefault(len(line), set()).add(line[-ENDING_LETTERS:])
    width = max(longest, default=0)
    return width if width >= LEAST_WIDTH and len(longest[width]) >= FEWEST_CLIPPED else 0
