"""Tells whether a message stands in a text as an example: the words before it say so.

A log that somebody pasted into a ticket has other words before it, or none. Where both are possible, nobody can tell,
and the message is not counted but told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from assay.observe.logs.line_envelope import split_line

_SAYS = "see|say|show|print|look|log|read|report|appear|contain|find|be (?:logged|printed|reported|seen|shown)"
EXAMPLE = re.compile(
    r"(?i:(?<![\w.-])(?:for (?:example|instance)|e\.\s?g\.|such as|examples?|samples?"
    r"|looks? (?:something |somewhat )?like"
    r"|(?:something|anything|lines?|messages?|errors?|entry|entries|output) (?:like|similar to|of the form)"
    rf"|like (?:this|these|the following)|(?:would|might|could|may|will|should|can) (?:then )?(?:{_SAYS})"
    r"|if (?:you|it|dmesg|the|a|an|any)\b|whenever|in case|typical(?:ly)?|hypothetical(?:ly)?|suppose|imagine"
    r"|(?:search|look|grep|watch) for)(?![\w-]|\.\w))"
)
"""Words with which people introduce what a log may say."""
LINES_BEFORE = 12
LETTERS_BEFORE = 4096
LONGEST_PARAGRAPH = 5
_FENCE = re.compile(r"\s*(?:```|~~~|[>|]*\s*$)")
_MESSAGE = re.compile(r"(?i:nvrm: |nvidia-nvswitch\d)")


def speaks_of_examples(sample: Sequence[bytes], written_at: datetime) -> bool:
    """Return whether a line among a document's first ones speaks of an example, and is no line of a log."""
    lines = (line.decode(errors="replace") for line in sample if len(line) <= LETTERS_BEFORE)
    return any(EXAMPLE.search(line) and not _is_of_log(line, written_at) for line in lines)


def is_example(before: Sequence[str], written_at: datetime) -> bool:
    """Return whether the words nearest before a message, above the lines of its log, speak of an example."""
    paragraph = list(_read_paragraph(before[-LINES_BEFORE:], written_at))
    return any(EXAMPLE.search(line) for line in paragraph)


def _read_paragraph(before: Sequence[str], written_at: datetime) -> Iterator[str]:
    """Yield the last lines of words, the last first, up to a blank line above them."""
    told = 0
    for line in reversed(before):
        if _FENCE.match(line) or _is_of_log(line, written_at):
            if told:
                return
        else:
            told += 1
            yield line
            if told == LONGEST_PARAGRAPH:
                return


def _is_of_log(line: str, written_at: datetime) -> bool:
    return _MESSAGE.search(line) is not None or split_line(line.strip(), written_at).stamp is not None
