"""What was seen of machines at several times, as one machine each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from assay.model.specs.seen_machine import SeenMachine


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

    def find(self, seen: SeenMachine) -> Sighting | None:
        """Return what is known of the machine that was seen."""
        key = self._find_key(seen)
        return self._sightings[key] if key else None

    def says_news(self, seen: SeenMachine) -> bool:
        """Whether a sight says what is not known of its machine."""
        known = self.find(seen)
        return bool(_list_claims(seen)) and (known is None or _merge(known, seen) != known.machine)

    def add(self, sighting: Sighting) -> None:
        """Add a sighting. One that says nothing of which machine it is is left out."""
        claims = _list_claims(sighting.machine)
        if not claims:
            return
        key = self._find_key(sighting.machine) or claims[0]
        self._sightings[key] = replace(sighting, machine=_merge(self._sightings.get(key), sighting.machine))
        self._keys |= dict.fromkeys(claims, key)

    def keep(self, is_kept: Callable[[Sighting], bool]) -> None:
        """Forget all machines but these."""
        self._sightings = {key: one for key, one in self._sightings.items() if is_kept(one)}
        self._keys = {claim: key for claim, key in self._keys.items() if key in self._sightings}

    def _find_key(self, seen: SeenMachine) -> str:
        return next((self._keys[claim] for claim in _list_claims(seen) if self._is_known(claim, seen)), "")

    def _is_known(self, claim: str, seen: SeenMachine) -> bool:
        return claim in self._keys and _is_same(self._sightings[self._keys[claim]].machine, seen)


def _list_claims(seen: SeenMachine) -> list[str]:
    return [claim for claim in (seen.bmc_mac, seen.serial, seen.mac, seen.address) if claim]


def _merge(known: Sighting | None, seen: SeenMachine) -> SeenMachine:
    return SeenMachine.from_json({**(known.machine.as_json() if known else {}), **seen.as_json()})


def _is_same(earlier: SeenMachine, later: SeenMachine) -> bool:
    """Whether two sights that share a claim are of one machine."""
    if earlier.bmc_mac and later.bmc_mac:
        return earlier.bmc_mac == later.bmc_mac
    if earlier.serial and later.serial:
        return earlier.serial == later.serial
    return True
