"""Finds a message in a line, wherever it stands: the message first, its envelope second."""

from __future__ import annotations

import re
from datetime import datetime

from assay.model.log_message import GPU_INTRODUCTION, LogMessage
from assay.model.specs.kernel_log_and_xid_patterns import KernelLogMatcher, is_truncated_xid
from assay.observe.logs.line_envelope import read_envelope, split_line

XID_ANYWHERE = rb"Xid \("
ESCAPED = re.compile(r"\\x([0-9a-f]{2})")


class MessageSearch:
    """Finds messages that a matcher may match. `written_at`: when the log was last written."""

    def __init__(self, matcher: KernelLogMatcher, written_at: datetime) -> None:
        self.matcher, self.written_at = matcher, written_at
        heads = [matcher.prefix_regex(), *map(re.escape, matcher.holds)]
        self._heads = re.compile(rf"(?<!\w)(?:{'|'.join(heads)})")
        self.head_bytes = re.compile(rb"(?<!\w)(?:" + "|".join(heads).encode() + rb")|" + XID_ANYWHERE)

    def find_message(self, line: str) -> LogMessage | None:
        """Return the message of a line that names a fault, None where none does.

        A message at which the layers of the line end goes before one with unknown words in front of it.
        """
        line = unescape(line.strip())
        others = []
        for start in [found.start() for found in self._heads.finditer(line)]:
            text = line[start:]
            if not self.names_fault(text):
                continue
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

    def split_line(self, line: str) -> LogMessage:
        """Return the message of any line."""
        return self.find_message(line) or split_line(unescape(line.strip()), self.written_at)

    def may_name_fault(self, text: str) -> bool:
        """Whether a message begins as those of faults do, or names an XID anywhere."""
        return self._heads.match(text) is not None or ("Xid (" in text and self.names_fault(text))

    def names_fault(self, text: str) -> bool:
        """Whether a message names a fault, announces an XID without its number, or begins to tell one."""
        return bool(self.matcher.find_faults(text)) or is_truncated_xid(text) or text.startswith(GPU_INTRODUCTION)


def unescape(text: str) -> str:
    r"""Return text in which the kernel's `\x1b` is a character again."""
    return ESCAPED.sub(lambda code: chr(int(code[1], 16)), text) if "\\x" in text else text
