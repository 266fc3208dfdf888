"""Reads any log: opens it, detects its form, and yields the messages that may name a fault."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.log_message import GPU_INTRODUCTION, LineTally, LogMessage
from assay.model.specs.log_patterns import KernelLogMatcher, is_truncated_xid
from assay.model.text.lists import NODE_SET, expand_names
from assay.model.text.packed_text import ByteSource, UnpackingError, open_text
from assay.observe.logs.broken_lines import CutLines, write_repeated_lines
from assay.observe.logs.event_forms import EventRows, is_of_other_log
from assay.observe.logs.kernel_log_search import (
    KernelLogForm,
    ReadBytes,
    find_kernel_messages,
    read_chunks,
    strip_colours,
    write_line_ends,
)
from assay.observe.logs.line_envelope import split_line
from assay.observe.logs.log_form import (
    MAX_DOCUMENT_BYTES,
    DmesgPieces,
    LogForm,
    LogQuery,
    TooLongDocument,
    UnknownLogForm,
    list_log_forms,
)
from assay.observe.logs.records import MessageSearch
from assay.observe.logs.sel_and_redfish_entries import SEL_FORM

HEADING = b"NVIDIA bug report log file"
RULE = b"____________________________________________"
"""The line between two sections."""
ReadSection = Callable[[Iterable[bytes]], Iterator[LogMessage]]
SAMPLE_LINES = 200
"""Lines by which the form of a log is detected."""
MIN_FORM_SHARE = 0.5
SHOWN_LENGTH = 200
HTTP_HEADERS = re.compile(rb"\AHTTP/[\d.]{1,4} \d{3}[^\n]*\n(?:[\w-]{1,64}:[^\n]*\n)*\r?\n")
"""What `curl -i` prints before the answer."""
HEADLESS = re.compile(
    rb"(?![^\n(]{0,8}[Xx][Ii][Dd] )[\w ]{0,8}\((?:PCI:)?[0-9a-fA-F]{4,8}:[0-9a-fA-F:.]{5,10}[^()\n]{0,20}\): \d{1,6}, "
)
"""How a log begins whose first line lost its beginning within the head of an XID, as `tail -c` leaves it."""
HOST_BLOCK = re.compile(
    rb"^(?:-{3,}\s*\n" + NODE_SET.encode() + rb"(?: \(\d+\))?\s*\n-{3,}\s*$|==> [^\n]{1,1000}? <==\s*$"
    rb"|[\w.-]+ \| (?:CHANGED|SUCCESS|FAILED)!? (?:\| rc=\d+ >>|=> \{)"
    rb"|\[\d+\] \d\d:\d\d:\d\d \[(?:SUCCESS|FAILURE)\] \S"
    rb"|(?:ok|changed|failed|fatal): \[[\w.-]+\](?:: FAILED!)? => \{)",
    re.MULTILINE,
)
"""What stands above the log of a host or a file where a tool prints several: clush -b, dshbak, tail, ansible, pssh.

