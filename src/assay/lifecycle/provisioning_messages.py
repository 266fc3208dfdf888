"""Formats the ledger entries of Day 0 for people: machines that were seen, how they boot, and what they may join."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.model.entries.entry_content import EntryContent
from assay.model.entries.machine_entries import MachineSeenEntry

SOURCES = {"scan": "a scan", "lease": "a DHCP lease", "report": "a report"}


def _format_seen_machine(entry: MachineSeenEntry, _: str) -> str:
    machine = entry.machine
    kind = " ".join(part for part in (machine.vendor, machine.model) if part)
    named = f"serial {machine.serial}" if machine.serial else f"BMC {machine.bmc_mac or machine.address}"
    where = f", at {machine.address}" if machine.address and machine.serial else ""
    return f"seen by {SOURCES.get(entry.source, entry.source)}: {named}{f', {kind}' if kind else ''}{where}"


PROVISIONING_FORMATTERS: Mapping[type[EntryContent], Callable[[Any, str], str]] = {
    MachineSeenEntry: _format_seen_machine,
}
