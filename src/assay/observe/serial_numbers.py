"""The parts of a node that carry a serial number, as evidence has them: which it is, and where it sits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.model.evidence import EvidenceDocument, read_at_path

PART_BRANCHES: tuple[tuple[str, tuple[str, ...], str, str, str], ...] = (
    ("gpu", ("probe", "gpu", "devices"), "serial", "name", "vbios"),
    ("hca", ("probe", "hca"), "guid", "type", "firmware"),
    ("nvme", ("probe", "nvme"), "serial", "model", "firmware"),
    ("dimm", ("probe", "memory", "firmware", "dimms"), "serial", "part", ""),
    ("psu", ("bmc", "psu"), "serial", "model", ""),
)
"""Kind, where its parts stand, and the leaves of each: serial number (an HCA's is its GUID), model, firmware."""

NODE_SERIAL_SOURCES = (("bmc", ("bmc", "system", "serial")), ("dmi", ("probe", "host", "serial")))
"""Who reads the node's own serial number, and where it stands."""

PLACEHOLDER_SERIALS = (
    "none", "n/a", "unknown", "default string", "not specified", "not available", "not present", "empty", "invalid",
    "to be filled by o.e.m.", "system serial number", "no dimm", "0123456789", "123456789",
)  # fmt: skip
"""What firmware writes where nobody gave it a serial number."""
MIN_SERIAL_LENGTH = 4


@dataclass(frozen=True, slots=True)
class PartSerial:
    """One part: `place` as faults name it (`gpu3`, `mlx5_0`, a slot), "" for the node itself."""

    kind: str
    place: str
    serial: str
    model: str = ""
    firmware: str = ""


def find_part_serials(evidence: EvidenceDocument, names: Mapping[str, str]) -> list[PartSerial]:
    """Return every part whose serial number was read; `names` are the parts by PCI place (`0000:1b:00.0` → `gpu3`)."""
    return [part for branch in PART_BRANCHES for part in _branch(evidence, names, *branch)]


def find_node_serials(evidence: EvidenceDocument) -> dict[str, str]:
    """Return the node's own serial number by who reads it, `bmc` and `dmi`, where it was read."""
    found = {source: clean_serial(evidence.read(*path).value) for source, path in NODE_SERIAL_SOURCES}
    return {source: serial for source, serial in found.items() if serial}


def clean_serial(said: Any) -> str:
    """Return a serial number that can be one, "" for what stands where there is none."""
    text = str(said).strip() if isinstance(said, (str, int)) and not isinstance(said, bool) else ""
    plain = text.lower()
    told = (
        len(text) >= MIN_SERIAL_LENGTH and plain not in PLACEHOLDER_SERIALS and len(set(plain.removeprefix("0x"))) > 1
    )
    return text if told else ""


def _branch(
    evidence: EvidenceDocument,
    names: Mapping[str, str],
    kind: str,
    path: tuple[str, ...],
    key: str,
    model: str,
    firmware: str,
) -> Iterator[PartSerial]:
    listed = evidence.read(*path)
    for name, tree in listed.value.items() if listed.kind == "value" and isinstance(listed.value, Mapping) else ():
        if serial := clean_serial(read_at_path(tree, (key,)).value):
            yield PartSerial(kind, _place(kind, name, tree, names), serial, _text(tree, model), _text(tree, firmware))


def _place(kind: str, name: str, tree: Any, names: Mapping[str, str]) -> str:
    pci = name if kind == "gpu" else _text(tree, "pci")
    if known := names.get(pci.lower()):
        return known
    return name if kind in ("hca", "nvme") else f"{kind}{name}" if name.isdecimal() else f"{kind} {name}"


def _text(tree: Any, key: str) -> str:
    said = read_at_path(tree, (key,)) if key else None
    return str(said.value) if said is not None and said.kind == "value" else ""