Read as one log, the faults of one host would be those of another.
"""


class LogReader:
    """A log that is read once. `where` names it in errors.

    `tally` counts while `messages` is read. `is_bmc_log` says whether the messages are a BMC's events; it is set when
    the first message comes.
    """

    def __init__(self, read: ReadBytes, matcher: KernelLogMatcher, written_at: datetime, where: str) -> None:
        self.tally = LineTally()
        self.is_bmc_log = False
        self._read = read
        self._where = where
        self._cut = CutLines()
        self._query = LogQuery(matcher, written_at, self.tally, DmesgPieces(matcher))

    def messages(self) -> Iterator[LogMessage]:
        """Yield the messages that may name a fault, in order: of a line of several hosts, one each.

        Raises AssayError where the log is of no known form and no message in it names a fault.
        """
        pieces = read_chunks(self._read)
        first = b""
        try:
            first = HTTP_HEADERS.sub(b"", next(pieces, b""), count=1) or next(pieces, b"")
        except TooLongDocument:
            raise self._refuse_long_document() from None
        lines = next(strip_colours([first])).splitlines()
        sample = [line for line in lines if line.strip()][:SAMPLE_LINES]
        if not sample:
            return
        if HEADLESS.match(sample[0]):
            self.tally.note_uncounted(_text(sample[0]))
        pieces = chain([first], pieces)
        pieces = write_repeated_lines(write_line_ends(strip_colours(pieces)), self.tally, self._query.dmesg)
        try:
            for message in self._read_pieces(sample, self._cut.watch(pieces)):
                if "[" in message.host:
                    yield from (message._replace(host=host) for host in expand_names(message.host))
                else:
                    yield message
            if not self.is_bmc_log and (line := self._cut.find_last_line()):
                yield from MessageSearch(self._query.matcher, self._query.written_at).find_cut_message(line)
        except TooLongDocument:
            raise self._refuse_long_document() from None
        except UnknownLogForm:
            names = ", ".join(form.name for form in list_log_forms())
            text = f"is no log that I can read; it begins with {_shorten(sample[0])!r}"
            raise AssayError(text, where=self._where, fix=f"known are: {names}") from None

    def is_uncounted(self, message: LogMessage, faults: Sequence[object]) -> bool:
        """Whether the message that came last names a fault that cannot be counted. `faults` are those in its text."""
        if faults:
            return not message.is_of_kernel or self._query.matcher.is_cut(message.text)
        return is_truncated_xid(message.text) or self._is_clipped(message)

    def _is_clipped(self, message: LogMessage) -> bool:
        """Whether the message that came last, and names no fault, would name one if its line had not been cut."""
        matcher = self._query.matcher
        text = message.text
        if matcher.breaks_off(text) and not text.startswith(GPU_INTRODUCTION):  # which goes on in the next line
            return True
        return self._cut.is_clipped(text) and matcher.may_begin_fault(text)

    def _refuse_long_document(self) -> AssayError:
        message = f"holds a document in JSON of more than {MAX_DOCUMENT_BYTES // 1024**2} MiB"
        return AssayError(message, where=self._where, fix="write one record a line, or ask for fewer lines at once")

    def _read_pieces(self, sample: list[bytes], pieces: Iterable[bytes]) -> Iterator[LogMessage]:
        if is_bug_report(sample):
            made_at = find_date(sample, self._query.written_at)
            dated = self._query._replace(written_at=made_at)
            yield from read_sections(pieces, lambda section: find_kernel_messages(None, section, dated))
            return
        if heading := HOST_BLOCK.search(b"\n".join(sample)):
            raise AssayError(
                f"holds the logs of several hosts or files in blocks, below headings such as {_shorten(heading[0])!r}",
                where=self._where,
                fix="give each log as a file of its own, or print the host in each line: pdsh, clush -L, ansible -o",
            )
        form = self._detect_form(sample)
        if form is not None and not isinstance(form, KernelLogForm):
            self.is_bmc_log = form.is_bmc_log
            yield from form.read(pieces, self._query)
        else:
            yield from self._read_text(form, sample, pieces)

    def _read_text(
        self, form: KernelLogForm | None, sample: list[bytes], pieces: Iterable[bytes]
    ) -> Iterator[LogMessage]:
        """Read a text by its messages, and then the rows of an event log in it. Raises UnknownLogForm for neither."""
        events = EventRows(self._query.dmesg)
        rest = events.take_out(pieces)
        try:
            if form is not None or (self._is_stamped(sample) and not is_of_other_log(sample)):
                yield from find_kernel_messages(form, rest, self._query)
            else:
                yield from self._read_unknown(rest)
        except UnknownLogForm:
            if not events.rows:
                raise
        if events.unread:
            self.tally.note_uncounted(events.unread)
        if events.rows:
            self.is_bmc_log = True
            yield from SEL_FORM.read(events.rows, self._query)
            self.is_bmc_log = False

    def _is_stamped(self, sample: list[bytes]) -> bool:
        """Whether most of the first lines tell a time."""
        stamped = sum(split_line(_text(line), self._query.written_at).stamp is not None for line in sample)
        return stamped >= MIN_FORM_SHARE * len(sample)

    def _read_unknown(self, pieces: Iterable[bytes]) -> Iterator[LogMessage]:
        """Read a text of which nothing is known but that messages may stand in it. Raises UnknownLogForm for none."""
        is_log = False
        matcher = self._query.matcher
        for message in find_kernel_messages(None, pieces, self._query):
            is_log = is_log or bool(matcher.find_faults(message.text)) or is_truncated_xid(message.text)
            yield message
        if not is_log:
            raise UnknownLogForm

    def _detect_form(self, sample: list[bytes]) -> LogForm | None:
        """Return the form of a log, None for text of which each line is read for itself."""
        forms = list_log_forms()
        ratings = [form.rate(sample) for form in forms]
        rating = max(ratings)
        best = forms[ratings.index(rating)]  # of equal ratings, the first
        if not isinstance(best, KernelLogForm):
            return best if rating >= MIN_FORM_SHARE or (rating > 0 and not self._is_stamped(sample)) else None
        if rating < MIN_FORM_SHARE:
            return None
        for line in sample:  # a layer before the messages: `[ 12.5] n1 kernel: …` is not only dmesg's
            text = message.text if (message := best.parse_line(line, self._query.written_at)) else ""
            is_tagged = text.startswith("kernel: ") or " kernel: " in text[:80]
            if is_tagged or split_line(text, self._query.written_at).stamp is not None:
                return None
        return best


@contextmanager
def open_log(name: str) -> Iterator[tuple[LogText, datetime]]:
    """Open a log by its path, `-` for standard input; yield its text as UTF-8, and when it was last written.

    A file of gzip is unpacked. Raises AssayError where the log cannot be read.
    """
    where = "standard input" if name == "-" else name
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb", buffering=0) as file:
            written = datetime.now(UTC) if name == "-" else datetime.fromtimestamp(Path(name).stat().st_mtime, UTC)
            yield unpack_text(file), written
    except OSError as error:
        raise AssayError(f"cannot be read: {error.strerror or error}", where=where) from None


class LogText:
    """The text of a log. `broken` says why it ends before the log does, as far as it was read; "" if it does not."""

    def __init__(self, source: ByteSource) -> None:
        self.broken = ""
        self._source = source

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        try:
            return self._source.read(size)
        except UnpackingError as error:
            self.broken = self.broken or str(error)
            return b""


def unpack_text(file: ByteSource) -> LogText:
    """Return the text of a file as UTF-8: unpacked, without a byte order mark."""
    return LogText(open_text(file))


def find_date(sample: Sequence[bytes], otherwise: datetime) -> datetime:
    """Return when a report was made, as its first lines say; a time in it may name no year."""
    lines = (line.decode(errors="replace") for line in sample if line.startswith(b"Date: "))
    wall = next((at for line in lines if (at := split_line(line.removeprefix("Date: "), otherwise).wall)), None)
    return otherwise if wall is None else datetime.fromtimestamp(wall, UTC)


def is_bug_report(sample: Sequence[bytes]) -> bool:
    """Return whether a log's first lines are those of a bug report."""
    return any(HEADING in line for line in sample)


def read_sections(pieces: Iterable[bytes], read: ReadSection) -> Iterator[LogMessage]:
    """Yield the messages that `read` finds in a bug report, each as often as in the section that has it most often.

    The NVIDIA driver's report has many sections: dmesg, the journal and /var/log/messages repeat the same lines.
    """
    most, here = Counter[str](), Counter[str]()
    for piece in pieces:
        for number, part in enumerate(piece.split(RULE)):
            if number:
                most, here = most | here, Counter[str]()
            for message in read([part]):
                here[message.text] += 1
                if here[message.text] > most[message.text]:
                    yield message


def _text(line: bytes) -> str:
    return line.decode(errors="replace")


def _shorten(line: bytes) -> str:
    return _text(line).strip()[:SHOWN_LENGTH]
