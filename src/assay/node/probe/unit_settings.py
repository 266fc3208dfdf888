"""Reads settings of systemd's units that the caller names: those that the node's spec declares."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model.reading import ReadingTree, absent, failed, unsupported, value
from assay.node.probe.node_access import run_tool

SYSTEMCTL_S = 2.5


def read_unit_settings(names: Sequence[str]) -> ReadingTree:
    """Return the settings named as `unit/Setting`, by unit, as systemd has them loaded."""
    wanted: dict[str, list[str]] = {}
    for name in names:
        unit, _, setting = name.partition("/")
        wanted.setdefault(unit, []).append(setting)
    properties = [
        "LoadState",
        *sorted({one for settings in wanted.values() for name in settings for one in _spell(name)}),
    ]
    command = ["systemctl", "show", "--no-pager", f"--property={','.join(properties)}", *wanted]
    return run_tool(command, SYSTEMCTL_S, lambda text: parse_unit_settings(text, wanted))


def _spell(setting: str) -> tuple[str, ...]:
    """Return the names that systemd may show a setting by: `TimeoutStopSec` is its property `TimeoutStopUSec`."""
    return (setting, f"{setting[:-3]}USec") if setting.endswith("Sec") else (setting,)


def parse_unit_settings(text: str, wanted: dict[str, list[str]]) -> ReadingTree:
    """Parse `systemctl show`: a block of `Name=value` for each unit, in the order of the units."""
    blocks = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n")]
    known = [block for block in blocks if "LoadState" in block]
    if len(known) != len(wanted):
        return failed(f"systemctl: {(text.strip().splitlines() or ['it printed nothing'])[-1][:120]}")
    return {unit: _read_block(unit, wanted[unit], block) for unit, block in zip(wanted, known, strict=True)}


def _read_block(unit: str, settings: list[str], block: dict[str, str]) -> ReadingTree:
    if block["LoadState"] != "loaded":
        return absent(f"{unit} is not loaded: {block['LoadState']}")
    return {setting: _read_setting(unit, setting, block) for setting in settings}


def _read_setting(unit: str, setting: str, block: dict[str, str]) -> ReadingTree:
    shown = next((block[name] for name in _spell(setting) if name in block), None)
    return unsupported(f"systemd shows no {setting} of {unit}") if shown is None else value(shown)
