"""Which fault classes a message of the kernel speaks of, found by its first word or by a word that it holds.

KernelLine: a message of the kernel as a regular expression, with the literal text by which it is found quickly.
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
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return pattern


RegexText = Annotated[str, AfterValidator(_check_regex)]
LiteralText = Annotated[str, Field(min_length=3)]


class KernelLogPattern(StrictModel):
    """Messages that `pattern` matches; its groups `pci` or `part` say which part of the node they speak of.

    Every such message begins with one of `begins`, or holds one of `holds`: a log of a million lines is searched for
    these first. A class without either is looked for in every line, which is right and slow.
    """

    pattern: RegexText
    begins: list[LiteralText] = Field(default=[])
    holds: list[LiteralText] = Field(default=[])

    @model_validator(mode="after")
    def _one_way(self) -> KernelLogPattern:
        if self.begins and self.holds:
            raise ValueError("give begins or holds, not both: a line is looked for in one way")
        return self


XID_PREFIX = "NVRM: Xid"
_XID_NUMBER = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<gpu>[0-9a-fA-F:.]+)\): (?P<xid>\d{1,6})\b"
    r"|SXid \((?:PCI:)?(?P<switch>[0-9a-fA-F:.]+)\): (?P<sxid>\d{1,6})\b"
)


class FaultMention(NamedTuple):
    """A fault by the name under which it comes, and where: at a PCI place, or on a named part; "" for neither."""

    name: str
    pci: str = ""
    part: str = ""


class KernelLogMatcher:
    """The kernel's side of a catalogue, compiled. `begins` and `holds` are what logs are searched for first.

    `patterns` are those of classes that say neither: they are to be looked for in every line.
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
        """Return a regular expression for how messages begin that are looked for by that, first letter by letter."""
        first: dict[str, list[str]] = {}
        for head in self.begins:
            first.setdefault(re.escape(head[0]), []).append(re.escape(head[1:]))
        first.setdefault("n", []).append(r"vidia-nvswitch\d+: SXid")
        alternatives = "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in first.items())
        return f"(?=[{''.join(first)}])(?:{alternatives})"

    def find_faults(self, text: str) -> list[FaultMention]:
        """Return what a message speaks of. It stands without its time, its host and its level."""
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
    """Whether a message began to tell of a XID or SXID and does not say which."""
    return ("NVRM: Xid" in text or ": SXid" in text) and _XID_NUMBER.search(text) is None


def _xid_mention(number: re.Match[str]) -> FaultMention:
    if number["xid"]:
        return FaultMention(f"gpu.xid.{int(number['xid'])}", number["gpu"])
    return FaultMention(f"nvswitch.sxid.{int(number['sxid'])}", number["switch"])


def _class_mentions(classes: Iterable[tuple[str, re.Pattern[str]]], text: str) -> list[FaultMention]:
    found = [(name, match.groupdict()) for name, regex in classes if (match := regex.search(text))]
    return [FaultMention(name, groups.get("pci") or "", groups.get("part") or "") for name, groups in found]
