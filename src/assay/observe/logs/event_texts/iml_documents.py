"""HPE's Integrated Management Log: as RIBCL gives it to hponcfg (XML), and as `hplog -v` prints it.

An entry that came again has the times when it first and last came, and how often; the log tells of these two times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html.parser import HTMLParser

from assay.observe.logs.event_texts.text_entry import TextEntry, UnreadLine

UNSET = "[not set]"
HPLOG_HEAD = re.compile(r"ID\s+Severity\s+Initial Time\s+Update Time\s+Count")
HPLOG_ENTRY = re.compile(
    r"(?P<id>\d{4})\s+(?P<severity>[A-Z][a-z]+)\s+(?P<first>[\d:]{5}\s+[\d/]{8,10}|\[NOT SET\])"
    r"\s+(?P<last>[\d:]{5}\s+[\d/]{8,10}|\[NOT SET\])\s+(?P<count>\d+)\s*$"
)
HPLOG_TEXT = re.compile(r"LOG:\s*(?P<text>.*\S)")
MAX_LENGTH = 16 * 1024 * 1024
RULE = re.compile(r"-+\s*$")


class _EventParser(HTMLParser):
    """Collects the EVENT elements of RIBCL answers, of which several may stand in one file."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "event":
            self.events.append({name: value or "" for name, value in attrs})


class RibclForm:
    """The answer to RIBCL's GET_EVENT_LOG, as hponcfg and iLO's scripts have it."""

    name = "RIBCL GET_EVENT_LOG (hponcfg)"

    def counts_lines(self, sample: Sequence[str]) -> int:
        """Return the number of lines if an event log begins in them."""
        tags = [line.strip() for line in sample if line.lstrip().startswith("<")]
        return len(sample) if any("<EVENT_LOG" in tag or tag == "<EVENT" for tag in tags) else 0

    def read_entries(self, lines: Iterable[str]) -> Iterator[TextEntry | UnreadLine]:
        """Yield the entries, each at the times when it first and last came."""
        parser, rest = _EventParser(), ""
        try:
            parser.feed("\n".join(lines)[:MAX_LENGTH])
            rest = parser.rawdata.strip()
        except AssertionError as error:  # how HTMLParser refuses a declaration
            rest = f"<{error}"
        for number, event in enumerate(parser.events):
            yield from _repeat(
                event.get("severity", ""),
                str(number + 1),
                event.get("description", ""),
                [event.get("initial_update", ""), event.get("last_update", "")],
            )
        if rest.startswith("<"):  # a tag that does not end
            yield UnreadLine(rest.partition("\n")[0], is_entry=True)


class HplogForm:
    """`hplog -v`: a line of numbers for each entry, and its text in the next."""

    name = "hplog -v"

    def counts_lines(self, sample: Sequence[str]) -> int:
        """Return how many lines are of entries."""
        known = (HPLOG_HEAD, HPLOG_ENTRY, HPLOG_TEXT, RULE)
        found = sum(any(pattern.match(line.strip()) for pattern in known) for line in sample)
        return found if any(HPLOG_ENTRY.match(line.strip()) for line in sample) else 0

    def read_entries(self, lines: Iterable[str]) -> Iterator[TextEntry | UnreadLine]:
        """Yield the entries, each at the times when it first and last came."""
        entry: re.Match[str] | None = None
        for line in map(str.strip, lines):
            if entry and (said := HPLOG_TEXT.match(line)):
                times = [" ".join(reversed(entry[name].split())) for name in ("first", "last")]
                yield from _repeat(entry["severity"], entry["id"], said["text"], times)
                entry = None
                continue
            if entry:
                yield UnreadLine(entry[0], is_entry=True)
            entry = HPLOG_ENTRY.match(line)
            if not (entry or HPLOG_HEAD.match(line) or RULE.match(line)):
                yield UnreadLine(line)
        if entry:
            yield UnreadLine(entry[0], is_entry=True)


def _repeat(severity: str, ident: str, text: str, times: Sequence[str]) -> Iterator[TextEntry | UnreadLine]:
    if not text:
        yield UnreadLine(f"{severity} {ident}", is_entry=True)
    else:
        for time in dict.fromkeys(times):
            date, _, clock = ("", "", "") if time.lower() in (UNSET, "not set", "") else time.partition(" ")
            yield TextEntry.with_severity(severity, ident, text, date, clock)
