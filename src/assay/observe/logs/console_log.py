"""Reads what conserver recorded of the serial console of a node: `NODE.log` and its earlier pieces.

conserver writes the time in front of each line but the first of a connection, which gets that of `Console up`. Between
`Console down` and `Console up` nothing was recorded.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from assay.adapters.bmc.console import KEPT_DAYS
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.text.safe_text import redact

CONSOLES = "consoles"
"""The folder of the files, below assay's own data."""
MAX_LINE = 4096
_DAY = rb"[A-Z][a-z]{2} ([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})"
_STAMP = re.compile(rb"^\[%s\]" % _DAY)
_OWN = re.compile(rb"\[-- (Console up|Console down) -- %s\]" % _DAY)
_STYLES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[()][0-9A-B]|[=>78cDEHM])|[\x00-\x08\x0b-\x1f\x7f]")


@fact
class ConsoleLine:
    """A line of a serial console."""

    at: str
    """When it began: ISO 8601 UTC; "" where the recording does not say."""
    text: str
    """The line, without colours and movements of the cursor. `[-- Console down --]` is conserver's own."""


@fact
class ConsoleAnswer:
    """What was recorded of the serial console of a node."""

    node: str
    """The node."""
    since: str
    """When the oldest line began that is still there; "" where the recording does not say."""
    until: str
    """When something was recorded last."""
    kept_days: int
    """So long is it kept, unless there is too much of it."""
    lines: list[ConsoleLine]
    """The lines that were asked for, the oldest first."""


def search_console(
    folder: Path, node: str, since: datetime | None = None, text: str = "", limit: int = 0
) -> ConsoleAnswer:
    """Return the newest lines with a text, in any case of its letters; `limit` 0 for all. Raises AssayError for none.

    `since`: without the lines that began earlier.
    """
    pieces = [*sorted(folder.glob(f"{node}.log-????????-??????")), *folder.glob(f"{node}.log")]  # by their ends in UTC
    begun, words = since.isoformat() if since else "", text.casefold()
    oldest = f"{node}.log-{since.astimezone(UTC):%Y%m%d-%H%M%S}" if since else ""
    if not pieces:
        fix = "declare bmc_console in the inventory, and run conserver with what `assay console --conserver` prints"
        raise AssayError(f"nothing is recorded of the console of {node}", where=str(folder), fix=fix)
    lines = list[ConsoleLine]()
    for piece in reversed(pieces):
        if (piece.suffix != ".log" and piece.name < oldest) or (limit and len(lines) >= limit):
            break
        fitting = (line for line in _read_file(piece) if words in line.text.casefold() and line.at >= begun)
        lines = [*deque(fitting, maxlen=limit or None), *lines]
    first = next((line.at for line in _read_file(pieces[0]) if line.at), "")
    until = datetime.fromtimestamp(pieces[-1].stat().st_mtime, UTC).isoformat(timespec="seconds")
    return ConsoleAnswer(node, first, until, KEPT_DAYS, lines[-limit:])


def format_line(line: ConsoleLine) -> str:
    """Return a line as kernel logs have it, with its time in front."""
    return f"[{line.at}] {line.text}" if line.at else line.text


def _read_file(path: Path) -> Iterator[ConsoleLine]:
    """Yield the lines of a file, none if it is gone: it became too old just now."""
    at = ""
    with suppress(FileNotFoundError), path.open("rb") as stream:
        for raw in iter(lambda: stream.readline(MAX_LINE), b""):
            stamp = _STAMP.match(raw)
            begun = _parse_time(stamp[1]) if stamp else ""
            at, start = begun or at, stamp.end() if stamp and begun else 0
            for own in _OWN.finditer(raw):
                yield from _make_line(raw[start : own.start()], at)
                at, start = _parse_time(own[2]), own.end()
                yield ConsoleLine(at, f"[-- {own[1].decode()} --]")
            yield from _make_line(raw[start:], at)


def _make_line(raw: bytes, at: str) -> Iterator[ConsoleLine]:
    if text := _STYLES.sub("", raw.decode(errors="replace")).rstrip():
        yield ConsoleLine(at, redact(text))


@lru_cache(maxsize=64)
def _parse_time(text: bytes) -> str:
    with suppress(ValueError):
        return datetime.strptime(text.decode(), "%b %d %H:%M:%S %Y").replace(tzinfo=UTC).isoformat()
    return ""
