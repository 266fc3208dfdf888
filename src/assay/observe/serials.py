"""The parts of a node that carry a serial number, as evidence has them: which it is, and where it sits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.model.evidence import Evidence, read

BRANCHES: tuple[tuple[str, tuple[str, ...], str, str, str], ...] = (
    ("gpu", ("probe", "gpu", "devices"), "serial", "name", "vbios"),
    ("hca", ("probe", "hca"), "guid", "type", "firmware"),
    ("nvme", ("probe", "nvme"), "serial", "model", "firmware"),
    ("dimm", ("probe", "memory", "firmware", "dimms"), "serial", "part", ""),
    ("psu", ("bmc", "psu"), "serial", "model", ""),
)
"""Kind, where its parts stand, and the leaves of each: serial number (an HCA's is its GUID), model, firmware."""

NODE = (("bmc", ("bmc", "system", "serial")), ("dmi", ("probe", "host", "serial")))
"""Who reads the node's own serial number, and where it stands."""

NONE = (
    "none", "n/a", "unknown", "default string", "not specified", "not available", "not present", "empty", "invalid",
    "to be filled by o.e.m.", "system serial number", "no dimm", "0123456789", "123456789",
)  # fmt: skip
"""What firmware writes where nobody gave it a serial number."""
SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Part:
    """One part: `place` as faults name it (`gpu3`, `mlx5_0`, a slot), "" for the node itself."""

    kind: str
    place: str
    serial: str
    model: str = ""
    firmware: str = ""


def parts_in(evidence: Evidence, names: Mapping[str, str]) -> list[Part]:
    """Return every part whose serial number was read; `names` are the parts by PCI place (`0000:1b:00.0` → `gpu3`)."""
    return [part for branch in BRANCHES for part in _branch(evidence, names, *branch)]


def node_serials(evidence: Evidence) -> dict[str, str]:
    """Return the node's own serial number by who reads it, `bmc` and `dmi`, where it was read."""
    found = {source: serial_of(evidence.read(*path).value) for source, path in NODE}
    return {source: serial for source, serial in found.items() if serial}


def serial_of(said: Any) -> str:
    """Return a serial number that can be one, "" for what stands where there is none."""
    text = str(said).strip() if isinstance(said, (str, int)) and not isinstance(said, bool) else ""
    plain = text.lower()
    told = len(text) >= SHORTEST and plain not in NONE and len(set(plain.removeprefix("0x"))) > 1
    return text if told else ""


def _branch(
    evidence: Evidence, names: Mapping[str, str], kind: str, path: tuple[str, ...], key: str, model: str, firmware: str
) -> Iterator[Part]:
    listed = evidence.read(*path)
    for name, tree in listed.value.items() if listed.kind == "value" and isinstance(listed.value, Mapping) else ():
        if serial := serial_of(read(tree, (key,)).value):
            yield Part(kind, _place(kind, name, tree, names), serial, _text(tree, model), _text(tree, firmware))


def _place(kind: str, name: str, tree: Any, names: Mapping[str, str]) -> str:
    pci = name if kind == "gpu" else _text(tree, "pci")
    if known := names.get(pci.lower()):
        return known
    return name if kind in ("hca", "nvme") else f"{kind}{name}" if name.isdecimal() else f"{kind} {name}"


def _text(tree: Any, key: str) -> str:
    said = read(tree, (key,)) if key else None
    return str(said.value) if said is not None and said.kind == "value" else ""
