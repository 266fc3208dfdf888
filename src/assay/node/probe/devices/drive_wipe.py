"""Reads what proves the wipe of an NVMe drive: its ways to erase, its sanitize log, its users, and marked blocks.

Sources: NVM Express Base Specification 2.0, Identify Controller (OACS, FNA, SANICAP) and Sanitize Status log page; the
JSON of nvme-cli 1.x and 2.x. A marked block holds a marker, again and again; blocks are spread evenly over the drive.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.devices.block_users import list_block_users
from assay.node.probe.devices.nvme import NVME_CLASS, describe_missing_log, find_json_object, list_namespaces
from assay.node.probe.node_access import LazyTree, NodeRoot, TimedQuestion, leaf_for_error, run_tool

TOOL_S, BLOCKS_S = 5.0, 8.0
BLOCK, SAMPLES = 4096, 16
CRYPTO_ERASE, BLOCK_ERASE = 1 << 0, 1 << 1  # SANICAP
FORMAT = 1 << 1  # OACS
FORMAT_CRYPTO = 1 << 2  # FNA
ACTIONS = {2: "sanitize-block", 3: "sanitize-overwrite", 4: "sanitize-crypto"}  # SCDW10, bits 2:0
STATUSES = {0: "never", 1: "completed", 2: "in progress", 3: "failed", 4: "completed"}  # SSTAT, bits 2:0
FULL_PROGRESS = 65536


def read_drive_wipe(root: NodeRoot, markers: Mapping[str, str]) -> LazyTree:
    """Return the `drive_wipe` branch, controllers by name. `markers`: what to look for, by serial number."""
    try:
        names = root.list_names(NVME_CLASS)
    except OSError as error:
        return leaf_for_error(NVME_CLASS, error)
    return {name: _ask_drive(root, name, markers) for name in names} or absent(f"{NVME_CLASS} is empty")


def _ask_drive(root: NodeRoot, name: str, markers: Mapping[str, str]) -> LazyTree:
    folder = f"{NVME_CLASS}/{name}"
    return {
        **{field: root.defer_read(f"{folder}/{field}") for field in ("serial", "model", "transport")},
        "methods": TimedQuestion(TOOL_S, partial(_ask_nvme, "id-ctrl", name, parse_methods)),
        "log": TimedQuestion(TOOL_S, partial(_ask_nvme, "sanitize-log", name, parse_sanitize_log)),
        "users": partial(_read_users, root, name),
        "blocks": TimedQuestion(BLOCKS_S, partial(_read_blocks, root, name, markers)),
    }


def _ask_nvme(question: str, drive: str, understand: Any) -> ReadingTree:
    return run_tool(["nvme", question, "--output-format=json", f"/dev/{drive}"], TOOL_S - 1, understand)


def parse_methods(text: str) -> ReadingTree:
    """Parse `nvme id-ctrl -o json` into the ways in which the drive can be erased."""
    fields = find_json_object(text) or {}
    numbers = [fields.get(name, 0) for name in ("sanicap", "oacs", "fna")]
    if "sn" not in fields or not all(isinstance(number, int) for number in numbers):
        return describe_missing_log("nvme", text)
    sanicap, oacs, fna = numbers
    can = {
        "sanitize-crypto": sanicap & CRYPTO_ERASE,
        "sanitize-block": sanicap & BLOCK_ERASE,
        "format-crypto": oacs & FORMAT and fna & FORMAT_CRYPTO,
        "format-erase": oacs & FORMAT,
    }
    return value([method for method, bits in can.items() if bits])


def parse_sanitize_log(text: str) -> ReadingTree:
    """Parse `nvme sanitize-log -o json` into `status`, `action` and `percent` of the newest sanitize.

    The log lies below the device's name; its status is text with the number in front, in some versions a number.
    """
    document = find_json_object(text) or {}
    log = next((one for one in [document, *document.values()] if isinstance(one, dict) and "sstat" in one), {})
    status, command, progress = _find_status(log.get("sstat")), log.get("cdw10_info", 0), log.get("sprog", 0)
    if status not in STATUSES or not isinstance(command, int) or not isinstance(progress, int):
        return describe_missing_log("nvme", text)
    return {
        "status": value(STATUSES[status]),
        "action": value(ACTIONS.get(command & 7, "none")),
        "percent": value(progress * 100 // FULL_PROGRESS),
    }


def _find_status(field: Any) -> int:
    """Return the number of a status, -1 for what is none."""
    text = field.get("status") if isinstance(field, dict) else field
    if isinstance(text, int):
        return text & 7
    found = re.match(r"\((\d)\)", text) if isinstance(text, str) else None
    return int(found[1]) if found else -1


def _list_block_devices(root: NodeRoot, drive: str) -> list[str]:
    """Return the block devices of a drive. With multipathing, sysfs has `nvme0c1n1` for the device `nvme0n1`."""
    return sorted({re.sub(r"c\d+", "", name) for name in list_namespaces(root, drive)})


def _read_users(root: NodeRoot, drive: str) -> ReadingTree:
    """Return a list of (kind, name), such as ("mount", "/data") or ("holder", "md1")."""
    try:
        return value([list(user) for user in list_block_users(root, _list_block_devices(root, drive))])
    except OSError as error:
        return leaf_for_error(str(error.filename), error)


def _read_blocks(root: NodeRoot, drive: str, markers: Mapping[str, str]) -> ReadingTree:
    """Return for each block device the offsets of its samples in bytes, and how many of them hold the marker."""
    try:
        marker = markers.get(root.read_text(f"{NVME_CLASS}/{drive}/serial"), "")
        devices = _list_block_devices(root, drive)
        return value({name: _read_samples(root.local_path(f"/dev/{name}"), marker) for name in devices})
    except OSError as error:
        return failed(f"{error.filename or f'/dev/{drive}'}: {error.strerror}")


def _read_samples(path: str, marker: str) -> dict[str, Any]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)  # read the drive, not what the kernel remembers
        offsets = list_sample_offsets(os.lseek(descriptor, 0, os.SEEK_END))
        wanted = marker.encode() * (BLOCK // len(marker)) if marker else None
        marked = sum(os.pread(descriptor, BLOCK, offset) == wanted for offset in offsets)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(descriptor)
    return {"offsets": offsets, "marked": marked}


def list_sample_offsets(size: int) -> list[int]:
    """Return the offsets of the sampled blocks of a device of `size` bytes: the first, the last, and some between."""
    last = size // BLOCK - 1
    return sorted({last * number // (SAMPLES - 1) * BLOCK for number in range(SAMPLES)}) if last >= 0 else []
