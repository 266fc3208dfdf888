"""What was seen of machines at several times, as one machine each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from assay.model.provisioning.seen_machine import SeenMachine


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a machine says of itself. `at`, `source`: when this was recorded, and from where; "" before that."""

    machine: SeenMachine
    at: str = ""
    source: str = ""


class MachineRegister:
    """Machines by what they say of themselves. Sightings are added in time order.

    A BMC's MAC address says which sightings are of one machine. Without it, the serial number or the address does.
    """

    def __init__(self, sightings: Iterable[Sighting] = ()) -> None:
        self._sightings: dict[str, Sighting] = {}
        self._keys: dict[str, str] = {}  # a claim of a machine → its key in `_sightings`
        for sighting in sightings:
            self.add(sighting)

    @property
    def sightings(self) -> list[Sighting]:
        """Each machine as it was seen last; what a later sight lacks is kept."""
        return list(self._sightings.values())

    def add(self, sighting: Sighting) -> bool:
        """Add a sighting, and return whether it says something new."""
        seen = sighting.machine
        claims = [claim for claim in (seen.bmc_mac, seen.serial, seen.mac, seen.address) if claim]
        if not claims:
            return False
        key = next((self._keys[claim] for claim in claims if self._is_known(claim, seen)), claims[0])
        earlier = self._sightings[key].machine if key in self._sightings else None
        merged = SeenMachine.from_json({**(earlier.as_json() if earlier else {}), **seen.as_json()})
        self._sightings[key] = replace(sighting, machine=merged)
        self._keys |= dict.fromkeys(claims, key)
        return merged != earlier

    def _is_known(self, claim: str, seen: SeenMachine) -> bool:
        return claim in self._keys and _is_same(self._sightings[self._keys[claim]].machine, seen)


def _is_same(earlier: SeenMachine, later: SeenMachine) -> bool:
    """Whether two sights that share a claim are of one machine."""
    if earlier.bmc_mac and later.bmc_mac:
        return earlier.bmc_mac == later.bmc_mac
    if earlier.serial and later.serial:
        return earlier.serial == later.serial
    return True
