"""A drive's SMART log (NVM Express Base Specification, SMART / Health Information), through nvme-cli or smartctl.

NVMe drives, from sysfs, and what they say of their own health.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from assay.model.reading import absent, failed, unsupported, value
from assay.probe.node_access import LazyTree, NodeRoot, TimedQuestion, Tree, leaf_for_error, run_tool

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


def read_smart(drive: str) -> Tree:
    """Return the `smart` branch of a drive; both tools need root."""
    device = f"/dev/{drive}"
    found = run_tool(["nvme", "smart-log", "--output-format=json", device], TOOL_S, parse_nvme_cli)
    if "absent" in found:
        found = run_tool(["smartctl", "--json", "--all", device], TOOL_S, parse_smartctl)
    if "absent" in found:
        return unsupported("neither nvme nor smartctl is installed; install nvme-cli or smartmontools")
    return found


def parse_nvme_cli(text: str) -> Tree:
    """Read `nvme smart-log -o json`, whose temperature is in kelvins."""
    log = _json(text)
    if log is None or "avail_spare" not in log:
        return _nothing("nvme", text)
    branch = {name: _number(log, theirs) for name, (theirs, _) in SMART_FIELDS.items()}
    return branch | {"temperature_c": _celsius(branch["temperature_c"])}


def parse_smartctl(text: str) -> Tree:
    """Read `smartctl -j -a`."""
    log = (_json(text) or {}).get("nvme_smart_health_information_log")
    if not isinstance(log, Mapping):
        return _nothing("smartctl", text)
    return {name: _number(log, theirs) for name, (_, theirs) in SMART_FIELDS.items()}


def _json(text: str) -> dict[str, Any] | None:
    """Return the object in what a tool printed, None where there is none; warnings may stand before it."""
    try:
        found, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _number(log: Mapping[str, Any], name: str) -> Tree:
    """Return one field; nvme-cli may give a warning as an object with its bits, and large counts as text."""
    said = log.get(name)
    said = said.get("value") if isinstance(said, Mapping) else said
    if said is None:
        return absent(f"the log has no {name}")
    if isinstance(said, bool) or not isinstance(said, int | str):
        return failed(f"{name}: cannot make sense of {str(said)[:40]!r}")
    try:
        return value(int(said))
    except ValueError:
        return failed(f"{name}: cannot make sense of {str(said)[:40]!r}")


def _celsius(kelvin: Tree) -> Tree:
    return value(kelvin["value"] - KELVIN) if "value" in kelvin else kelvin


def _nothing(tool: str, text: str) -> Tree:
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return failed(f"{tool} gave no log" + (f"; it ended with {said[-1][:120]!r}" if said else ""))


NVME_CLASS = "/sys/class/nvme"
SECTOR = 512  # sysfs counts sizes in these, whatever the drive's own block size
NAMESPACE = re.compile(r"nvme\d+(c\d+)?n\d+")


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
    """Return the names of a drive's namespaces, `nvme0n1`. Raises OSError for a drive that is not there."""
    return [name for name in root.list_names(f"{NVME_CLASS}/{drive}") if NAMESPACE.fullmatch(name)]


def _size(root: NodeRoot, drive: str) -> Tree:
    """Return the size of all namespaces together, the first one's reason where one of them cannot be read."""
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
