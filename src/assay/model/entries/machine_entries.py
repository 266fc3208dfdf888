"""Entries about machines that are seen before they are nodes: what their BMC, or its DHCP request, says of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.model.entries.entry_content import EntryContent, stored_as
from assay.model.specs.seen_machine import SeenMachine


@dataclass(frozen=True, slots=True)
class MachineSeenEntry(EntryContent):
    """A machine was seen, or says something else of itself than before. `source`: `scan`, `lease` or `report`."""

    kind = "machine.seen"
    machine: SeenMachine = field(metadata=stored_as(parse=SeenMachine.from_json, encode=SeenMachine.as_json))
    source: str


@dataclass(frozen=True, slots=True)
class BmcTakeoverEntry(EntryContent):
    """The factory login of a node's BMC is changed to the one that the inventory declares.

    `step`: `started` before the change, then `done` or `failed` with its `reason`. `serial`: of the machine. `account`,
    `factory_account`: user names.
    """

    kind = "bmc.takeover"
    step: str
    serial: str
    account: str
    factory_account: str
    reason: str = field(default="", metadata=stored_as(missing="", omit_empty=True))
