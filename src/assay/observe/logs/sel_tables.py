"""The SEL as a table: `ipmitool sel list`, `elist` and `-c`, and FreeIPMI's `ipmi-sel` in all its layouts.

FreeIPMI names its columns in a first line. Without one, its dates (`Nov-21-2026`) tell whose table it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from assay.observe.logs.text_entry import LINE_ENDS, TOOL_SPEAKS, TextEntry, UnreadLine, join_words

FREEIPMI_COLUMNS = ("ID", "Date", "Time", "Name", "Type", "Event")
FREEIPMI_DATE = re.compile(r"[A-Z][a-z]{2}-\d{1,2}-\d{4}$")
IDENT = re.compile(r"[0-9a-fA-F]{1,8}$")
NO_TIME = re.compile(r"pre-?init|post-?init|unknown|unspecified|n/a|s\+", re.IGNORECASE)
DATE = re.compile(r"\d{1,4}\D{1,2}\d{1,2}\D{1,2}\d{1,4}\D?$|[A-Z][a-z]{2}-\d{1,2}-\d{4}$")
TIME_COUNT = re.compile(r"\d{4,}$")
"""What ipmitool prints in place of a time of day before the clock was set: the seconds."""
DIRECTIONS = {"asserted", "deasserted", "assertion event", "deassertion event"}
OWN_RECORDS = ("OEM", "Linux kernel panic")
FEWEST_COLUMNS = 3
WHOLE_EVENTS = (
    *("presence detected", "drive presence", "entity present", "device inserted/device present", "device present"),
    *("os boot", "a: boot completed", "c: boot completed", "pxe boot completed", "rom boot completed"),
    *("cd-rom boot completed", "diagnostic boot completed", "boot completed - boot device not specified"),
    *("initiated by power up", "initiated by hard reset", "initiated by warm reset", "system restart"),
    *("s0/g0", "s4/s5 soft-off", "timestamp clock sync", "timestamp clock synch", "oem system boot event"),
    *("log area reset/cleared", "power button pressed", "fully redundant", "system reconfigured", "transition to ok"),
)
"""Events that are no fault, in FreeIPMI's words for IPMI 2.0, tables 42-2 and 42-3: none is the beginning of another.

