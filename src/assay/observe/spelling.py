"""The one place where vendors' ids and versions of firmware become ours, so that equal firmware reads equal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.model.quirks import FirmwareRule

_SLOT = re.compile(r"\{(\w+?)(\+1)?\}")
_BYTE = re.compile(r"(?:0x)?([0-9a-fA-F]{2})(?=[\s.:-]|$)")
_PLAIN = FirmwareRule(id=".*")


@dataclass(frozen=True, slots=True)
class Spelled:
    """One entry of a firmware inventory: our id of the part, its version ("" where none is told), what it is."""

    part: str
    version: str
    pending: bool = False
    leave_out: bool = False


def spelled(ident: str, version: object, rules: Sequence[FirmwareRule]) -> Spelled:
    """Return an entry by the first rule that fits its whole id; by none, the id and the version without blanks."""
    for rule in rules:
        if match := re.fullmatch(rule.id, ident):
            text = _text(ident if rule.version_in == "id" else version)
            return Spelled(_part(rule, match), _version(rule, text), rule.pending, rule.leave_out)
    return Spelled(ident, _version(_PLAIN, _text(version)))


def _text(version: object) -> str:
    return "" if version is None else " ".join(str(version).split())


def _part(rule: FirmwareRule, match: re.Match[str]) -> str:
    def filled(slot: re.Match[str]) -> str:
        found = match[slot[1]]
        return str(int(found) + 1) if slot[2] else found

    return _SLOT.sub(filled, rule.part) if rule.part else match[0]


def _version(rule: FirmwareRule, text: str) -> str:
    if rule.version:
        found = re.search(rule.version, text)
        text = found["version"] if found else ""
    if rule.hex_bytes and (found_bytes := _BYTE.findall(text)):
        text = ".".join(str(int(byte, 16)) for byte in found_bytes)
    return re.sub(r"(?<![0-9A-Za-z])0+(?=[0-9])", "", text) if rule.unpadded else text
