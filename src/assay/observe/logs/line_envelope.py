"""What stands before a message in a line: time, host and program, in any order and any depth.

A line may have been wrapped several times: `n1: <4>Nov 21 18:00:00 n1 kernel: [ 12.5] NVRM: …`. One layer after the
other is taken off from the left. Of several times, the one nearest to the message counts.

A log that names no zone is read as it stands, and its times are written without one. RFC 3164 names no year: the year
is the one in which the log was last written, or an earlier one where the day would be later than that.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from assay.model.log_message import LEVELS, LogMessage, parse_log_level
from assay.model.text.lists import NODE_SET

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
EPOCH_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))
"""From this number on, seconds since 1970 are written in so many parts of a second."""
_EAST = {"WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "HKT": 8, "JST": 9, "KST": 9, "AEST": 10}
_WEST = {"EDT": -4, "EST": -5, "CDT": -5, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8}
ZONE_HOURS = {**_EAST, **_WEST, "AEDT": 11, "NZST": 12, "NZDT": 13}
"""Names of zones that mean one offset only. A log with another name is read without a zone."""
ParsedStamp = tuple[float, str]
"""Seconds on the log's clock, and the time as text: ISO 8601, or `boot+12.5s`."""


def parse_seconds_since_boot(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `1234.567890`, seconds since the boot."""
    return float(text), f"boot+{text.strip()}s"


def parse_microseconds_since_boot(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `1234567890`, the form in /dev/kmsg."""
    seconds = int(text) / 1e6
    return seconds, f"boot+{seconds:.6f}s"


def parse_ctime(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `Sun Feb 23 16:24:18 2025`, the form of dmesg -T."""
    _, month, day, clock, year = text.split()
    return make_stamp(_at(int(year), month, int(day), clock))


def parse_syslog_time(text: str, written_at: datetime) -> ParsedStamp:
    """Parse `Nov 21 18:00:00`, the form of RFC 3164 and of journalctl by default, also with a fraction."""
    month, day, clock = text.split()
    for year in range(written_at.year + 1, written_at.year - 9, -1):
        try:
            at = _at(year, month, int(day), clock)
        except ValueError:
            continue  # 29 February
        if at <= written_at.replace(tzinfo=None) + timedelta(days=1):
            return make_stamp(at)
    raise ValueError(f"no such day: {text}")


@functools.lru_cache(maxsize=4096)
def parse_iso_time(text: str, _written_at: datetime | None = None) -> ParsedStamp:
    """Parse `2026-11-21T18:00:00.123456+00:00` (RFC 5424), also with a comma or with a zone without a colon."""
    return make_stamp(datetime.fromisoformat(text.replace(",", ".").replace(" UTC", "Z").replace(" GMT", "Z")))


def format_zone(name: str) -> str:
    """Return the offset of a zone as `+01:00`, "" for a name that means none or several."""
    hours = ZONE_HOURS.get(name)
    return "" if hours is None else f"{hours:+03}:00"


def parse_epoch(text: str) -> ParsedStamp:
    """Parse seconds, or milli-, micro- or nanoseconds, since 1970. Raises ValueError, OverflowError, OSError."""
    number = float(text)
    parts = next((parts for least, parts in EPOCH_UNITS if number >= least), 0)
    if not parts:
        raise ValueError(f"no time since 1970: {text}")
    whole, _, fraction = text.partition(".")
    micros = int(f"{whole}{fraction:0<6.6}") if fraction else int(whole) * 1_000_000 // int(parts)
    return make_stamp(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros))


def make_stamp(at: datetime) -> ParsedStamp:
    """Return a time as a stamp; without a zone, it counts as UTC and is written without one."""
    return at.replace(tzinfo=at.tzinfo or UTC).timestamp(), at.isoformat()


@functools.lru_cache(maxsize=4096)
def _at(year: int, month: str, day: int, clock: str) -> datetime:
    return datetime.fromisoformat(f"{year:04}-{MONTHS.index(month) + 1:02}-{day:02}T{clock}")


MAX_ENVELOPE = 4096
"""More characters than any program writes before a message."""


@dataclass(slots=True)
class Envelope:
    """What the layers of a line say; `end` is where the last of them ends.

    `names_host`: the time was written as in a log in which host and program follow.
    """

    written_at: datetime
    wall: ParsedStamp | None = None
    uptime: ParsedStamp | None = None
    host: str = ""
    program: str = ""
    end: int = 0
    level: int | None = None
    is_clean: bool = True
    names_host: bool = False

    @property
    def is_stamped(self) -> bool:
        """Whether a layer told the time."""
        return bool(self.wall or self.uptime)

    def make_message(self, text: str) -> LogMessage:
        """Return the message that stands in this envelope."""
        at, stamp = self.wall or self.uptime or (None, None)
        uptime = self.uptime[0] if self.uptime else None
        return LogMessage(text, at, stamp, uptime, host=self.host, program=self.program, level=self.level)


Match = re.Match[str]
Take = Callable[[Envelope, Match], None]


def _take_nothing(_envelope: Envelope, _match: Match) -> None:
    return


def _take_level(envelope: Envelope, match: Match) -> None:
    envelope.level = parse_log_level(match["level"])


def _take_prompt(envelope: Envelope, _match: Match) -> None:
    """Leave out the prompt of a serial console. After a time, `login` is a program."""
    if envelope.is_stamped:
        raise ValueError


def _take_5424(envelope: Envelope, match: Match) -> None:
    envelope.wall = parse_iso_time(match["stamp"], envelope.written_at) if match["stamp"] != "-" else envelope.wall
    envelope.level = parse_log_level(match["level"] or "")
    envelope.host = match["host"].strip("-")
    envelope.program = match["program"].strip("-")


def _take_kmsg(envelope: Envelope, match: Match) -> None:
    envelope.uptime = parse_microseconds_since_boot(match["stamp"], envelope.written_at)
    envelope.level = parse_log_level(match["level"] or "")


def _take_uptime(envelope: Envelope, match: Match) -> None:
    envelope.uptime = parse_seconds_since_boot(match["stamp"], envelope.written_at)


def _take_ctime(envelope: Envelope, match: Match) -> None:
    at = parse_ctime(f"x {match['day']} {match['clock']} {match['year']}", envelope.written_at)
    zone = format_zone(match["zone"] or "")
    envelope.wall = parse_iso_time(at[1] + zone, envelope.written_at) if zone else at


def _take_iso(envelope: Envelope, match: Match) -> None:
    envelope.names_host = "," not in match["stamp"] and not match[0].startswith("[")
    stamp = match["stamp"].replace("/", "-") + format_zone(match["zone"] or "")
    envelope.wall = parse_iso_time(stamp, envelope.written_at)


def _take_syslog(envelope: Envelope, match: Match) -> None:
    envelope.names_host = True
    day = match["day"]
    clock = match["clock"]
    if half := match["half"]:  # AM or PM, by its first letter
        clock = f"{int(clock[:2]) % 12 + 12 * (half in 'pP'):02}{clock[2:]}"
    clock += match["fraction"] or ""
    if year := match["before"] or match["after"]:
        envelope.wall = parse_ctime(f"x {day} {clock} {year}", envelope.written_at)
    else:
        known = datetime.fromtimestamp(envelope.wall[0], UTC) if envelope.wall else envelope.written_at
        envelope.wall = parse_syslog_time(f"{day} {clock}", known)


def _take_web(envelope: Envelope, match: Match) -> None:
    at = parse_ctime(f"x {match['month']} {match['number']} {match['clock']} {match['year']}", envelope.written_at)
    zone = (match["zone"] or "").strip()
    envelope.names_host = True
    envelope.wall = parse_iso_time(at[1] + zone, envelope.written_at) if zone else at


def _take_epoch(envelope: Envelope, match: Match) -> None:
    envelope.names_host = True
    envelope.wall = parse_epoch(match["stamp"])


def _take_labels(envelope: Envelope, match: Match) -> None:
    envelope.host = next((host for name, host in LABEL.findall(match[0]) if name in HOST_LABELS), envelope.host)


def _take_host(envelope: Envelope, match: Match) -> None:
    envelope.host = match[match.lastgroup or "host"]


def _take_field(envelope: Envelope, match: Match) -> None:
    """Take the host of `host=n1 msg="…"`, where no layer before it names one."""
    envelope.host = envelope.host or match["host"]


DAY = r"(?P<day>(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {0,2}\d{1,2})"
CLOCK = r"(?P<clock>\d\d:\d\d:\d\d)"
HALF = r"(?: (?P<half>[AaPp])\.?[Mm]\b\.?)?"
"""AM or PM."""
WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
ISO = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
ZONE = r" ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b"
FACILITY = r"(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|res\d+|local\d)"
LEVEL = rf"(?P<level>{'|'.join(LEVELS)})"
DELTA = r"(?: +<[^>]*>)?"
PRIORITY_5424 = rf"(?:<(?P<level>\d+)>|(?=1 {ISO}))"
DATA_5424 = r'(?:-|(?:\[(?:[^\]"\\]|\\.|"(?:[^"\\]|\\.)*")*\])+)'
LABEL = re.compile(r'([\w.]{1,64})="([^"]{0,255})"')
HOST_LABELS = {"host", "hostname", "node", "node_name", "nodename", "instance"}
WORD = r'[^\s:\[\]<>|"]+'
LAYERS: tuple[tuple[re.Pattern[str], Take], ...] = tuple(
    (re.compile(pattern), take)
    for pattern, take in (
        (
            rf"{PRIORITY_5424}1 (?P<stamp>\S+) (?P<host>\S+) (?P<program>\S+) \S+ \S+ {DATA_5424} ?\ufeff?",
            _take_5424,
        ),
        (r"<(?P<level>\d{1,3})>", _take_level),
        (r"[\w.-]+ login: ", _take_prompt),
        (r"(?:\d+\.\d[\w.+-]*,)?(?P<level>\d+),\d+,(?P<stamp>\d+),[^;\n]*;", _take_kmsg),
        (rf"{FACILITY} *: *{LEVEL} *: ", _take_level),
        (rf"{FACILITY}\.{LEVEL} +", _take_level),
        (rf"\[ *(?P<stamp>\d+\.\d+){DELTA} *\] ?", _take_uptime),
        (r"\[ *[TC]\d+ *\] ?", _take_nothing),
        (rf"\[?{WEEKDAY} {DAY} {CLOCK}(?: (?P<zone>[A-Z]{{3,5}}))? (?P<year>\d{{4}}){DELTA} *\]?:? ?", _take_ctime),
        (
            rf"\[?(?:{WEEKDAY} )?(?P<stamp>{ISO}(?:{ZONE})?)(?:(?<=\d) (?P<zone>[A-Z]{{3,4}})(?= ))?{DELTA}\]?[ ,:]?",
            _take_iso,
        ),
        (
            rf"(?:(?P<before>\d{{4}}) )?{DAY}(?: (?P<after>\d{{4}}))? {CLOCK}(?P<fraction>\.\d{{1,6}})?{HALF}:? ?",
            _take_syslog,
        ),
        (
            rf"\[?(?P<number>\d\d)/(?P<month>[A-Z][a-z]{{2}})/(?P<year>\d{{4}})[: ]{CLOCK}(?P<zone>{ZONE})?\]? ?",
            _take_web,
        ),
        (r"(?P<stamp>1\d{9}(?:\.\d{1,9}|\d{9}|\d{6}|\d{3})?)(?![\d.])[ :]?", _take_epoch),
        (r"std(?:out|err) [FP] ", _take_nothing),
        (r"\d{1,9}[:-] *(?=[\[<])", _take_nothing),
        (rf"\{{(?:{LABEL.pattern},? ?)+\}} ?", _take_labels),
        (r"\[(?P<host>pod/[^\]]+)\] ?", _take_host),
        (rf"(?:{'|'.join(sorted(HOST_LABELS))})=\"?(?P<host>[A-Za-z0-9][\w.-]{{0,254}})\"?[ ,]+", _take_field),
        (r"(?:_?[A-Z_]+=|data: )", _take_nothing),
        (r"""[\s>|*"'`=,+\u200e\u200f\ufeff│┃║-]+""", _take_nothing),
    )
)
HOST_AND_PROGRAM = re.compile(
    rf"(?P<host>{WORD})\s+(?:[a-z0-9]+\.[a-z]+\s+)?(?P<program>{WORD})(?P<process>\[[^\]]*\])?:\s*|(?P<only>kernel): "
)
NUMBERED = r"(?!nvidia-nvswitch)[a-z][\w.-]*\d[\w.-]*"
"""A name that is most likely a host's."""
SOURCES: tuple[tuple[re.Pattern[str], Take], ...] = (
    (re.compile(r"(?P<host>[\w.-]+) \| (?:CHANGED|SUCCESS|FAILED)!? \| rc=\d+ \| \(std(?:out|err)\) "), _take_host),
    (
        re.compile(r"\[(?P<host>[a-z][\w.-]*)\] (?:out|err): |\[(?P<marked>[a-z][\w-]*\d[\w.-]*)\] (?=[\[<\dA-Z])"),
        _take_host,
    ),
    (re.compile(r"[^\s:\[\]<>|=]+?(?:-\d+-|:(?:\d+:)?)(?=[\[<\d({A-Z]|\Z)"), _take_nothing),
    (re.compile(rf"(?P<host>{NUMBERED}):[ \t]+[\"']?|(?P<tagged>{NUMBERED})(?:\t|[ \t]+(?=\[ *\d+\.))"), _take_host),
    (re.compile(rf"(?!\d+:|NVRM:|kernel:)(?P<host>{WORD}|{NODE_SET}):[ \t]+(?!['\"])"), _take_host),
    (re.compile(r"(?P<host>[a-z0-9][a-z0-9.-]*)(?: ›)? (?!\d+ )[a-z0-9][a-z0-9.-]*(?: ›|:)? (?=[\[<\d])"), _take_host),
)
"""What stands first where lines of several files, hosts or pods are printed together."""
UNKNOWN_WORD = re.compile(r"""[^\s>|"'`=]+""")