A last row with one of them, or with one that stood in the log before, is whole also without the end of its line.
"""
LEGACY = re.compile(
    r"(?P<id>\d+):(?:(?P<date>\d{1,2}-[A-Z][a-z]{2}-\d{4}) (?P<clock>[\d:]{8})|PostInit PostInit|PreInit PreInit)"
    r":(?P<sensor>[^:]*):(?P<event>.*)"
)


class SelTable:
    """A table whose columns are split by one character."""

    def __init__(self, name: str, split: str) -> None:
        self.name, self._split = name, split

    def counts_lines(self, sample: Sequence[str]) -> int:
        """Return how many lines are entries or name the columns."""
        rows = [self._cells(line) for line in sample if not TOOL_SPEAKS.match(line)]
        return len(sample) - len(rows) + sum(_is_row(row) or _is_header(row) for row in rows)

    def read_entries(self, lines: Iterable[str]) -> Iterator[TextEntry | UnreadLine]:
        """Yield the entries. The line that names the columns, and what ipmitool says of itself, is left out.

        The last row may be cut: it has fewer columns than have names, or lacks the direction that all before it have,
        or the end of its line.
        """
        columns, directed, every, told = tuple[str, ...](), True, list(lines), set(WHOLE_EVENTS)
        for left, line in zip(range(len(every), 0, -1), every, strict=True):
            cells = self._cells(line)
            if _is_header(cells):
                columns = tuple(cells)
            elif TOOL_SPEAKS.match(line):
                continue
            elif not _is_row(cells):
                begins = left == 1 and IDENT.match(cells[0]) is not None
                yield UnreadLine(line, is_entry=begins or len(cells) > FEWEST_COLUMNS)
            elif columns or (len(cells) > len(FREEIPMI_COLUMNS) - 1 and FREEIPMI_DATE.match(cells[1])):
                named = columns or FREEIPMI_COLUMNS
                is_cut = left == 1 and _ends_early(cells, named, line) and _event(cells, named) not in told
                told.add(_event(cells, named))
                yield _mark_cut(_read_named(cells, named), line, is_cut)
            else:
                yield _mark_cut(_read_ipmitool(cells), line, left == 1 and directed and _lacks_direction(cells))
                directed = directed and not _lacks_direction(cells)

    def _cells(self, line: str) -> list[str]:
        return [cell.strip() for cell in line.split(self._split)]


def _is_header(cells: Sequence[str]) -> bool:
    return len(cells) > FEWEST_COLUMNS and cells[0] == "ID" and "Event" in cells


def _is_row(cells: Sequence[str]) -> bool:
    """Whether cells are an entry: an id, and a time, or that there is none."""
    if len(cells) < FEWEST_COLUMNS or not IDENT.match(cells[0]):
        return False
    return bool(DATE.match(cells[1]) or NO_TIME.match(cells[1]) or cells[1].startswith(OWN_RECORDS))


def _read_named(cells: list[str], columns: Sequence[str]) -> TextEntry:
    """Read a row of FreeIPMI. Its last column, the event, may hold the character that splits the columns."""
    last = len(columns) - 1
    named = dict(zip(columns, [*cells[:last], ", ".join(cells[last:])], strict=False))
    sensor = " ".join(word for word in (named.get("Type", ""), named.get("Name", "")) if word)
    date, clock = _omit_unset_time(named.get("Date", ""), named.get("Time", ""))
    text = join_words(sensor, named.get("Event", ""))
    entry = TextEntry.with_severity(named.get("State", ""), cells[0], text, date, clock)
    is_over = entry.is_over or named.get("Event Direction", "").lower().startswith("deassert")
    return entry._replace(part=sensor, is_over=is_over)


def _read_ipmitool(cells: list[str]) -> TextEntry:
    date, clock, rest = "", "", cells[1:]
    if DATE.match(rest[0]):
        date, clock, rest = rest[0], rest[1], rest[2:]
    elif NO_TIME.match(rest[0]):
        rest = rest[2:] if len(rest) > 1 and TIME_COUNT.match(rest[1]) else rest[1:]
    sensor, event = (rest[0] if rest else ""), rest[1:]
    directions = {cell.lower() for cell in event} & DIRECTIONS
    text = join_words(sensor, *(cell for cell in event if cell.lower() not in DIRECTIONS))
    is_over = any(direction.startswith("deassert") for direction in directions)
    return TextEntry(cells[0], text, date, clock, part=sensor, is_over=is_over)


def _lacks_direction(cells: Sequence[str]) -> bool:
    """Whether a row does not end with whether the event came or went, as the rows of all but OEM records do."""
    is_own = any(cell.startswith(OWN_RECORDS) for cell in cells[1:4])
    return not is_own and DIRECTIONS.isdisjoint(cell.lower() for cell in cells)


def _ends_early(cells: Sequence[str], columns: Sequence[str], line: str) -> bool:
    """Whether a row of named columns lacks one, its event, or the end of its line."""
    return len(cells) < len(columns) or not cells[-1] or not line.endswith(LINE_ENDS)


def _mark_cut(entry: TextEntry, line: str, is_cut: bool) -> TextEntry | UnreadLine:
    """Return an entry, marked where the log breaks off within it; one without its event is a line that is none."""
    if not is_cut:
        return entry
    return entry._replace(is_cut=True) if ", " in entry.text else UnreadLine(line, is_entry=True)


def _event(cells: Sequence[str], columns: Sequence[str]) -> str:
    """Return the event of a row, "" where it is not there."""
    return ", ".join(cells[len(columns) - 1 :]).lower()


def _omit_unset_time(date: str, clock: str) -> tuple[str, str]:
    return ("", "") if NO_TIME.match(date) else (date, clock)


class LegacySelTable:
    """`ipmi-sel --legacy-output`: `11:21-Nov-2026 18:01:00:Power Supply PS1:Power Supply Failure detected`."""

    name = "ipmi-sel --legacy-output"

    def counts_lines(self, sample: Sequence[str]) -> int:
        """Return how many lines are entries."""
        return sum(LEGACY.match(line) is not None for line in sample)

    def read_entries(self, lines: Iterable[str]) -> Iterator[TextEntry | UnreadLine]:
        """Yield the entries."""
        for line in lines:
            if found := LEGACY.match(line):
                event = ", ".join(word.strip() for word in found["event"].split(":"))
                text = join_words(found["sensor"].strip(), event)
                yield TextEntry(found["id"], text, found["date"] or "", found["clock"] or "", part=found["sensor"])
            else:
                yield UnreadLine(line)
