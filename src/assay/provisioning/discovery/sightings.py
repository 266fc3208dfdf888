"""What was seen of machines at several times, as one machine each."""

from __future__ import annotations

from collections.abc import Iterable

from assay.model.provisioning.seen_machine import SeenMachine


def merge_sightings(sightings: Iterable[SeenMachine]) -> list[SeenMachine]:
    """Return each machine once, as it was seen last; what a later sight lacks is kept. `sightings` are in time order.

    A BMC's MAC address says which sightings are of one machine. Without it, the serial number or the address does.
    """
    found: dict[str, SeenMachine] = {}
    keys: dict[str, str] = {}  # a claim of a machine → its key in `found`
    for seen in sightings:
        claims = [claim for claim in (seen.bmc_mac, seen.serial, seen.address) if claim]
        key = next((keys[claim] for claim in claims if claim in keys and _is_same(found[keys[claim]], seen)), claims[0])
        earlier = found.pop(key).as_json() if key in found else {}
        found[key] = SeenMachine.parse({**earlier, **seen.as_json()})
        keys |= dict.fromkeys(claims, key)
    return list(found.values())


def _is_same(earlier: SeenMachine, later: SeenMachine) -> bool:
    """Whether two sights that share a claim are of one machine."""
    if earlier.bmc_mac and later.bmc_mac:
        return earlier.bmc_mac == later.bmc_mac
    if earlier.serial and later.serial:
        return earlier.serial == later.serial
    return True
