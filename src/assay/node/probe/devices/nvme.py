"""Reads NVMe drives from sysfs, and their SMART logs through nvme-cli or smartctl.

Source of the log's fields: NVM Express Base Specification, SMART / Health Information.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, unsupported, value
from assay.node.probe.node_access import LazyTree, NodeRoot, TimedQuestion, leaf_for_error, run_tool

NVME_CLASS = "/sys/class/nvme"
SECTOR = 512  # bytes; sysfs counts sizes in these, for any block size of the drive
NAMESPACE = re.compile(r"nvme\d+(c\d+)?n\d+")

SMART_S = 4.0
TOOL_S = 1.8
KELVIN = 273
SMART_FIELDS = {  # reading → the name in nvme-cli, the name in smartctl
    "critical_warning": ("critical_warning", "critical_warning"),
    "media_errors": ("media_errors", "media_errors"),
    "used_percent": ("percent_used", "percentage_used"),
    "spare_percent": ("avail_spare", "available_spare"),
    "spare_threshold_percent": ("spare_thresh", "available_spare_threshold"),
    "temperature_c": ("temperature", "temperature"),
    "unsafe_shutdowns": ("unsafe_shutdowns", "unsafe_shutdowns"),
    "power_on_hours": ("power_on_hours", "power_on_hours"),
}


def read_drives(root: NodeRoot) -> LazyTree:
    """Return the `nvme` branch, controllers by name."""
    try:
        names = root.list_names(NVME_CLASS)
    except OSError as error:
        return leaf_for_error(NVME_CLASS, error)
    return {name: _drive(root, name) for name in names} or absent(f"{NVME_CLASS} is empty")


def _drive(root: NodeRoot, name: str) -> LazyTree:
    folder = f"{NVME_CLASS}/{name}"
    return {
        "model": root.defer_read(f"{folder}/model"),
        "serial": root.defer_read(f"{folder}/serial"),
        "firmware": root.defer_read(f"{folder}/firmware_rev"),
        "size_bytes": partial(_size, root, name),
        "state": root.defer_read(f"{folder}/state"),
        "transport": root.defer_read(f"{folder}/transport"),
        "pci": root.defer_read(f"{folder}/address", str.lower),
        "smart": TimedQuestion(SMART_S, partial(read_smart, name)),
    }


def list_namespaces(root: NodeRoot, drive: str) -> list[str]:
    """Return the names of a drive's namespaces, `nvme0n1`. Raises OSError where the drive is missing."""
    return [name for name in root.list_names(f"{NVME_CLASS}/{drive}") if NAMESPACE.fullmatch(name)]


def _size(root: NodeRoot, drive: str) -> ReadingTree:
    """Return the size of all namespaces together; where one cannot be read, its leaf."""
    folder = f"{NVME_CLASS}/{drive}"
    try:
        found = list_namespaces(root, drive)
    except OSError as error:
        return leaf_for_error(folder, error)
    sizes = [root.read_leaf(f"{folder}/{name}/size", int) for name in found]
    unreadable = [size for size in sizes if "value" not in size]
    if not sizes or unreadable:
        return unreadable[0] if unreadable else absent(f"{folder} has no namespace")
    return value(sum(size["value"] for size in sizes) * SECTOR)


def read_smart(drive: str) -> ReadingTree:
    """Return the `smart` branch of a drive, by nvme-cli or else by smartctl. Both need root."""
    device = f"/dev/{drive}"
    found = run_tool(["nvme", "smart-log", "--output-format=json", device], TOOL_S, parse_nvme_cli)
    if "absent" in found:
        found = run_tool(["smartctl", "--json", "--all", device], TOOL_S, parse_smartctl)
    if "absent" in found:
        return unsupported("neither nvme nor smartctl is installed; install nvme-cli or smartmontools")
    return found


def parse_nvme_cli(text: str) -> ReadingTree:
    """Parse `nvme smart-log -o json`. Its temperature is in kelvins."""
    log = find_json_object(text)
    if log is None or "avail_spare" not in log:
        return describe_missing_log("nvme", text)
    branch = {name: _number(log, theirs) for name, (theirs, _) in SMART_FIELDS.items()}
    return branch | {"temperature_c": _celsius(branch["temperature_c"])}


def parse_smartctl(text: str) -> ReadingTree:
    """Parse `smartctl -j -a`."""
    log = (find_json_object(text) or {}).get("nvme_smart_health_information_log")
    if not isinstance(log, Mapping):
        return describe_missing_log("smartctl", text)
    return {name: _number(log, theirs) for name, (_, theirs) in SMART_FIELDS.items()}


def find_json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a tool's output, None where there is none. Warnings may come before it."""
    try:
        found, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _number(log: Mapping[str, Any], name: str) -> ReadingTree:
    """Return one field. nvme-cli may write the warning as an object with its bits, and large counts as text."""
    field = log.get(name)
    field = field.get("value") if isinstance(field, Mapping) else field
    if field is None:
        return absent(f"the log has no {name}")
    if isinstance(field, bool) or not isinstance(field, int | str):
        return failed(f"{name}: cannot make sense of {str(field)[:40]!r}")
    try:
        return value(int(field))
    except ValueError:
        return failed(f"{name}: cannot make sense of {str(field)[:40]!r}")


def _celsius(kelvin: ReadingTree) -> ReadingTree:
    return value(kelvin["value"] - KELVIN) if "value" in kelvin else kelvin


def describe_missing_log(tool: str, text: str) -> ReadingTree:
    """Return the leaf for output that holds nothing to read, with its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return failed(f"{tool} gave no log" + (f"; it ended with {lines[-1][:120]!r}" if lines else ""))
