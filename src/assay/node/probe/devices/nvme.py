"""Reads NVMe drives: from sysfs, their SMART logs through nvme-cli or smartctl, and what proves that one was wiped.

That is its ways to erase, its sanitize log, its users (file systems, swap, arrays or volumes, also through partitions),
and marked blocks. A marked block holds a marker, again and again; blocks are spread evenly over the drive.
SATA and SAS drives, also those behind a RAID controller, are read through smartctl.
Sources: NVM Express Base Specification 2.0, SMART / Health Information, Identify Controller (OACS, FNA, SANICAP) and
Sanitize Status log page; the JSON of nvme-cli 1.x and 2.x; smartmontools 7.0 to 7.5, ataprint.cpp and scsiprint.cpp.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, unsupported, value
from assay.node.probe.node_access import LazyTree, NodeRoot, TimedQuestion, leaf_for_error, run_tool

NVME_CLASS = "/sys/class/nvme"
SECTOR = 512  # bytes; sysfs counts sizes in these, for any block size of the drive
NAMESPACE = re.compile(r"nvme\d+(c\d+)?n\d+")

SMART_S = 4.0
DISK_S = 3.5
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
SCSI_HOSTS = "/sys/class/scsi_host"
DISK_FACTS = {  # reading → its paths in smartctl's JSON, as `_follow` reads them; the first that leads anywhere counts
    "model": ("model_name", "scsi_model_name"),
    "serial": ("serial_number",),
    "firmware": ("firmware_version", "scsi_revision", "revision"),
    "protocol": ("device/protocol",),
}
DISK_SIZE = ("user_capacity/bytes",)
DISK_SMART = {  # as above, of SATA and of SAS
    "passed": ("smart_status/passed",),
    "reallocated": ("ata_smart_attributes/table/5/raw/string", "scsi_grown_defect_list"),
    "pending": ("ata_smart_attributes/table/197/raw/string", "scsi_pending_defects/count"),
    "uncorrectable": ("ata_smart_attributes/table/198/raw/string",),
    "uncorrected": (
        "ata_smart_attributes/table/187/raw/string",
        "scsi_error_counter_log/*/total_uncorrected_errors",
    ),
    "crc_errors": ("ata_smart_attributes/table/199/raw/string",),
    "non_medium_errors": ("smartctl/output/Non-medium error count:",),
    "used_percent": (
        "endurance_used/current_percent",
        "ata_device_statistics/pages/7/table/Percentage Used Endurance Indicator/value",
        "scsi_percentage_used_endurance_indicator",
    ),
    "temperature_c": ("temperature/current",),
    "power_on_hours": ("power_on_time/hours",),
}
LIST_KEYS = ("id", "number", "name")
BLOCK_CLASS = "/sys/class/block"
OCTAL = re.compile(r"\\([0-7]{3})")
User = tuple[str, str]
"""A kind (mount, swap or holder) and a name: the mount point, the device of the swap, the array or volume."""
WIPE_TOOL_S = 5.0
BLOCKS_S = 8.0
BLOCK = 4096
SAMPLES = 16
CRYPTO_ERASE = 1 << 0  # SANICAP
BLOCK_ERASE = 1 << 1
FORMAT = 1 << 1  # OACS
FORMAT_CRYPTO = 1 << 2  # FNA
ACTIONS = {2: "sanitize-block", 3: "sanitize-overwrite", 4: "sanitize-crypto"}  # SCDW10, bits 2:0
STATUSES = {0: "never", 1: "completed", 2: "in progress", 3: "failed", 4: "completed"}  # SSTAT, bits 2:0
FULL_PROGRESS = 65536


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
        namespaces = list_namespaces(root, drive)
    except OSError as error:
        return leaf_for_error(folder, error)
    sizes = [root.read_leaf(f"{folder}/{name}/size", int) for name in namespaces]
    unreadable = [size for size in sizes if "value" not in size]
    if not sizes or unreadable:
        return unreadable[0] if unreadable else absent(f"{folder} has no namespace")
    return value(sum(size["value"] for size in sizes) * SECTOR)


def read_smart(drive: str) -> ReadingTree:
    """Return the `smart` branch of a drive, by nvme-cli or else by smartctl. Both need root."""
    device = f"/dev/{drive}"
    smart = run_tool(["nvme", "smart-log", "--output-format=json", device], TOOL_S, parse_nvme_cli)
    if "absent" in smart:
        smart = run_tool(["smartctl", "--json", "--all", device], TOOL_S, parse_smartctl)
    if "absent" in smart:
        return unsupported("neither nvme nor smartctl is installed; install nvme-cli or smartmontools")
    return smart


def parse_nvme_cli(text: str) -> ReadingTree:
    """Parse `nvme smart-log -o json`. Its temperature is in kelvins."""
    log = find_json_object(text)
    if log is None or "avail_spare" not in log:
        return describe_missing_log("nvme", text)
    branch = {name: _number(log, theirs) for name, (theirs, _) in SMART_FIELDS.items()}
    kelvin = branch["temperature_c"]
    if "value" in kelvin:
        branch["temperature_c"] = value(kelvin["value"] - KELVIN)
    return branch


def parse_smartctl(text: str) -> ReadingTree:
    """Parse `smartctl -j -a`."""
    log = (find_json_object(text) or {}).get("nvme_smart_health_information_log")
    if not isinstance(log, Mapping):
        return describe_missing_log("smartctl", text)
    return {name: _number(log, theirs) for name, (_, theirs) in SMART_FIELDS.items()}


def read_disks(root: NodeRoot) -> LazyTree:
    """Return the `disk` branch: SATA and SAS drives as `sda`, those behind a RAID controller as `bus-0-megaraid-8`."""
    try:
        if not root.list_names(SCSI_HOSTS):
            return absent(f"{SCSI_HOSTS} is empty")
    except OSError as error:
        return leaf_for_error(SCSI_HOSTS, error)
    devices = run_tool(["smartctl", "--scan", "--json"], TOOL_S, parse_scan)
    if "value" not in devices:
        return devices
    questions = {name: TimedQuestion(SMART_S, partial(read_disk, words)) for name, words in devices["value"].items()}
    return questions or absent("smartctl lists no SATA or SAS drive")


def parse_scan(text: str) -> ReadingTree:
    """Parse `smartctl --scan -j` into the words that ask for each drive, by name. Only a controller's need a type."""
    document = find_json_object(text) or {}
    if "smartctl" not in document:
        return describe_missing_log("smartctl", text)
    drives = {}
    for entry in _follow(document, "devices/*"):
        kind, device = (str(entry.get(key)) if isinstance(entry, dict) else "nvme" for key in ("type", "name"))
        behind = [kind] if "," in kind else []
        if kind != "nvme":
            name = re.sub(r"\W+", "-", "-".join([device.removeprefix("/dev/"), *behind]))
            drives[name] = [*(f"--device={kind}" for kind in behind), device]
    return value(drives)


