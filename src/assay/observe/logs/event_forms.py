"""The forms of a BMC's event log as text: tables, and one block of `name: value` lines for each entry.

Tables are of `ipmitool sel list`, `elist` and `-c`, and of FreeIPMI's `ipmi-sel`; blocks of
`ipmitool -v` and racadm. `EventRows` takes such rows out of another text in which they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from assay.observe.logs.log_form import DmesgPieces

CRITICAL = {"critical", "failed", "fatal", "non-recoverable", "nonrecoverable", "emergency"}
OVER = {"ok", "nominal", "normal", "information", "informational", "info", "repaired"}
"""Severities of entries that report no problem, or one that is repaired."""
TOOL_SPEAKS = re.compile(
    r"\s*(SEL has no entries|SDRR successfully erased|Err in cmd get|Get SDR |Caching SDR |Loading |Running Get )"
)
"""Lines in which ipmitool and FreeIPMI tell of themselves."""
LINE_ENDS = ("\n", "\r")
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
Fields = Mapping[str, str]
DAY_AND_CLOCK = re.compile(r"(?P<date>.*?\d{1,4}\D{1,3}\d{1,4})[ T]+(?P<clock>\d{1,2}\D{1,3}\d\d.*)$")
DATE_BEGINS = re.compile(r"\d|[A-Z][a-z]{2}[ -]")
"""Before the BMC's clock was set, `Pre-Init` or `S+ 70/001` stand there."""
MAX_TIME_LENGTH = 100
CONTINUED = re.compile(r"\s{8,}\S")
LOCATION = re.compile(
    r"(?i:locations?(?:\(s\))?:? )(?P<location>[A-Z][\w-]*\d)\b"
    r"|\b(?P<unit>(?i:power supply|PSU|CPU|processor|fan|drive|disk|DIMM)[ _]?[A-Z]?\d{1,3}[A-Z]?)\b"
)
"""How racadm names a part within a sentence: `at location(s) DIMM_A1`, `power supply 1`."""
QUIET = re.compile(r"[-=_*\s]+$|\s*racadm")
"""Lines between the entries that say nothing."""
ROW = re.compile(
    rb"^[ \t>|*`]{0,20}(?P<row>(?:[A-Za-z][\w.-]{0,63}: +)?"
    rb"[0-9a-fA-F]{1,5} {1,8}\| *(?:\d\d/\d\d/\d{2,4}|[A-Z][a-z]{2}-\d\d-\d{4}|Pre-Init) *"
    rb"\| *[\d:]{5,12}[^|\n]{0,12}\|[^\n]{3,1000}\n?)",
    re.MULTILINE,
)
_CELLS = rb"(?:[^,;\t\n]{0,64}[,;\t]){0,9}"
_TABLE_HEAD = (
    rb"^(?=[^\n]{0,1000}(?i:date|time))[> ]{0,20}(?:\xef\xbb\xbf)?"
    + _CELLS
    + rb'"?(?i:(?:event )?severity|level|sev|priority|type)"?(?:[,;\t]|\s*$)[^\n]*'
)
UNREAD = re.compile(
    b"|".join(
        (
            rb"^\s*Severity\s*[:=]\s*(?!(?i:ok|info|nor|nom))\w[^\n]*",
            rb'[^\n]*"Severity"\s*:\s*"(?!OK")[^\n]*',
            rb"^" + _CELLS + rb'"?Critical"?[,;\t][^\n]*',
            rb"<EVENT\b[^\n]*",
            _TABLE_HEAD,
            rb"^(?i:content-transfer-encoding): *(?i:base64|quoted-printable)[^\n]*",
        )
    ),
    re.MULTILINE,
)
"""An entry that is no row and tells of a problem, the head of a BMC's table in CSV, an encoded part of a mail."""
UNREAD_SIGNS = (b"Critical", b"everity", b"<EVENT", b"-Encoding", b"-encoding")
OTHER_LOG = re.compile(_TABLE_HEAD + rb"|\d{4}-\d\d-\d\dT\S+ [A-Za-z]\w*(?:\.\d+){2,3}\.[A-Z]|\s*<EVENT\b")
"""A line of an event log that tells times as a kernel log does: a table in CSV, OpenBMC's registry log, RIBCL."""
SHOWN_LENGTH = 200
MAX_ROWS_BYTES = 16 * 1024 * 1024
"""No BMC keeps a longer log."""


class TextEntry(NamedTuple):
    """One entry. `date` and `clock` are as printed; both are "" where the BMC's clock was not set yet.

    `is_over`: it reports no problem, or the end of one. `is_cut`: the log breaks off within it.
    """

    ident: str
    text: str
    date: str = ""
    clock: str = ""
    part: str = ""
    message_id: str = ""
    severity: str = ""
    is_over: bool = False
    is_cut: bool = False

    @classmethod
    def with_severity(cls, severity: str, ident: str, text: str, date: str = "", clock: str = "") -> TextEntry:
        """Return an entry with the severity that a tool prints in words of its own."""
        word = severity.strip().lower()
        level = "Critical" if word in CRITICAL else ""
        return cls(ident, text, date, clock, severity=level, is_over=word in OVER)


