"""Finds what evidence trees hold: serial numbers with the place of each part, leaves, and what was not answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.model.evidence import EvidenceDocument, read_at_path
from assay.model.reading import EvidenceReading, parse_reading

PART_BRANCHES: tuple[tuple[str, tuple[str, ...], str, str, str], ...] = (
    ("gpu", ("probe", "gpu", "devices"), "serial", "name", "vbios"),
    ("hca", ("probe", "hca"), "guid", "type", "firmware"),
    ("nvme", ("probe", "nvme"), "serial", "model", "firmware"),
    ("dimm", ("probe", "memory", "firmware", "dimms"), "serial", "part", ""),
    ("psu", ("bmc", "psu"), "serial", "model", ""),
)
"""(kind, path of its parts, and the names of the leaves: serial number (an HCA's GUID), model, firmware)."""

NODE_SERIAL_SOURCES = (("bmc", ("bmc", "system", "serial")), ("dmi", ("probe", "host", "serial")))
"""(source, path) of the node's own serial number."""

PLACEHOLDER_SERIALS = (
    *("none", "n/a", "unknown", "default string", "not specified", "not available", "not present", "empty", "invalid"),
    *("to be filled by o.e.m.", "system serial number", "no dimm", "0123456789", "123456789"),
)
"""Texts of firmware without a serial number."""
MIN_SERIAL_LENGTH = 4


@dataclass(frozen=True, slots=True)
class PartSerial:
    """The serial number of one part. `place` is the name in faults (`gpu3`, `mlx5_0`, a slot), "" for the node."""

    kind: str
    place: str
    serial: str
    model: str = ""
    firmware: str = ""


def find_part_serials(evidence: EvidenceDocument, names: Mapping[str, str]) -> list[PartSerial]:
    """Return every part with a serial number. `names` maps PCI addresses to parts (`0000:1b:00.0` → `gpu3`)."""
    return [part for branch in PART_BRANCHES for part in _find_in_branch(evidence, names, *branch)]


def find_node_serials(evidence: EvidenceDocument) -> dict[str, str]:
    """Return the node's own serial number by source, `bmc` and `dmi`, for each source that read it."""
    serials = {source: clean_serial(evidence.read(*path).value) for source, path in NODE_SERIAL_SOURCES}
    return {source: serial for source, serial in serials.items() if serial}


def clean_serial(content: Any) -> str:
    """Return a value as a serial number, "" for a placeholder and for what cannot be one."""
    text = str(content).strip() if isinstance(content, (str, int)) and not isinstance(content, bool) else ""
    lower = text.lower()
    if len(text) < MIN_SERIAL_LENGTH or lower in PLACEHOLDER_SERIALS or len(set(lower.removeprefix("0x"))) <= 1:
        return ""
    return text


def _find_in_branch(
    evidence: EvidenceDocument,
    names: Mapping[str, str],
    kind: str,
    path: tuple[str, ...],
    key: str,
    model: str,
    firmware: str,
) -> Iterator[PartSerial]:
    parts = evidence.read(*path)
    for name, tree in parts.value.items() if parts.kind == "value" and isinstance(parts.value, Mapping) else ():
        if serial := clean_serial(read_at_path(tree, (key,)).value):
            yield PartSerial(kind, _place(kind, name, tree, names), serial, _text(tree, model), _text(tree, firmware))


def _place(kind: str, name: str, tree: Any, names: Mapping[str, str]) -> str:
    pci = name if kind == "gpu" else _text(tree, "pci")
    if known := names.get(pci.lower()):
        return known
    return name if kind in ("hca", "nvme") else f"{kind}{name}" if name.isdecimal() else f"{kind} {name}"


def _text(tree: Any, key: str) -> str:
    reading = read_at_path(tree, (key,)) if key else None
    return str(reading.value) if reading is not None and reading.kind == "value" else ""


def iterate_leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], EvidenceReading]]:
    """Yield (path, reading) for every leaf of `tree`, in order. Data that is no reading counts as a value."""
    reading = parse_reading(tree)
    if reading is not None:
        yield path, reading
    elif isinstance(tree, Mapping) and tree:
        for step, branch in tree.items():
            yield from iterate_leaves(branch, (*path, step))
    else:
        yield path, EvidenceReading("value", value=tree)


def find_unanswered_branches(channel: Any) -> dict[str, str]:
    """Return the failed branches of a channel, name → reason; the key is "" where the whole channel failed.

    Only the channel and its first branches count: a lost GPU deep inside is an answer about the node.
    """
    whole = parse_reading(channel)
    if whole is not None:
        return {"": whole.reason} if whole.kind == "failed" else {}
    if not isinstance(channel, Mapping):
        return {"": f"it is {channel!r:.40} and holds no readings"}
    failures: dict[str, str] = {}
    for name, branch in channel.items():
        reading = parse_reading(branch)
        if reading is not None and reading.kind == "failed":
            failures[name] = reading.reason
    return failures
