"""`python -m bench.big_week DIR NODES SCANS` makes a fleet repository with a big fabric and stored scans of it."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import yaml

from assay.fabric.design.topology_cache import load_topology
from assay.model.clock import SystemClock
from assay.model.evidence import EvidenceDocument
from assay.model.reading import absent, value
from assay.model.specs.fabric.cable import Cable, CableEnd
from assay.observe.evidence_store import EvidenceStore
from bench.big_fabric import make
from bench.programs import ROOT

EVERY = timedelta(hours=6)
COUNTING = 20
"""Every n-th cable has errors."""


def fill(home: Path, scans: int, start: datetime) -> None:
    """Store scans with every port's transceiver and error counters, as `assay fabric scan` does."""
    store, cables = EvidenceStore(home / ".assay" / "evidence"), list(load_topology(home).cables)
    before: EvidenceDocument | None = None
    for number in range(scans):
        before = _scan(cables, number, start + number * EVERY, before)
        store.store_latest(before)


def with_limits(design: Path) -> None:
    """Add this repository's limits to a design; without limits nothing would be judged."""
    own = yaml.safe_load((ROOT / "specs" / "fabrics" / "compute.yaml").read_text())
    design.write_text(design.read_text() + yaml.safe_dump({"limits": own["limits"]}))


def _scan(cables: Sequence[Cable], number: int, at: datetime, before: EvidenceDocument | None) -> EvidenceDocument:
    chance = random.Random(number)  # noqa: S311 — readings need not be secret
    ports = [_port(end, chance) for cable in cables for end in cable.ends]
    telemetry = {"schema": "assay.fabric-facts/1", "ports": ports, "switches": []}
    texts = {"telemetry": json.dumps(telemetry, separators=(",", ":")), "errors": _errors(cables, number)}
    channels: dict[str, object] = {
        "ports": {name: {"text": value(text), "stderr": value("")} for name, text in texts.items()},
        "previous": value(before.digest()) if before else absent("this is the first scan"),
        "earlier": {"at": value(before.at.isoformat()), "counters": value(_counted(cables, number - 1))}
        if before
        else absent("this is the first scan"),
    }
    return EvidenceDocument("fabric-big", at, channels)


def _port(end: CableEnd, chance: random.Random) -> dict[str, object]:
    """Return the readings of a healthy port: its own level, with a little noise."""
    own = int(end.guid, 16) + end.port
    light = 1.2 - own % 7 / 10
    module = {
        "vendor": "NVIDIA", "part": "MMS4X00-NS", "serial": f"MT2447{own % 100_000:05}",
        "temperature_c": 44.0 + own % 8 + chance.randrange(2),
        "rx_power_dbm": [round(light - lane / 10 - chance.randrange(10) / 100, 2) for lane in range(4)],
        "tx_power_dbm": [1.4, 1.6, 1.5, 1.3], "bias_ma": [7.1, 7.0, 7.2, 7.1],
    }  # fmt: skip
    ber = {"symbol": 10.0 ** -(17 + own % 3), "effective": 1e-16}
    return {"guid": end.guid, "port": end.port, "ber": ber, "module": module}


def _counted(cables: Sequence[Cable], number: int) -> dict[str, dict[str, dict[str, int]]]:
    counted: dict[str, dict[str, dict[str, int]]] = {}
    for cable in cables[::COUNTING] if number else ():
        counted.setdefault(cable.a.guid, {})[str(cable.a.port)] = {"SymbolErrorCounter": 3 * number}
    return counted


def _errors(cables: Sequence[Cable], number: int) -> str:
    lines = [
        f'Errors for {guid} "{guid}"\n   GUID {guid} port {port}: [SymbolErrorCounter == {one["SymbolErrorCounter"]}]\n'
        for guid, ports in _counted(cables, number).items()
        for port, one in ports.items()
    ]
    return "".join(lines) + f"\n## Summary: {len(cables)} nodes checked, {len(lines)} bad nodes found\n"


if __name__ == "__main__":
    made = make(Path(sys.argv[1]), int(sys.argv[2]))
    with_limits(made / "specs" / "fabrics" / "big.yaml")
    fill(made, int(sys.argv[3]), SystemClock().now() - int(sys.argv[3]) * EVERY)
