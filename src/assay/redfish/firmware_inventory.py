"""The one place where vendors' ids and versions of firmware become ours, so that equal firmware reads equal.

The firmware inventory of a BMC, in our ids and spelling.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assay.model.reading import ReadingTree, failed, value
from assay.model.specs.bmc_quirks import FirmwareSpellingRule
from assay.redfish.property_readings import Resource
from assay.redfish.session import RedfishSession

_SLOT = re.compile(r"\{(\w+?)(\+1)?\}")
_BYTE = re.compile(r"(?:0x)?([0-9a-fA-F]{2})(?=[\s.:-]|$)")
_PLAIN = FirmwareSpellingRule(id=".*")


@dataclass(frozen=True, slots=True)
class FirmwareEntry:
    """One entry of a firmware inventory: our id of the part, its version ("" where none is told), what it is."""

    part: str
    version: str
    pending: bool = False
    leave_out: bool = False


def normalize_firmware_entry(ident: str, version: object, rules: Sequence[FirmwareSpellingRule]) -> FirmwareEntry:
    """Return an entry by the first rule that fits its whole id; by none, the id and the version without blanks."""
    for rule in rules:
        if match := re.fullmatch(rule.id, ident):
            text = _text(ident if rule.version_in == "id" else version)
            return FirmwareEntry(_part(rule, match), _version(rule, text), rule.pending, rule.leave_out)
    return FirmwareEntry(ident, _version(_PLAIN, _text(version)))


def _text(version: object) -> str:
    return "" if version is None else " ".join(str(version).split())


def _part(rule: FirmwareSpellingRule, match: re.Match[str]) -> str:
    def filled(slot: re.Match[str]) -> str:
        found = match[slot[1]]
        return str(int(found) + 1) if slot[2] else found

    return _SLOT.sub(filled, rule.part) if rule.part else match[0]


def _version(rule: FirmwareSpellingRule, text: str) -> str:
    if rule.version:
        found = re.search(rule.version, text)
        text = found["version"] if found else ""
    if rule.hex_bytes and (found_bytes := _BYTE.findall(text)):
        text = ".".join(str(int(byte, 16)) for byte in found_bytes)
    return re.sub(r"(?<![0-9A-Za-z])0+(?=[0-9])", "", text) if rule.unpadded else text


class FirmwareInventory(NamedTuple):
    """What runs, id → reading of its version; what waits for a reset, id → reading; id → the BMC's own resource."""

    running: ReadingTree
    pending: ReadingTree
    paths: dict[str, str]


def read_firmware_inventory(bmc: RedfishSession) -> FirmwareInventory:
    """Return the inventory. Raises Trouble where there is none to read.

    A part that is listed twice is read once where both say the same; where they do not, that is what it reads.
    """
    service = bmc.follow(bmc.root, "UpdateService")
    found = FirmwareInventory({}, {}, {})
    for item in bmc.members(bmc.follow(service, "FirmwareInventory", 1)):
        _take(found, item, bmc)
    return found


def _take(found: FirmwareInventory, item: Resource, bmc: RedfishSession) -> None:
    ident = str(item.get("Id"))
    one = normalize_firmware_entry(ident, item.get("Version"), bmc.dialect.firmware)
    if one.leave_out or (one.pending and not one.version):  # an empty entry for what could wait says that nothing does
        return
    if one.pending:
        found.pending[one.part] = value(one.version)
        return
    reading = value(one.version) if one.version else failed("the BMC lists this part without a version")
    other = found.running.get(one.part)
    if other is not None and other != reading and "value" in other and "value" in reading:
        reading = failed(f"the BMC lists {one.part} twice, as {other['value']} and as {one.version}")
    elif other is not None and "value" in other:
        reading = other
    found.running[one.part] = reading
    found.paths.setdefault(one.part, str(item.get("@odata.id")))
