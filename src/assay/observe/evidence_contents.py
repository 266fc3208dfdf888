"""Finds what evidence trees hold: serial numbers with the place of each part, leaves, and what was not answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.model.evidence import EvidenceDocument, MachineIdentity, clean_serial, identify_gpu, read_at_path
from assay.model.reading import EvidenceReading, parse_reading

PART_BRANCHES: tuple[tuple[str, tuple[str, ...], str, str, str], ...] = (
    ("gpu", ("probe", "gpu", "devices"), "serial", "name", "vbios"),
    ("hca", ("probe", "hca"), "guid", "type", "firmware"),
    ("nvme", ("probe", "nvme"), "serial", "model", "firmware"),
    ("disk", ("probe", "disk"), "serial", "model", "firmware"),
    ("dimm", ("probe", "memory", "firmware", "dimms"), "serial", "part", ""),
    ("psu", ("bmc", "psu"), "serial", "model", ""),
)
"""(kind, path of its parts, and the names of the leaves: serial number (an HCA's GUID), model, firmware)."""


@dataclass(frozen=True, slots=True)
class PartSerial:
    """The serial number of one part. `place` is the name in faults (`gpu3`, `mlx5_0`, a slot), "" for the node."""

    kind: str
    place: str
    serial: str
    model: str = ""
    firmware: str = ""
    uuid: str = ""


def find_part_serials(evidence: EvidenceDocument, names: Mapping[str, str]) -> list[PartSerial]:
    """Return every part with a serial number. `names` maps PCI addresses to parts (`0000:1b:00.0` → `gpu3`)."""
    return [part for branch in PART_BRANCHES for part in _find_in_branch(evidence, names, *branch)]


def find_node_serials(evidence: EvidenceDocument) -> dict[str, str]:
    """Return the node's own serial number by source, `bmc` and `dmi`, for each source that read it."""
    return dict(MachineIdentity.of_channels(evidence.channels).serials)


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
        number, uuid = read_at_path(tree, (key,)), identify_gpu(tree)[1] if kind == "gpu" else ""
        if serial := clean_serial(number.value) or ("" if number.kind == "failed" else uuid):
            place = _place(kind, name, tree, names)
            yield PartSerial(kind, place, serial, _text(tree, model), _text(tree, firmware), uuid)


def _place(kind: str, name: str, tree: Any, names: Mapping[str, str]) -> str:
    pci = name if kind == "gpu" else _text(tree, "pci")
    if known := names.get(pci.lower()):
        return known
    return name if kind in ("hca", "nvme", "disk") else f"{kind}{name}" if name.isdecimal() else f"{kind} {name}"


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
