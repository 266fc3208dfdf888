"""Machines that were seen: of a delivery, misplaced, contradicting each other, nodes, and strangers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from assay.act.boot.matching import record_sightings
from assay.ledger.store import Ledger
from assay.model.specs.machines import SeenMachine
from tests.tell.fleet_with_history import HOSTILE

DELIVERED, HEARD = "A520112X4400021", "02:00:5e:00:22:00"
FINGERPRINT = f"sha256:{'a' * 64}"


def make_machines(strangers: int) -> Iterator[SeenMachine]:
    """Yield one machine of each kind, and so many strangers."""
    yield SeenMachine("10.20.9.21", serial=DELIVERED, fingerprint=FINGERPRINT, rack="r06", u=4)
    yield SeenMachine("10.20.9.22", HEARD)
    yield SeenMachine("10.20.9.4", serial="A520112X4400004", rack="r02", u=24)
    yield SeenMachine("10.20.9.5", "02:00:5e:00:05:00", "A520112X4400005")
    yield SeenMachine("10.20.9.6", "02:00:5e:00:06:00", "A520112X4400005")
    yield SeenMachine("10.20.0.13", serial="A520112X4400003")
    for number in range(strangers):
        said = {"serial": f"S{number:05}", "address": f"10.30.{number // 200}.{number % 200 + 1}"}
        yield SeenMachine.parse({**said, "vendor": HOSTILE, "model": "B" * 200, "rack": "x" * 60, "u": 4})


def record_machines(home: Path, strangers: int) -> None:
    """Write them into the ledger of `home`."""
    ledger = Ledger.open(home / "ledger.sqlite")
    record_sightings(ledger, make_machines(strangers), "scan", datetime.now(UTC))
    ledger.close()
