"""Designs of NVIDIA's reference architectures: DGX SuperPOD of 2 to 64 scalable units, at full rate, and their fleets.

Source: docs.nvidia.com, DGX SuperPOD reference architecture (B200, H100, B300), component counts of the compute fabric.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.fabric_design import FabricDesign

RAILS, POD = 8, 32


class Counts(NamedTuple):
    """One line of the table: per tier, switches and cables."""

    nodes: int
    leaves: int
    spines: int
    cores: int
    cables: int


COUNTS = {
    2: Counts(64, 16, 8, 0, 512),
    4: Counts(128, 32, 16, 0, 1024),
    8: Counts(256, 64, 32, 0, 2048),
    16: Counts(512, 128, 128, 64, 4096),
    32: Counts(1024, 256, 256, 128, 8192),
    64: Counts(2048, 512, 512, 256, 16384),
}


def superpod(units: int, **changes: Any) -> FabricDesign:
    """Return the design of a SuperPOD of 32 nodes a unit, as a site would write it."""
    count = COUNTS[units]
    rules: dict[str, Any] = {
        "kind": "FabricDesign",
        "name": "superpod",
        "rate": "4xNDR",
        "nodes": [f"n0001..n{count.nodes:04}"],
        "rails": RAILS,
        "switch": {"product": "MQM9700", "ports": 64, "labels": "cage/port"},
        "leaves": {"name": "leaf-su{unit:02}-r{rail}", "down": "1..32", "up": "33..64", "at": row(count.leaves, 1)},
        "spines": {"name": "spine-{index:03}", "per_pair": 32 // count.spines or 1, "at": row(count.spines, 2)},
    }
    if count.cores:
        rules["spines"] = {
            "name": "spine-p{pod}-r{rail}-{number:02}",
            "group": "rail",
            "pod": POD,
            "per_pair": POD // min(units, POD),
            "down": "1..32",
            "up": "33..64",
            "at": row(count.spines, 2),
        }
        groups = RAILS * max(1, units // POD)
        rules["cores"] = {"name": "core-{plane:02}-{number}", "per_pair": 64 // groups, "at": row(count.cores, 3)}
    return FabricDesign.model_validate(rules | changes)


def row(count: int, tier: int) -> dict[str, Any]:
    """Return switches that stand eight to a rack."""
    guids = {"first": f"0x{0xB83FD2 << 40 | tier << 32:016x}", "step": 64}
    return {"count": count, "rack": f"t{tier}" + "{rack:03}", "per_rack": 8, "u": 20, "u_step": 2, "guids": guids}


def fleet_of(design: FabricDesign, rails: int = RAILS) -> Fleet:
    """Return nodes with adapters for a design."""
    return Fleet(
        Path(),
        {
            name: Node(
                name, "p", "", f"r{at // 4:03}", 1 + 8 * (at % 4), f"s{at}", "hgx", "managed",
                tuple(f"0x{0xA088C2 << 40 | at << 8 | rail << 4:016x}" for rail in range(rails)),
            )
            for at, name in enumerate(design.node_names())
        },
    )  # fmt: skip
