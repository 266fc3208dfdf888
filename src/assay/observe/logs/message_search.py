"""Finds the messages in a line, wherever they stand: the message first, its envelope second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from assay.model.log_message import GPU_INTRODUCTION, LogMessage
from assay.model.specs.kernel_log_and_xid_patterns import LEAST_AFTER_WORDS, KernelLogMatcher, is_truncated_xid
from assay.observe.logs.line_envelope import MAX_ENVELOPE, Envelope, peel_line, read_envelope, split_line

XID_ANYWHERE = rb"Xid +\("
XID_HEAD = re.compile(r"NVRM: +Xid|nvidia-nvswitch\d+: SXid")
VALUE = re.compile(r'[:=>,;|\t]\s*"?')
CLOSING_QUOTES = tuple("\"'`")
OPEN_END = re.compile(r"(?:[:,;=(\[-]|(?<![\w-])[a-z]\w*_\w*(?::\d+)?|\(pid \d+\))\s*$|^\w+ \S*\d\S*(?: \S+)?$")
"""A sign after which more must come, the function that writes the message, such as `poll_health:812:(pid 0)`, or the
device that it is of, with one word at most."""
BRACKETS = (("(", ")"), ("[", "]"))
ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
WRITTEN_END = re.compile(
    r"(?:\\+[nr])+|(?:#01[25])+|</?(?:br|p|div|li|pre|tr|td|th)\b[^<>]{0,80}>"
    r"|[\r\n\v\f\x00\x1c-\x1e\x85\u2028\u2029]+"
)
"""The end of a line that a tool wrote as text, so that several lines are one: `#012` of a syslog, `\\n`, `<br>`."""
_BYTE_SIGNS = {b"\\": rb"\\[nr]", b"#": rb"#01[25]", b"<": rb"<(?:/|br|p>|td|tr|li|div)", b"\0": rb"\0"}
BYTE_SIGNS = {first: re.compile(sign) for first, sign in _BYTE_SIGNS.items()}


class MessageSearch:
    """Finds messages that a matcher may match. `written_at`: when the log was last written."""

    def __init__(self, matcher: KernelLogMatcher, written_at: datetime) -> None:
        self.matcher, self.written_at = matcher, written_at
        heads = [matcher.prefix_regex(), *map(re.escape, matcher.holds)]
        self._heads = re.compile(rf"(?<!\w)(?:{'|'.join(heads)})|{XID_HEAD.pattern}")
        self.head_bytes = re.compile(rb"(?<!\w)(?:" + "|".join(heads).encode() + rb")|" + XID_ANYWHERE)

    def find_messages(self, line: str) -> list[LogMessage]:
        """Return the messages of a line that name a fault, one for each that was joined to the line."""
        line = unescape(line.strip())
        if not (self._heads.search(line) or "Xid" in line or self.matcher.patterns):
            return []
        if not may_hold_more(line) and self._find_message(line) is None:
            return []
        parts = [part for text in WRITTEN_END.split(line) for part in self._split_at_heads(text) if part.strip()]
        found = [message for part in parts if (message := self._find_message(part))]
        if not found:  # a message whose parts name no fault
            return [message] if (message := self._find_message(line)) else []
        around = peel_line(line, self.written_at)
        return found if len(parts) == 1 else [_complete(message, around) for message in found]

    def find_cut_message(self, line: str) -> list[LogMessage]:
        """Return the message with which a log breaks off, if it may be the beginning of one that names a fault."""
        line = unescape(line.strip())
        quote = line[-1:]
        if self.find_messages(line) or (quote in CLOSING_QUOTES and line.count(quote) % 2 == 0):
            return []
        starts = {peel_line(line, self.written_at).end, *(found.end() for found in VALUE.finditer(line))}
        begun = self._find_beginnings(line, starts, LEAST_AFTER_WORDS)
        return [message._replace(is_cut=True) for message in begun]

    def find_beginnings(self, line: str) -> list[LogMessage]:
        """Return the message of a line that names no fault, and might if more of it were there."""
        return self._find_beginnings(line, ())

    def _find_beginnings(self, line: str, more_starts: Iterable[int], letters: int = 0) -> list[LogMessage]:
        """Return the first message that may begin a fault, at a head or at one of these places."""
        starts = sorted({*more_starts, *(found.start() for found in self._heads.finditer(line))})
        texts = ((start, line[start:]) for start in starts)
        needed = ((start, text, 0 if ends_openly(text) else letters) for start, text in texts)
        begun = next((start for start, text, some in needed if self.matcher.may_begin_fault(text, some)), None)
        return [] if begun is None else [read_envelope(line, begun, self.written_at).make_message(line[begun:])]

    def split_line(self, line: str) -> LogMessage:
        """Return the message of any line in which no fault is named."""
        return split_line(unescape(line.strip()), self.written_at)

    def may_name_fault(self, text: str) -> bool:
        """Whether a message begins as those of faults do, or names an XID anywhere."""
        return self._heads.match(text) is not None or ("xid " in text.lower() and self.names_fault(text))

    def is_one_fault(self, text: str) -> bool:
        """Whether a message begins as those of faults do, and holds no further one: quick, and false too often."""
        return self._heads.match(text) is not None and not may_hold_more(text)

    def names_fault(self, text: str) -> bool:
        """Whether a message names a fault, announces an XID without its number, or begins to tell one."""
        return bool(self.matcher.find_faults(text)) or is_truncated_xid(text) or text.startswith(GPU_INTRODUCTION)

    def _split_at_heads(self, part: str) -> Iterator[str]:
        """Yield a part of a line cut before each further message that begins within it, without a cut before it."""
        start = last = -1
        for found in self._heads.finditer(part):
            at = found.start()
            if last >= 0 and self._is_further(part, last, at):
                yield part[max(start, 0) : at].rstrip()
                start = at
            last = at
        yield part[max(start, 0) :]

    def _is_further(self, part: str, last: int, at: int) -> bool:
        """Whether the message that begins at `last` ends at `at`: what stands before and after it names a fault."""
        before = part[max(at - 8, 0) : at].rstrip()
        begins = XID_HEAD.match(part, at) or before.endswith("kernel:") or not before.endswith(":")
        return bool(begins) and self.names_fault(part[last:at]) and self.names_fault(part[at : at + MAX_ENVELOPE])

    def _find_message(self, line: str) -> LogMessage | None:
        """Return the message of a line that names a fault, None where none does.

        A message at which the layers of the line end goes before one with unknown words in front of it.
        """
        others = []
        for start in [found.start() for found in self._heads.finditer(line)]:
            if not self.names_fault(line[start : start + MAX_ENVELOPE]):
                continue
            text = line[start:]
            envelope = read_envelope(line, start, self.written_at)
            if envelope.is_clean:
                return envelope.make_message(text)
            others.append(envelope.make_message(text))
        if others:
            return others[0]
        if self.names_fault(line):
            message = split_line(line, self.written_at)
            return message if self.names_fault(message.text) else LogMessage(line)
        return None


def holds_written_line_ends(piece: bytes) -> bool:
    """Whether a line end was written as text in a piece of a log: quick, since few have its first letter."""
    return any(first in piece and sign.search(piece) for first, sign in BYTE_SIGNS.items())


def may_hold_more(text: str) -> bool:
    """Whether a text may hold a further message: quick, true too often, and false for one that follows on a blank."""
    holds_sign = "[" in text or "\\" in text or "#01" in text or "</" in text or "<br" in text or "kernel: " in text
    return holds_sign or text.find("NVRM: ", 1) > 0 or text.find("-nvswitch", 20) > 0 or not text.isprintable()


def ends_openly(text: str) -> bool:
    """Whether a text ends where no message does: within brackets, or before what it says."""
    return OPEN_END.search(text) is not None or any(text.count(opens) > text.count(ends) for opens, ends in BRACKETS)


def unescape(text: str) -> str:
    r"""Return text in which the kernel's `\x1b` is a character again."""
    return ESCAPED.sub(lambda code: chr(int(code[1], 16)), text) if "\\x" in text else text


def _complete(message: LogMessage, around: Envelope) -> LogMessage:
    """Return a message of a joined line with what stands before the whole line, where it does not say it itself."""
    if message.stamp is None:
        told = around.make_message("")
        message = message._replace(at=told.at, stamp=told.stamp, uptime_s=told.uptime_s)
    elif message.wall is None and around.wall:
        message = message._replace(at=around.wall[0], stamp=around.wall[1])
    return message._replace(host=message.host or around.host, program=message.program or around.program)
