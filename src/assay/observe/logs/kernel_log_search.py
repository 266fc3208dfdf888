"""Searches a kernel log as a stream: chunks are searched for what faults begin with; few lines become messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import ClassVar

from assay.model.log_message import LogMessage, parse_log_level
from assay.model.specs.log_patterns import DIGITS
from assay.observe.logs.broken_lines import find_width, hold_last_lines, join_lines, split_runs
from assay.observe.logs.line_envelope import ParsedStamp
from assay.observe.logs.log_form import MAX_DOCUMENT_BYTES, LogQuery, TooLongDocument
from assay.observe.logs.record_forms import begins_document
from assay.observe.logs.records import ERROR_SIGN, XID_ANYWHERE, MessageSearch, holds_written_line_ends, unescape

CHUNK_BYTES = 256 * 1024
MAX_LINE_BYTES = 1024 * 1024  # a longer line is no line of a log
PROBED_LINES = 8
"""So many lines of each chunk must be of the log's form; if one is not, all lines of the chunk are searched in full."""
ERROR_LINE = re.compile(rb"(?:\A|\n)(?:" + ERROR_SIGN.pattern.encode() + rb")")
ReadBytes = Callable[[int], bytes]
StampParser = Callable[[str, datetime], ParsedStamp]
"""(a line's stamp, the time when the log was last written) → its time. Raises ValueError or OverflowError."""
LINE = re.compile(rb"[^\n]+")
LINE_ENDS = re.compile(rb"\r*\n\r*|\r+")
STORM_LINE = re.compile(
    rb"^([^\[\n]{0,99}+\[ *+\d++(?=\.)|[^\[\n]{5,17}:\d\d:\d\d)[\d.,:+Z-]*+"
    rb"(\]? (?:[^\n\[:]{1,80}+: )??(?:NVRM: Xid \([^)\n]*+\): (?:\d\d?|1[0-3]\d),(?![^\n]* by previous)"
    rb"|nvidia-nvswitch\d++: SXid \([^)\n]*+\): \d++, \w)|[^\n]*+)[^\n]*+(?:\n|\Z)",
    re.MULTILINE,
)
"""In which second a line says what. What follows the number of an SXid, or of an XID below 140, does not change it."""
MOST_FORMS = 4096
STORM_SHARE, STORM_BYTES, SAMPLE_BYTES = 0.5, 64 * 1024, 8 * 1024
"""So large a share of the first lines of a piece, and of a piece so long, makes a storm."""
HARD_BLANK = "\u00a0".encode()
XID = re.compile(XID_ANYWHERE)
COLOURS = re.compile(rb"\x1b\[[0-9;?]*[mK]")


@dataclass(frozen=True)
class KernelLogForm:
    """A form of kernel logs, one message a line.

    - `line`: matches a whole line, with the groups `text` and `stamp`, and perhaps `host`, `program`, `uptime`, `level`
      and `level_name`.
    - `prefix`: a regular expression for what comes right before a message.
    - `first_bytes`: the bytes with which a line may begin, as a set of a regular expression.
    - `stamp`: parses the stamp of a line. `from_boot` says that stamps count from the boot.
    - `further`: how a line begins that belongs to the message before it, and is left out.
    """

    is_bmc_log: ClassVar[bool] = False

    name: str
    line: re.Pattern[bytes]
    prefix: bytes
    first_bytes: bytes
    stamp: StampParser
    from_boot: bool = False
    further: bytes = b"\n"

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return the share of lines that are of this form."""
        return sum(map(self.matches, sample)) / len(sample)

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the messages that may name a fault, or all, and count all lines."""
        return find_kernel_messages(self, pieces, query)

    def matches(self, line: bytes) -> bool:
        """Return whether a line is of this form."""
        return self.line.match(line) is not None

    def parse_line(self, line: bytes, written_at: datetime) -> LogMessage | None:
        """Return the message of a line, None where the line is not of this form."""
        match = self.line.match(line)
        if match is None:
            return None
        groups = {name: text.decode(errors="replace") for name, text in match.groupdict(b"").items()}
        try:
            at, stamp = self.stamp(groups["stamp"], written_at)
        except (ValueError, OverflowError):
            return None
        level = groups.get("level") or groups.get("level_name")
        uptime = groups.get("uptime")
        return LogMessage(
            unescape(groups["text"]),
            at,
            stamp,
            float(uptime) if uptime else at if self.from_boot else None,
            host=groups.get("host", ""),
            program=groups.get("program", ""),
            level=parse_log_level(level) if level else None,
        )


