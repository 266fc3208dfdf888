"""Formats the ledger entries of Day 0 for people: machines that were seen, how they boot, and what they may join."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.model.entries.boot_entries import BootFailedEntry, BootStageEntry, BootStartedEntry
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.join_entries import JoinIssuedEntry, JoinRefusedEntry, JoinRevokedEntry, JoinUsedEntry
from assay.model.entries.machine_entries import BmcTakeoverEntry, MachineSeenEntry
from assay.model.timestamps import parse_time

SOURCES = {"scan": "a scan", "lease": "a DHCP lease", "report": "a report"}


def _format_seen_machine(entry: MachineSeenEntry, _: str) -> str:
    machine = entry.machine
    kind = " ".join(part for part in (machine.vendor, machine.model) if part)
    named = f"serial {machine.serial}" if machine.serial else f"BMC {machine.bmc_mac or machine.address}"
    where = f", at {machine.address}" if machine.address and machine.serial else ""
    return f"seen by {SOURCES.get(entry.source, entry.source)}: {named}{f', {kind}' if kind else ''}{where}"


def _format_issued_token(entry: JoinIssuedEntry, _: str) -> str:
    until = f"{parse_time(entry.expires_at):%Y-%m-%d %H:%M:%S} UTC"
    return f"got a one-time token for {entry.purpose}, good until {until} (proven by {entry.proven_by})"


def _format_used_token(entry: JoinUsedEntry, _: str) -> str:
    return f"used its one-time token for {entry.purpose}"


def _format_refused_token(entry: JoinRefusedEntry, _: str) -> str:
    return f"was refused to join {entry.purpose}: {entry.why}"


def _format_revoked_token(entry: JoinRevokedEntry, _: str) -> str:
    return f"its one-time token for {entry.purpose} is revoked: {entry.why}"


def _format_boot_start(entry: BootStartedEntry, _: str) -> str:
    why = "" if entry.effect else ", by itself"
    return f"starts with image {entry.image} ({entry.image_version}){why}"


def _format_boot_stage(entry: BootStageEntry, _: str) -> str:
    proof = f", proven by {entry.proven_by}" if entry.proven_by else ""
    return f"its start reached {entry.stage}{proof}{f': {entry.words}' if entry.words else ''}"


def _format_boot_failure(entry: BootFailedEntry, _: str) -> str:
    return f"its start failed after {entry.stage or 'the power-on'}: {entry.reason}"


def _format_takeover(entry: BmcTakeoverEntry, _: str) -> str:
    if entry.step == "started":
        return f"its BMC's factory login {entry.factory_account} is being changed to {entry.account}"
    if entry.step == "failed":
        return f"its BMC's factory login {entry.factory_account} was not changed for certain: {entry.reason}"
    return f"its BMC accepts {entry.account}, and refuses the factory login {entry.factory_account}"


PROVISIONING_FORMATTERS: Mapping[type[EntryContent], Callable[[Any, str], str]] = {
    MachineSeenEntry: _format_seen_machine,
    BmcTakeoverEntry: _format_takeover,
    JoinIssuedEntry: _format_issued_token,
    JoinUsedEntry: _format_used_token,
    JoinRefusedEntry: _format_refused_token,
    JoinRevokedEntry: _format_revoked_token,
    BootStartedEntry: _format_boot_start,
    BootStageEntry: _format_boot_stage,
    BootFailedEntry: _format_boot_failure,
}
