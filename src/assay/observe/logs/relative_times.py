"""Times that build on the line before, as `dmesg -e`, `-H` and `--time-format delta` write them.

`[Nov21 18:00]` gives a minute, and `[  +1.500000]` the seconds since the line before; `[<    1.500000>]` gives these
alone. Each becomes a stamp of its own, so that a line can be read without those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_BEFORE = rb"(?P<before>(?:[^\[\n]{1,80}\[[\d,/-]{1,80}\])?[^\[\n]{0,80})"
RELATIVE_STAMP = re.compile(
    rb"^" + _BEFORE + rb"\[(?:(?P<month>[A-Z][a-z]{2}) ?(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d)"
    rb"| *\+(?P<since>\d+\.\d+)|< *(?P<delta>\d+\.\d+)>)\]",
    re.MULTILINE,
)
MAX_HOSTS = 10_000


@dataclass(slots=True)
class _Clock:
    """The minute that was read last, and the seconds since it or since the first line."""

    minute: bytes = b""
    seconds: float = 0.0


def has_relative_times(sample: Sequence[bytes]) -> bool:
    """Return whether a log's first lines have such times."""
    return any(RELATIVE_STAMP.match(line) for line in sample)


def write_whole_times(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the log with `[Nov21 18:00 +1.500000]` and `[start+1.500000]` in place of such times.

    Lines of several hosts, which stand before the time, have clocks of their own.
    """
    clocks: dict[bytes, _Clock] = {}
    for piece in pieces:
        yield RELATIVE_STAMP.sub(lambda found: _write_stamp(clocks, found), piece)


def _write_stamp(clocks: dict[bytes, _Clock], found: re.Match[bytes]) -> bytes:
    before = found["before"]
    host = before.partition(b": ")[0] if b": " in before and b" :" not in before else b""
    clock = clocks.setdefault(host if len(clocks) < MAX_HOSTS else b"", _Clock())
    if found["day"]:
        clock.minute, clock.seconds = b" ".join(found.group("month", "day", "clock")), 0.0
    else:
        clock.seconds += float(found["since"] or found["delta"])
    if clock.minute:
        return b"%s[%s +%.6f]" % (before, clock.minute, clock.seconds)
    return b"%s[start+%.6f]" % (before, clock.seconds)