def read_disk(words: list[str]) -> ReadingTree:
    """Return the branch of a SATA or SAS drive. It needs root. smartctl prints some counters of SAS as text only."""
    return run_tool(["smartctl", "--json=o", "--all", "--log=ssd", "--log=defects", *words], DISK_S, parse_disk)


def parse_disk(text: str) -> ReadingTree:
    """Parse `smartctl -j=o -a -l ssd -l defects` of a SATA or SAS drive. What it does not count is unsupported."""
    log = find_json_object(text) or {}
    has_counters = _follow(log, "device/protocol") == ["SCSI"] or _follow(log, "ata_smart_attributes/table")
    if not (_follow(log, "smart_status/passed") and has_counters):
        return describe_missing_log("smartctl", text)
    facts = {name: _read_paths(log, name, paths, str) for name, paths in DISK_FACTS.items()}
    facts["size_bytes"] = _read_paths(log, "size_bytes", DISK_SIZE, _count)
    return {**facts, "smart": {name: _read_paths(log, name, paths, _count) for name, paths in DISK_SMART.items()}}


def _read_paths(log: dict[str, Any], name: str, paths: Sequence[str], convert: Callable[[Any], Any]) -> ReadingTree:
    """Return the reading at the first path that leads anywhere; what it leads to is added up."""
    branches = next(filter(None, (_follow(log, path) for path in paths)), [])
    if not branches:
        return unsupported(f"the drive does not tell its {name}")
    try:
        first, *others = map(convert, branches)
    except ValueError:
        return failed(f"{name}: cannot make sense of {str(branches)[:40]!r}")
    return value(sum(others, first) if others else first)


def _count(field: Any) -> int | bool:
    """Return a number or an answer. smartctl writes a raw value as `31 (Min/Max 20/45)`. Raises ValueError."""
    if isinstance(field, int):
        return field
    return int(str(field).strip().partition(" ")[0])


