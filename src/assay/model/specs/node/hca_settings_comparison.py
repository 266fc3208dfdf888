"""Compares the firmware settings that adapters have with those of a node spec.

An adapter is named by its place: an HCA by its PCI address, a NIC by its interface.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from assay.model.specs.node.hca_settings import FirmwareSettingValue, FirmwareSettingValues
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.node.setting_mismatch import format_reading

PRINTED_VALUE = re.compile(r"(.+)\((\d+)\)")


def list_adapters(spec: NodeSpec) -> Iterator[tuple[str, str, FirmwareSettingValues]]:
    """Yield (name, place, declared settings) of the adapters that the spec declares settings of."""
    given = spec.hca_settings
    adapters = [(hca.name, hca.pci.lower(), given.hcas) for hca in spec.hcas]
    adapters += [(nic.name, nic.name, given.nics) for nic in spec.nics]
    for name, place, common in adapters:
        if settings := {**common, **given.by_name.get(name, {})}:
            yield name, place, settings


def format_firmware_setting(wanted: FirmwareSettingValue) -> str:
    """Return a declared value as mstconfig takes it."""
    return str(wanted)


def is_printed_as(wanted: FirmwareSettingValue, seen: str) -> bool:
    """Say whether mstconfig prints a declared value as `seen`: by its name, its number, or both (`ETH(2)`)."""
    found = PRINTED_VALUE.fullmatch(seen)
    names = {name.lower() for name in (seen, *(found.groups() if found else ()))}
    return bool(names & {str(wanted).lower(), *({str(int(wanted))} if isinstance(wanted, bool) else ())})


def list_hca_settings(spec: NodeSpec, tree: Any) -> Iterator[tuple[str, str, str]]:
    """Yield (name, wanted, seen) of every declared firmware setting. `seen` is as wanted only if it stays so."""
    for name, place, settings in list_adapters(spec):
        for setting, wanted in settings.items():
            text = format_firmware_setting(wanted)
            now = format_reading(tree, "adapter_settings", place, setting, "current")
            next_boot = format_reading(tree, "adapter_settings", place, setting, "next_boot")
            yield f"hca_settings.{name}.{setting}", text, _describe(wanted, text, now, next_boot)


def _describe(wanted: FirmwareSettingValue, text: str, now: str, next_boot: str) -> str:
    for seen in (now, next_boot):
        if seen.startswith("(") or seen == "absent":
            return seen
    if not is_printed_as(wanted, now):
        return now if now == next_boot else f"{now}, and {next_boot} from the next boot on"
    return text if is_printed_as(wanted, next_boot) else f"{next_boot} from the next boot on"