class UnreadLine(NamedTuple):
    """A line that is no whole entry. `is_entry`: it begins as one, so that an event is lost with it."""

    line: str
    is_entry: bool = False


class TextForm(Protocol):
    """One form in which a tool prints an event log."""

    @property
    def name(self) -> str:
        """The tool's name for people."""

    def counts_lines(self, sample: Sequence[str]) -> int:
        """Return how many of these lines, which are not blank, are of this form; 0 if the log cannot be of it."""

    def read_entries(self, lines: Iterable[str]) -> Iterator[TextEntry | UnreadLine]:
        """Yield the entries of a log in order, and the lines that are none. A last line without its end is cut."""


def join_words(*words: str) -> str:
    """Return the words of an entry as one text: `Power Supply PS1, Failure detected`."""
    return ", ".join(word for word in words if word)


class SelTable:
    """A table whose columns are split by one character.

    FreeIPMI names its columns in a first line. Without one, its dates (`Nov-21-2026`) tell whose table it is.
    """

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
        columns: tuple[str, ...] = ()
        directed = True
        known_events = set(WHOLE_EVENTS)
        every = list(lines)
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
                event = ", ".join(cells[len(named) - 1 :]).lower()
                ends_early = len(cells) < len(named) or not cells[-1] or not line.endswith(LINE_ENDS)
                is_cut = left == 1 and ends_early and event not in known_events
                known_events.add(event)
                yield _mark_cut(_read_named(cells, named), line, is_cut)
            else:
                # the rows of all but OEM records end with whether the event came or went
                is_own = any(cell.startswith(OWN_RECORDS) for cell in cells[1:4])
                lacks_direction = not is_own and DIRECTIONS.isdisjoint(cell.lower() for cell in cells)
                yield _mark_cut(_read_ipmitool(cells), line, left == 1 and directed and lacks_direction)
                directed = directed and not lacks_direction

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
    text = join_words(sensor, named.get("Event", ""))
    entry = TextEntry.with_severity(named.get("State", ""), cells[0], text)
    date = named.get("Date", "")
    if not NO_TIME.match(date):
        entry = entry._replace(date=date, clock=named.get("Time", ""))
    is_over = entry.is_over or named.get("Event Direction", "").lower().startswith("deassert")
    return entry._replace(part=sensor, is_over=is_over)


def _read_ipmitool(cells: list[str]) -> TextEntry:
    date = ""
    clock = ""
    rest = cells[1:]
    if DATE.match(rest[0]):
        date = rest[0]
        clock = rest[1]
        rest = rest[2:]
    elif NO_TIME.match(rest[0]):
        rest = rest[2:] if len(rest) > 1 and TIME_COUNT.match(rest[1]) else rest[1:]
    sensor, event = (rest[0] if rest else ""), rest[1:]
    directions = {cell.lower() for cell in event} & DIRECTIONS
    text = join_words(sensor, *(cell for cell in event if cell.lower() not in DIRECTIONS))
    is_over = any(direction.startswith("deassert") for direction in directions)
    return TextEntry(cells[0], text, date, clock, part=sensor, is_over=is_over)


def _mark_cut(entry: TextEntry, line: str, is_cut: bool) -> TextEntry | UnreadLine:
    """Return an entry, marked where the log breaks off within it; one without its event is a line that is none."""
    if not is_cut:
        return entry
    return entry._replace(is_cut=True) if ", " in entry.text else UnreadLine(line, is_entry=True)


@dataclass(frozen=True)
class RecordForm:
    """One tool's blocks. `begins` matches the first line of an entry; `read` makes an entry of its fields.

    `splits`: what stands between a name and its value.
    """

    name: str
    begins: re.Pattern[str]
    splits: str
    read: Callable[[Fields], TextEntry]
    _named: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_named", re.compile(rf"\s*([A-Za-z][\w /()-]{{0,60}}?)\s*{self.splits}\s*(.*?)\s*$"))

    def counts_lines(self, sample: Sequence[str]) -> int:
        """Return how many lines are of entries, from the first on; 0 if no entry begins."""
        first = next((number for number, line in enumerate(sample) if self.begins.match(line)), None)
        if first is None:
            return 0
        return sum(bool(self._named.match(line) or QUIET.match(line)) for line in sample[first:])

    def read_entries(self, lines: Iterable[str]) -> Iterator[TextEntry | UnreadLine]:
        """Yield the entries. One without a text is a line that could not be read: its first.

        The last entry is cut if it lacks a field that all before it have, a value, or the end of its line.
        """
        head = last = ""
        fields: dict[str, str] = {}
        common: set[str] = set()
        ended = True
        for line in lines:
            ended = line.endswith(LINE_ENDS)
            named = self._named.match(line)
            if self.begins.match(line):
                yield from self._finish(head, fields, is_cut=False)
                common = (common & fields.keys() if common else set(fields)) if head else common
                head = line
                fields = {}
                last = ""
            if named and head:
                last = named[1].lower()
                fields.setdefault(last, named[2])
            elif head and last and CONTINUED.match(line):
                fields[last] += f" {line.strip()}"
            elif not (QUIET.match(line) or TOOL_SPEAKS.match(line) or self.begins.match(line)):
                yield UnreadLine(line)
        yield from self._finish(head, fields, is_cut=not (common <= fields.keys() and ended and fields.get(last)))

    def _finish(self, head: str, fields: Fields, *, is_cut: bool) -> Iterator[TextEntry | UnreadLine]:
        if head:
            entry = self.read(fields)
            yield entry._replace(is_cut=is_cut) if entry.text else UnreadLine(head, is_entry=True)


