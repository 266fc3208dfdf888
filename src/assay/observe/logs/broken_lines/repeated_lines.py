"""Writes out what a syslog says in short: `last message repeated 4 times` is the line before it, once more at least."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

SHORT = b" last message repeated "
_STAMP = rb"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20})"
_REPEATED = re.compile(
    rb"^(?P<before>" + _STAMP + rb" (?P<host>\S{1,255}) (?P<said>[^\n]+)\n)"
    rb"(?P<stamp>" + _STAMP + rb") (?P=host) (?:\S{1,64}: )?last message repeated \d{1,9} times?[^\n]*",
    re.MULTILINE,
)


def write_repeated_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the log with the line before in place of such a line, at the time that it tells."""
    for piece in pieces:
        yield _REPEATED.sub(rb"\g<before>\g<stamp> \g<host> \g<said>", piece) if SHORT in piece else piece
