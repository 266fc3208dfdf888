"""What was seen of machines at several times, as one machine each."""

from __future__ import annotations

from collections.abc import Iterable

from assay.model.provisioning.seen_machine import SeenMachine


class MachineRegister:
    """Machines by what they say of themselves. Sightings are added in time order.

    A BMC's MAC address says which sightings are of one machine. Without it, the serial number or the address does.
    """

    def __init__(self, sightings: Iterable[SeenMachine] = ()) -> None:
        self._machines: dict[str, SeenMachine] = {}
        self._keys: dict[str, str] = {}  # a claim of a machine → its key in `_machines`
        for seen in sightings:
            self.add(seen)

    @property
    def machines(self) -> list[SeenMachine]:
        """Each machine as it was seen last; what a later sight lacks is kept."""
        return list(self._machines.values())

    def add(self, seen: SeenMachine) -> bool:
        """Add a sighting, and return whether it says something new."""
        claims = [claim for claim in (seen.bmc_mac, seen.serial, seen.mac, seen.address) if claim]
        if not claims:
            return False
        key = next((self._keys[claim] for claim in claims if self._is_known(claim, seen)), claims[0])
        earlier = self._machines.get(key)
        merged = SeenMachine.from_json({**(earlier.as_json() if earlier else {}), **seen.as_json()})
        self._machines[key] = merged
        self._keys |= dict.fromkeys(claims, key)
        return merged != earlier

    def _is_known(self, claim: str, seen: SeenMachine) -> bool:
        return claim in self._keys and _is_same(self._machines[self._keys[claim]], seen)


def _is_same(earlier: SeenMachine, later: SeenMachine) -> bool:
    """Whether two sights that share a claim are of one machine."""
    if earlier.bmc_mac and later.bmc_mac:
        return earlier.bmc_mac == later.bmc_mac
    if earlier.serial and later.serial:
        return earlier.serial == later.serial
    return True
