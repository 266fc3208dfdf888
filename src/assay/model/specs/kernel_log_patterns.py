"""Patterns of kernel log messages, compiled so that a log of a million lines is searched fast.

A message is found by how it begins or by a word that it contains; only then is its regular expression applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field, model_validator

from assay.model.specs.spec_document import StrictModel


def _check_regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


RegexText = Annotated[str, AfterValidator(_check_regex)]
LiteralText = Annotated[str, Field(min_length=3)]


class KernelLogPattern(StrictModel):
    """Messages that match the regular expression `pattern`. Its groups `pci` or `part` name the affected part.

    Every such message must begin with one of `begins`, or contain one of `holds`: logs are searched for these first.
    Without either, every line is matched, which is correct and slow.
    """

    pattern: RegexText
    begins: list[LiteralText] = Field(default=[])
    holds: list[LiteralText] = Field(default=[])

    @model_validator(mode="after")
    def _begins_or_holds(self) -> KernelLogPattern:
        if self.begins and self.holds:
            raise ValueError("give begins or holds, not both: a line is searched for in one way")
        return self


XID_PREFIX = "NVRM: Xid"
_XID_NUMBER = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<gpu>[0-9a-fA-F:.]+)\): (?P<xid>\d{1,6})\b"
    r"|SXid \((?:PCI:)?(?P<switch>[0-9a-fA-F:.]+)\): (?P<sxid>\d{1,6})\b"
)


class FaultMention(NamedTuple):
    """A fault that a message names, and where: at a PCI address, or on a named part; "" if not given."""

    name: str
    pci: str = ""
    part: str = ""


class KernelLogMatcher:
    """The kernel log patterns of a catalogue, compiled. Logs are searched for `begins` and `holds` first.

    `patterns` belong to classes without `begins` and `holds` and must be matched with every line.
    """

    def __init__(self, lines: Mapping[str, KernelLogPattern]) -> None:
        compiled = [(name, line, re.compile(line.pattern)) for name, line in lines.items()]
        heads = {head for _, line, _ in compiled for head in line.begins}
        self.begins: tuple[str, ...] = tuple(sorted({XID_PREFIX, *heads}, key=lambda head: (-len(head), head)))
        words = {word for _, line, _ in compiled for word in line.holds}
        self.holds: tuple[str, ...] = tuple(sorted(words))
        self.patterns = tuple((name, regex) for name, line, regex in compiled if not (line.begins or line.holds))
        self._head = re.compile("|".join(map(re.escape, self.begins)))
        self._by_head = {
            head: [(name, regex) for name, line, regex in compiled if head.startswith(tuple(line.begins))]
            for head in self.begins
        }
        self._by_word = [
            (word, [(name, regex) for name, line, regex in compiled if word in line.holds]) for word in self.holds
        ]

    def prefix_regex(self) -> str:
        """Return a regular expression for the beginnings of messages, grouped by first letter for speed."""
        first: dict[str, list[str]] = {}
        for head in self.begins:
            first.setdefault(re.escape(head[0]), []).append(re.escape(head[1:]))
        first.setdefault("n", []).append(r"vidia-nvswitch\d+: SXid")
        alternatives = "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in first.items())
        return f"(?=[{''.join(first)}])(?:{alternatives})"

    def find_faults(self, text: str) -> list[FaultMention]:
        """Return the faults that a message names. `text` is without time, host and level."""
        found = []
        if "Xid (" in text and (number := _XID_NUMBER.search(text)):
            found.append(_xid_mention(number))
        head = self._head.match(text)
        if head:
            found += _class_mentions(self._by_head[head[0]], text)
        for word, classes in self._by_word:
            if word in text:
                found += _class_mentions(classes, text)
        return found + _class_mentions(self.patterns, text) if self.patterns else found


def is_truncated_xid(text: str) -> bool:
    """Whether a message announces an XID or SXID without its number."""
    return ("NVRM: Xid" in text or ": SXid" in text) and _XID_NUMBER.search(text) is None


def _xid_mention(number: re.Match[str]) -> FaultMention:
    if number["xid"]:
        return FaultMention(f"gpu.xid.{int(number['xid'])}", number["gpu"])
    return FaultMention(f"nvswitch.sxid.{int(number['sxid'])}", number["switch"])


def _class_mentions(classes: Iterable[tuple[str, re.Pattern[str]]], text: str) -> list[FaultMention]:
    found = [(name, match.groupdict()) for name, regex in classes if (match := regex.search(text))]
    return [FaultMention(name, groups.get("pci") or "", groups.get("part") or "") for name, groups in found]
