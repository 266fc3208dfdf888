"""Reads a BMC's firmware inventory, with vendors' ids and versions normalized so that equal firmware compares equal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.reading import ReadingTree, failed, value
from assay.model.specs.bmc_quirks import FirmwareSpellingRule

_PLACEHOLDER = re.compile(r"\{(\w+?)(\+1)?\}")
_HEX_BYTE = re.compile(r"(?:0x)?([0-9a-fA-F]{2})(?=[\s.:-]|$)")
_NO_RULE = FirmwareSpellingRule(id=".*")


class FirmwareInventory(NamedTuple):
    """`running` and `pending` (until a reset): id → reading of the version. `paths`: id → path of the resource."""

    running: ReadingTree
    pending: ReadingTree
    paths: dict[str, str]


@dataclass(frozen=True, slots=True)
class FirmwareEntry:
    """One entry of a firmware inventory: our id of the part and its version, "" where the BMC gives none.

    `pending` marks a version that the next reset activates, `leave_out` an entry that is no firmware of a part.
    """

    part: str
    version: str
    pending: bool = False
    leave_out: bool = False


def read_firmware_inventory(bmc: RedfishSession) -> FirmwareInventory:
    """Return the inventory. Raises AssayError where the BMC shows none.

    A part that is listed twice has one reading; it is failed where the two versions differ.
    """
    service = bmc.follow(bmc.root, "UpdateService")
    inventory = FirmwareInventory({}, {}, {})
    for item in bmc.members(bmc.follow(service, "FirmwareInventory", 1)):
        _add_item(inventory, item, bmc)
    return inventory


def _add_item(inventory: FirmwareInventory, item: Resource, bmc: RedfishSession) -> None:
    entry = normalize_firmware_entry(str(item.get("Id")), item.get("Version"), bmc.dialect.firmware)
    if entry.leave_out or (entry.pending and not entry.version):  # a pending entry without a version: none is pending
        return
    if entry.pending:
        inventory.pending[entry.part] = value(entry.version)
        return
    reading = value(entry.version) if entry.version else failed("the BMC lists this part without a version")
    other = inventory.running.get(entry.part)
    if other is not None and other != reading and "value" in other and "value" in reading:
        reading = failed(f"the BMC lists {entry.part} twice, as {other['value']} and as {entry.version}")
    elif other is not None and "value" in other:
        reading = other
    inventory.running[entry.part] = reading
    inventory.paths.setdefault(entry.part, str(item.get("@odata.id")))


def normalize_firmware_entry(ident: str, version: object, rules: Sequence[FirmwareSpellingRule]) -> FirmwareEntry:
    """Return an entry by the first rule whose pattern matches its whole id, else with its id unchanged.

    Blanks around and between the words of a version are normalized.
    """
    for rule in rules:
        if match := re.fullmatch(rule.id, ident):
            text = _text(ident if rule.version_in == "id" else version)
            return FirmwareEntry(_part(rule, match), _version(rule, text), rule.pending, rule.leave_out)
    return FirmwareEntry(ident, _version(_NO_RULE, _text(version)))


def _text(version: object) -> str:
    return "" if version is None else " ".join(str(version).split())


def _part(rule: FirmwareSpellingRule, match: re.Match[str]) -> str:
    """Return the rule's part, its placeholders filled: `{n}` by the id's group n, `{n+1}` by that number plus one."""

    def fill(placeholder: re.Match[str]) -> str:
        group = match[placeholder[1]]
        return str(int(group) + 1) if placeholder[2] else group

    return _PLACEHOLDER.sub(fill, rule.part) if rule.part else match[0]


def _version(rule: FirmwareSpellingRule, text: str) -> str:
    if rule.version:
        found = re.search(rule.version, text)
        text = found["version"] if found else ""
    if rule.hex_bytes and (hex_bytes := _HEX_BYTE.findall(text)):
        text = ".".join(str(int(byte, 16)) for byte in hex_bytes)
    return re.sub(r"(?<![0-9A-Za-z])0+(?=[0-9])", "", text) if rule.unpadded else text
