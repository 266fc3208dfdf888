"""Event logs as one block of `name: value` lines for each entry: `ipmitool -v`, racadm, and the shell of an iLO."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from assay.observe.logs.text_entry import LINE_ENDS, TOOL_SPEAKS, TextEntry, UnreadLine, join_words

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
QUIET = re.compile(
    r"[-=_*\s]+$|\s*(Targets|Properties|Verbs|cd |show|status|</>|racadm|[A-Z][a-z]{2} [A-Z][a-z]{2} )|hpiLO->"
)
"""Lines between the entries that say nothing."""


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
        head, fields, last, common = "", dict[str, str](), "", set[str]()
        ended = True
        for line in lines:
            ended = line.endswith(LINE_ENDS)
            named = self._named.match(line)
            if self.begins.match(line):
                yield from self._finish(head, fields, is_cut=False)
                common = (common & fields.keys() if common else set(fields)) if head else common
                head, fields, last = line, {}, ""
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
    found = DAY_AND_CLOCK.match(text)
    return (found["date"], found["clock"]) if found else (text, "")


def _read_ipmitool(fields: Fields) -> TextEntry:
    sensor_type, named = fields.get("sensor type", ""), fields.get("sensor id", "").partition(" (")[0].strip()
    number = fields.get("sensor number", "")
    sensor = " ".join(word for word in (sensor_type, named or (f"#0x{number}" if number else "")) if word)
    kind = fields.get("record type", "")
    said = fields.get("description") or fields.get("panic string") or (kind if "OEM" in kind else "")
    date, clock = split_time(fields.get("timestamp", ""))
    is_set = DATE_BEGINS.match(date) is not None
    text = join_words(sensor or kind, said) if said or sensor else ""
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


def _read_ilo_record(fields: Fields) -> TextEntry:
    return TextEntry.with_severity(
        fields.get("severity", ""),
        fields.get("number", ""),
        fields.get("description", ""),
        fields.get("date", ""),
        fields.get("time", ""),
    )


RECORD_FORMS = (
    RecordForm("ipmitool -v sel list", re.compile(r"\s*SEL Record ID\s*:"), ":", _read_ipmitool),
    RecordForm("racadm getsel", re.compile(r"\s*Record:\s*\d+\s*$"), ":", _read_racadm_sel),
    RecordForm("racadm lclog view", re.compile(r"\s*SeqNumber\s*="), "=", _read_lifecycle_log),
    RecordForm("iLO show /system1/log1", re.compile(r"\s*/system1/log1/record\d+\s*$"), "=", _read_ilo_record),
)