def read_envelope(line: str, end: int, written_at: datetime) -> Envelope:
    """Return what the layers before `end` say: up to there, whatever stands between them is skipped."""
    envelope = _peel(line, end, written_at)
    while envelope.end < end and (word := UNKNOWN_WORD.match(line, envelope.end, end)):
        envelope.is_clean = False
        envelope.end = word.end()
        _peel_layers(envelope, line, end)
    return envelope


def peel_line(line: str, written_at: datetime) -> Envelope:
    """Return what the first layers of a line say."""
    return _peel(line, min(len(line), MAX_ENVELOPE), written_at)


def split_line(line: str, written_at: datetime) -> LogMessage:
    """Return the message of a line of which nothing is known: what follows the last layer."""
    envelope = peel_line(line, written_at)
    if not envelope.is_stamped:
        return LogMessage(line.strip())
    return envelope.make_message(line[envelope.end :])


def _peel(line: str, end: int, written_at: datetime) -> Envelope:
    envelope = Envelope(written_at)
    _peel_layers(envelope, line, end)
    if not envelope.is_stamped:
        for pattern, take in SOURCES:
            if match := pattern.match(line, envelope.end, end):
                take(envelope, match)
                envelope.end = match.end()
                break
        _peel_layers(envelope, line, end)
    return envelope


def _peel_layers(envelope: Envelope, line: str, end: int) -> None:
    """Take off as many layers as there are; after a time, host and program may follow."""
    while envelope.end < end:
        had = envelope.is_stamped
        if not _peel_layer(envelope, line, end) and not (had and _peel_host(envelope, line, end)):
            return


def _peel_layer(envelope: Envelope, line: str, end: int) -> bool:
    for pattern, take in LAYERS:
        if match := pattern.match(line, envelope.end, end):
            try:
                take(envelope, match)
            except (ValueError, OverflowError, OSError):
                continue
            envelope.end = match.end()
            return True
    return False


def _peel_host(envelope: Envelope, line: str, end: int) -> bool:
    match = None if envelope.program else HOST_AND_PROGRAM.match(line, envelope.end, end)
    if match is None:
        return False
    if match["only"]:
        envelope.program = "kernel"
    elif envelope.names_host or match["process"] or match["program"] == "kernel":
        envelope.host, envelope.program = match["host"], match["program"]
    else:
        return False  # `usb 1-1: new device`
    envelope.end = match.end()
    return True