def read_chunks(read: ReadBytes) -> Iterator[bytes]:
    """Yield the log in pieces that end with a line; the last may lack its newline. Lines that are too long are cut.

    A document in JSON may be one line. Raises TooLongDocument where that is too long.
    """
    rest = bytearray()
    piece = _read_first(read)
    longest = MAX_DOCUMENT_BYTES if begins_document(piece) else MAX_LINE_BYTES
    while piece:
        if end := piece.rfind(b"\n") + 1 or piece.rfind(b"\r", 0, -1) + 1:
            yield b"".join((rest, memoryview(piece)[:end]))
            rest = bytearray(piece[end:])
        else:
            rest += piece
            if len(rest) > longest == MAX_DOCUMENT_BYTES:
                raise TooLongDocument
            if len(rest) > longest:
                yield bytes(rest)
                rest.clear()
        piece = read(CHUNK_BYTES)
    if rest:
        yield bytes(rest)


def _read_first(read: ReadBytes) -> bytes:
    """Return the first piece in full, by which the form of a log is detected: a pipe gives less at once."""
    piece = read(CHUNK_BYTES)
    while len(piece) < CHUNK_BYTES and (more := read(CHUNK_BYTES - len(piece))):
        piece += more
    return piece


def strip_colours(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a log without the colours of a terminal, and with plain blanks in place of those of a web page."""
    for piece in pieces:
        plain = COLOURS.sub(b"", piece) if b"\x1b" in piece else piece
        yield plain if plain.isascii() else plain.replace(HARD_BLANK, b" ")


def write_line_ends(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a log in which every line ends with a newline alone: a carriage return ends a line as well."""
    for piece in pieces:
        yield LINE_ENDS.sub(b"\n", piece.replace(b"\r\n", b"\n")) if b"\r" in piece else piece


def find_kernel_messages(form: KernelLogForm | None, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
    """Yield the messages of a log of one form that may name a fault, and count all lines.

    Lines that are not of the form, and all lines where `form` is None, are read by their message.
    """
    search = KernelLineSearch(form, query)
    first = next(pieces := iter(pieces), b"")
    width = find_width(first)
    for chunk in hold_last_lines(chain([first] if first else [], pieces), bool(width)):
        query.tally.lines += chunk.count(b"\n") + (not chunk.endswith(b"\n"))
        for messages in list(_search_chunk(search, chunk, width)):  # in one go, which is faster
            yield from messages


def _search_chunk(search: KernelLineSearch, chunk: bytes, width: int) -> Iterator[Sequence[LogMessage]]:
    """Yield the messages of each line, or of several that were one."""
    for run in split_runs(chunk, width):
        text = chunk[run.start : run.end] if width else chunk
        if run.is_wrapped:
            yield search.read_wrapped(text)
        else:
            yield from map(search.read_line, search.find_lines(text))


class KernelLineSearch:
    """Finds the lines of a log that may name a fault, in chunks, and reads them."""

    def __init__(self, form: KernelLogForm | None, query: LogQuery) -> None:
        self._form = form
        self._tally = query.tally
        self._reads_all = bool(query.matcher.patterns)
        self._dmesg = query.dmesg
        self._messages = MessageSearch(query.matcher, query.written_at)
        self._times: dict[bytes, int] = {}
        self._is_dmesg = False
        self._silent: dict[bytes, bool] = {}  # whether dmesg's lines say nothing, with a zero for each digit
        heads = query.matcher.prefix_regex().encode()
        self._words = [word.encode() for word in query.matcher.holds]
        if form:
            self._heads = re.compile(form.prefix + rb"(?:" + heads + rb")")
            self._start = re.compile(rb"[" + form.first_bytes + rb"\r\n]")
            self._foreign = re.compile(rb"\n[^" + form.first_bytes + rb"\r\n]")

    def find_lines(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines of a chunk that may match, and those of another form, each once.

        Of a storm, what a second says again and again is told by the first and the last such line.
        """
        if self._reads_all:
            yield from (line[0] for line in LINE.finditer(chunk))
            return
        self._times = {}
        if len(chunk) > STORM_BYTES:
            sample = chunk[: chunk.find(b"\n", SAMPLE_BYTES) + 1]
            if len(self._find_offsets(sample)) > STORM_SHARE * sample.count(b"\n"):
                chunk, self._times = fold_storm(chunk)
        offsets = self._find_offsets(chunk)
        self._is_dmesg = self._form is not None and self._form.from_boot and self._dmesg.holds_only_dmesg(chunk)
        folded, end = chunk.translate(DIGITS) if self._is_dmesg else chunk, -1
        for offset in sorted(offsets):
            if offset > end:
                start = chunk.rfind(b"\n", 0, offset) + 1
                end = chunk.find(b"\n", offset)
                end = len(chunk) if end < 0 else end
                if not self._is_dmesg or not self._silent.get(folded[start:end]):
                    yield chunk[start:end]

    def read_line(self, line: bytes) -> Sequence[LogMessage]:
        """Return the messages of a line, none where it names no fault."""
        if self._form and line.startswith(self._form.further):
            return self._messages.find_messages(line.decode(errors="replace"))
        message = self._form.parse_line(line, self._messages.written_at) if self._form else None
        if message and (self._messages.is_one_fault(message.text) or self._messages.is_unjudged(message)):
            form = line.translate(DIGITS) if self._is_dmesg and len(self._silent) < MOST_FORMS else b""
            if form and form not in self._silent:
                self._silent[form] = self._messages.matcher.says_nothing(message.text)
            if self._silent.get(form):
                return ()
            return (message._replace(lines=self._times[line]) if line in self._times else message,)
        text = line.decode(errors="replace")
        if self._form and not message and line.strip():
            self._tally.unreadable += 1
        messages = self._messages.find_messages(text)
        if message and messages and message.text == messages[0].text:
            return (message, *messages[1:])
        if message and not messages and self._messages.may_name_fault(message.text):
            return (message,)
        if messages:
            return messages  # the form took the head of the message for a program: `n1 NVRM: Xid …`
        return () if self._form else self._messages.find_beginnings(text.rstrip())

    def read_wrapped(self, text: bytes) -> Sequence[LogMessage]:
        """Return the messages of lines that may have been one: as one line, if that names more faults."""
        unreadable = self._tally.unreadable
        best = [message for line in self.find_lines(text) for message in self.read_line(line)]
        most = self._count_faults(best)
        for line in join_lines([line for line in text.split(b"\n") if line]):
            messages = self._messages.find_messages(line.decode(errors="replace"))
            if (count := self._count_faults(messages)) > most:
                best = messages
                most = count
                self._tally.unreadable = unreadable
        return best

    def _count_faults(self, messages: Iterable[LogMessage]) -> tuple[int, int]:
        """Return how many messages name a fault, and how many of these have a time."""
        matcher = self._messages.matcher
        whole = [message for message in messages if not matcher.is_cut(message.text)]
        naming = [message for message in whole if matcher.find_faults(message.text)]
        return len(naming), sum(message.stamp is not None for message in naming)

    def _find_offsets(self, chunk: bytes) -> list[int]:
        is_dmesg = self._dmesg.holds_only_dmesg(chunk)
        offsets = [] if is_dmesg else [match.end() for match in ERROR_LINE.finditer(chunk)]
        if not self._form or holds_written_line_ends(chunk) or not (is_dmesg or self._is_of_form(chunk)):
            return offsets + [match.start() for match in self._messages.head_bytes.finditer(chunk)]
        offsets += [match.start() for match in XID.finditer(chunk)] if b"Xid" in chunk else []
        for word in self._words:
            offsets += [match.start() for match in re.finditer(re.escape(word), chunk)]
        if is_dmesg:
            return offsets + self._dmesg.find_unusual_lines(chunk)
        offsets += [] if self._start.match(chunk) else [0]
        offsets += [match.end() for match in self._foreign.finditer(chunk)]
        return offsets + [match.end() for match in self._heads.finditer(chunk)]

    def _is_of_form(self, chunk: bytes) -> bool:
        """Whether some lines of a chunk, from all over it, are of the form."""
        form = self._form
        for place in range(0, len(chunk), max(1, len(chunk) // PROBED_LINES)):
            start = chunk.find(b"\n", place) + 1 if place else 0
            if place and not start:
                break
            begins = self._start.match(chunk, start) and chunk[start : start + 1].strip()
            if form and begins and not form.line.match(chunk, start):
                return False
        return True


def fold_storm(chunk: bytes) -> tuple[bytes, dict[bytes, int]]:
    """Return a piece without the lines that say within a second what others say, and for how many lines one stands.

    The first and the last of them stay; only the last if the second before has such a line. It stands for all others.
    A piece with a line that tells no second stays whole.
    """
    lines, keys = chunk.split(b"\n"), STORM_LINE.findall(chunk)
    if len(keys) != len(lines) - (not lines[-1]):
        return chunk, {}
    places = range(len(keys))
    many, last = Counter(keys), dict(zip(keys, places, strict=True))
    first = dict(zip(reversed(keys), reversed(places), strict=True))
    seconds = {second: number for number, second in enumerate(dict.fromkeys(second for second, _ in many))}
    newest, kept, times = dict[bytes, int](), set(last.values()), dict[bytes, int]()
    for key, count in many.items():
        second, text = key
        if is_new := seconds[second] - newest.get(text, -2) > 1:
            kept.add(first[key])
        newest[text] = seconds[second]
        if count > 1 + is_new:
            times[lines[last[key]]] = count - is_new
    return b"\n".join([*(lines[place] for place in sorted(kept)), *lines[len(keys) :]]), times
