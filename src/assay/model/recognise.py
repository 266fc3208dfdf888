"""Which fault classes a message of the kernel speaks of, found by its first word or by a word that it holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from assay.model.kernel_line import KernelLine

XID = "NVRM: Xid"
_NUMBERED = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<gpu>[0-9a-fA-F:.]+)\): (?P<xid>\d{1,6})\b"
    r"|SXid \((?:PCI:)?(?P<switch>[0-9a-fA-F:.]+)\): (?P<sxid>\d{1,6})\b"
)


class Found(NamedTuple):
    """A fault by the name under which it comes, and where: at a PCI place, or on a named part; "" for neither."""

    name: str
    pci: str = ""
    part: str = ""


class Recogniser:
    """The kernel's side of a catalogue, compiled. `begins` and `holds` are what logs are searched for first.

    `patterns` are those of classes that say neither: they are to be looked for in every line.
    """

    def __init__(self, lines: Mapping[str, KernelLine]) -> None:
        compiled = [(name, line, re.compile(line.pattern)) for name, line in lines.items()]
        heads = {head for _, line, _ in compiled for head in line.begins}
        self.begins: tuple[str, ...] = tuple(sorted({XID, *heads}, key=lambda head: (-len(head), head)))
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

    def beginning(self) -> str:
        """Return a regular expression for how messages begin that are looked for by that, first letter by letter."""
        first: dict[str, list[str]] = {}
        for head in self.begins:
            first.setdefault(re.escape(head[0]), []).append(re.escape(head[1:]))
        first.setdefault("n", []).append(r"vidia-nvswitch\d+: SXid")
        alternatives = "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in first.items())
        return f"(?=[{''.join(first)}])(?:{alternatives})"

    def in_message(self, text: str) -> list[Found]:
        """Return what a message speaks of. It stands without its time, its host and its level."""
        found = []
        if "Xid (" in text and (number := _NUMBERED.search(text)):
            found.append(_numbered(number))
        head = self._head.match(text)
        if head:
            found += _matching(self._by_head[head[0]], text)
        for word, classes in self._by_word:
            if word in text:
                found += _matching(classes, text)
        return found + _matching(self.patterns, text) if self.patterns else found


def broken(text: str) -> bool:
    """Whether a message began to tell of a XID or SXID and does not say which."""
    return ("NVRM: Xid" in text or ": SXid" in text) and _NUMBERED.search(text) is None


def _numbered(number: re.Match[str]) -> Found:
    if number["xid"]:
        return Found(f"gpu.xid.{int(number['xid'])}", number["gpu"])
    return Found(f"nvswitch.sxid.{int(number['sxid'])}", number["switch"])


def _matching(classes: Iterable[tuple[str, re.Pattern[str]]], text: str) -> list[Found]:
    found = [(name, match.groupdict()) for name, regex in classes if (match := regex.search(text))]
    return [Found(name, groups.get("pci") or "", groups.get("part") or "") for name, groups in found]