def split_time(text: str) -> tuple[str, str]:
    """Return date and time of day. ipmitool 1.8.19 prints the date twice, and no time."""
    text = text[:MAX_TIME_LENGTH]
    first, second = text[: len(text) // 2].strip(), text[len(text) // 2 :].strip()
    if first == second:
        return first, ""
    match = DAY_AND_CLOCK.match(text)
    return (match["date"], match["clock"]) if match else (text, "")


def _read_ipmitool_record(fields: Fields) -> TextEntry:
    sensor_type = fields.get("sensor type", "")
    named = fields.get("sensor id", "").partition(" (")[0].strip()
    number = fields.get("sensor number", "")
    sensor = " ".join(word for word in (sensor_type, named or (f"#0x{number}" if number else "")) if word)
    kind = fields.get("record type", "")
    event = fields.get("description") or fields.get("panic string") or (kind if "OEM" in kind else "")
    date, clock = split_time(fields.get("timestamp", ""))
    is_set = DATE_BEGINS.match(date) is not None
    text = join_words(sensor or kind, event) if event or sensor else ""
    is_over = fields.get("event direction", "").lower().startswith("deassert")
    entry = TextEntry(fields["sel record id"], text, part=sensor, is_over=is_over)
    return entry._replace(date=date, clock=clock) if is_set else entry


def _read_racadm_sel(fields: Fields) -> TextEntry:
    date, clock = split_time(fields.get("date/time", ""))
    ident, text = fields.get("record", ""), fields.get("description", "")
    entry = TextEntry.with_severity(fields.get("severity", ""), ident, text, date, clock)
    named = LOCATION.search(text)
    return entry._replace(part=named["location"] or named["unit"]) if named else entry


def _read_lifecycle_log(fields: Fields) -> TextEntry:
    date, clock = split_time(fields.get("timestamp", ""))
    entry = TextEntry.with_severity(
        fields.get("severity", ""), fields.get("seqnumber", ""), fields.get("message", ""), date, clock
    )
    return entry._replace(message_id=fields.get("message id", ""), part=fields.get("fqdd", ""))


RECORD_FORMS = (
    RecordForm("ipmitool -v sel list", re.compile(r"\s*SEL Record ID\s*:"), ":", _read_ipmitool_record),
    RecordForm("racadm getsel", re.compile(r"\s*Record:\s*\d+\s*$"), ":", _read_racadm_sel),
    RecordForm("racadm lclog view", re.compile(r"\s*SeqNumber\s*="), "=", _read_lifecycle_log),
)


def is_of_other_log(sample: Sequence[bytes]) -> bool:
    """Whether a log's first lines are those of an event log that nobody reads here."""
    return any(map(OTHER_LOG.match, sample))


class EventRows:
    """The rows that were taken out of the pieces of a text, and the first line in it that nobody reads.

    `ipmitool sel list` and FreeIPMI's `ipmi-sel` print one row for each event; no kernel writes such a line. What
    nobody reads here must not pass for a quiet log.
    """

    def __init__(self, dmesg: DmesgPieces) -> None:
        self.unread = ""
        self.rows: list[bytes] = []
        self._dmesg = dmesg
        self._length = 0

    def take_out(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the text without the rows of an event log."""
        for piece in pieces:
            if self._dmesg.holds_only_dmesg(piece):
                yield piece
                continue
            rest = ROW.sub(self._take, piece) if b"|" in piece and b" | " in piece else piece
            if not self.unread and any(sign in rest for sign in UNREAD_SIGNS) and (unread := UNREAD.search(rest)):
                self.unread = unread[0].decode(errors="replace").strip()[:SHOWN_LENGTH]
            if rest:
                yield rest

    def _take(self, row: re.Match[bytes]) -> bytes:
        if self._length > MAX_ROWS_BYTES:
            return row[0]
        self._length += len(row["row"])
        self.rows.append(row["row"])
        return b""