def _follow(tree: Any, path: str) -> list[Any]:
    """Return what lies at a path of JSON: `*` is every entry; of a list, a step is an entry's id, number, name or text.

    Of a text that begins with the step, it is the rest.
    """
    step, _, rest = path.partition("/")
    if isinstance(tree, dict):
        branches = [*tree.values()] if step == "*" else [tree[step]] if step in tree else []
    elif isinstance(tree, list):
        named = [entry for entry in tree if isinstance(entry, dict) and step in {str(entry.get(k)) for k in LIST_KEYS}]
        texts = [text.removeprefix(step) for text in tree if isinstance(text, str) and text.startswith(step)]
        branches = tree if step == "*" else [*named, *texts]
    else:
        branches = []
    return [leaf for branch in branches for leaf in _follow(branch, rest)] if rest else branches


def find_json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a tool's output, None where there is none. Warnings may come before it."""
    try:
        document, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


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


def describe_missing_log(tool: str, text: str) -> ReadingTree:
    """Return the leaf for output that holds nothing to read: smartctl's message, or the first line.

    After that line, nvme-cli prints its usage.
    """
    log = find_json_object(text)
    reasons = _follow(log, "smartctl/messages/*/string") or _follow(log, "smartctl/output/SMART support is:")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reasons = reasons or (lines if log is None else [])
    return failed(f"{tool} gave no log" + (f"; it said {str(reasons[0]).strip()[:120]!r}" if reasons else ""))


def list_block_users(root: NodeRoot, devices: list[str]) -> list[User]:
    """Return the users of devices (`nvme0n1`), those on top first. Raises OSError if the mounts cannot be read."""
    family = _find_family(root, devices)
    users: list[User] = []
    for line in reversed(root.read_text("/proc/mounts").splitlines()):
        device, point = line.split()[:2]
        if _names_device(root, device, family):
            # The kernel writes a space in a mount point in octal.
            users.append(("mount", OCTAL.sub(lambda code: chr(int(code[1], 8)), point)))
    swaps = root.read_text("/proc/swaps").splitlines()[1:] if root.exists("/proc/swaps") else []
    for device in (line.split()[0] for line in swaps):
        if _names_device(root, device, family):
            users.append(("swap", device))
    return users + [("holder", name) for name, is_holder in reversed(family.items()) if is_holder]


def _find_family(root: NodeRoot, devices: list[str]) -> dict[str, bool]:
    """Return the devices, their partitions and all that holds them, each with whether it is a holder."""
    family = dict.fromkeys(devices, False)
    waiting = list(devices)
    while waiting:
        name = waiting.pop()
        related = {part: False for part in _list_names(root, f"{BLOCK_CLASS}/{name}") if part.startswith(name)}
        holders = _list_names(root, f"{BLOCK_CLASS}/{name}/holders")
        for device, is_holder in [*related.items(), *((holder, True) for holder in holders)]:
            if device not in family:
                family[device] = is_holder
                waiting.append(device)
    return family


def _list_names(root: NodeRoot, folder: str) -> list[str]:
    return root.list_names(folder) if root.exists(folder) else []


def _names_device(root: NodeRoot, source: str, family: dict[str, bool]) -> bool:
    """Whether a source such as `/dev/mapper/data` is a device of the family."""
    if not source.startswith("/dev/"):
        return False
    return os.path.basename(os.path.realpath(root.local_path(source))) in family  # noqa: PTH119  # as in node_access


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
        "methods": TimedQuestion(WIPE_TOOL_S, partial(_ask_nvme, "id-ctrl", name, parse_methods)),
        "log": TimedQuestion(WIPE_TOOL_S, partial(_ask_nvme, "sanitize-log", name, parse_sanitize_log)),
        "users": partial(_read_users, root, name),
        "blocks": TimedQuestion(BLOCKS_S, partial(_read_blocks, root, name, markers)),
    }


def _ask_nvme(question: str, drive: str, understand: Any) -> ReadingTree:
    return run_tool(["nvme", question, "--output-format=json", f"/dev/{drive}"], WIPE_TOOL_S - 1, understand)


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
    branches = [branch for branch in (document, *document.values()) if isinstance(branch, dict) and "sstat" in branch]
    log = branches[0] if branches else {}
    status = _find_status(log.get("sstat"))
    command = log.get("cdw10_info", 0)
    progress = log.get("sprog", 0)
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
    number = re.match(r"\((\d)\)", text) if isinstance(text, str) else None
    return int(number[1]) if number else -1


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
