"""What a node's probe reads of its NVMe drives for a wipe. A reading that failed is a doubt, never a proof."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.model.errors import AssayError
from assay.model.evidence import read_at_path
from assay.model.node import Node
from assay.observe.transports.transport_choice import run_remote_probe

PROBE_S = 30.0
AREA = "drive_wipe"
LOCAL = "pcie"


@dataclass(frozen=True, slots=True)
class DriveReading:
    """One NVMe controller.

    `methods`: the ways in which it can be erased. `log_status`, `log_action`: its sanitize log, "" for a drive without
    one. `users`: (kind, name) of what uses it. `offsets`: the sampled blocks in bytes, by block device. `marked`: how
    many of them hold the marker. `doubts`: why a part could not be read, by the part's name.
    """

    name: str
    serial: str
    model: str
    transport: str
    methods: tuple[str, ...]
    log_status: str
    log_action: str
    users: tuple[tuple[str, str], ...]
    offsets: Mapping[str, list[int]]
    marked: int
    doubts: Mapping[str, str]

    @property
    def samples(self) -> int:
        """How many blocks are sampled."""
        return sum(map(len, self.offsets.values()))

    def __str__(self) -> str:
        return f"{self.name} (serial {self.serial or 'unknown'})"


def read_local_drives(node: Node, markers: Mapping[str, str]) -> list[DriveReading]:
    """Return the node's NVMe drives that no network lies before. `markers`: what to look for, by serial number.

    Raises AssayError if the node does not answer, or has no such drive.
    """
    words = ["--areas", AREA, "--markers", json.dumps(dict(markers))]
    tree = run_remote_probe(node, words, PROBE_S)
    drives = read_at_path(tree, ("probe", AREA))
    if drives.kind != "value" or not isinstance(drives.value, dict):
        raise AssayError(f"its drives cannot be read: {drives.reason}", where=node.name)
    found = [_parse_drive(name, branch) for name, branch in drives.value.items()]
    return [drive for drive in found if drive.transport == LOCAL or "transport" in drive.doubts]


def _parse_drive(name: str, branch: Mapping[str, Any]) -> DriveReading:
    doubts: dict[str, str] = {}

    def take(*path: str) -> Any:
        reading = read_at_path(branch, path)
        if reading.kind != "value":
            doubts.setdefault(path[0], reading.reason)
            return None
        return reading.value

    blocks = take("blocks") or {}
    return DriveReading(
        name=name,
        serial=take("serial") or "",
        model=take("model") or "",
        transport=take("transport") or "",
        methods=tuple(take("methods") or ()),
        log_status=take("log", "status") or "",
        log_action=take("log", "action") or "",
        users=tuple((kind, user) for kind, user in take("users") or ()),
        offsets={device: samples["offsets"] for device, samples in blocks.items()},
        marked=sum(samples["marked"] for samples in blocks.values()),
        doubts=doubts,
    )
