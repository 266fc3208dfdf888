"""Which node a seen machine is: by its serial number and its BMC's MAC address, against inventory and deliveries.

What was seen of machines at several times, as one machine each. The ledger gets an entry only where a machine says
something new of itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal

from assay.ledger.ledger_reader import read_projection
from assay.ledger.store import Ledger
from assay.model.entries.boot import MachineSeenEntry
from assay.model.facts import from_json, frozen, to_stored
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.specs.machines import SeenMachine
from assay.model.timestamps import format_time, parse_time

Verdict = Literal["node", "expected", "misplaced", "contradiction", "stranger"]
"""`node`: it is in the inventory. `expected`: in a delivery only. `misplaced`: known, and not where it belongs."""


@frozen
class KnownMachine:
    """A machine as the repository has it: of the inventory, or of the delivery with this name. "" or 0: not given."""

    name: str
    serial: str
    bmc_mac: str
    rack: str
    u: int
    address: str = ""
    delivery: str = ""
    vendor: str = ""
    model: str = ""
    boot_macs: tuple[str, ...] = ()


@frozen
class MachineMatch:
    """What a seen machine is. `node` is "" for a stranger; `problems` are sentences for people."""

    seen: SeenMachine
    """What it says of itself."""
    verdict: Verdict
    """What it is: a node, expected by a delivery, in the wrong place, contradicting what is declared, or unknown."""
    node: str = ""
    """The node that it is or shall be; "" for a stranger."""
    delivery: str = ""
    """The delivery that it belongs to; "" for none."""
    problems: tuple[str, ...] = ()
    """What contradicts it, in sentences."""


def list_known_machines(fleet: Fleet) -> list[KnownMachine]:
    """Return the nodes of the inventory, and the machines of deliveries that are no nodes yet."""
    details = {
        machine.serial_number: (delivery, machine)
        for delivery in fleet.deliveries.values()
        for machine in delivery.machines
    }
    known = []
    for node in fleet.nodes.values():
        delivery = details[node.serial][0] if node.serial in details else None
        ordered = (delivery.name, delivery.vendor, delivery.model) if delivery else ("", "", "")
        identity = (node.name, node.serial, _normalize(node.bmc_mac))
        known.append(KnownMachine(*identity, node.rack, node.u, node.bmc_address, *ordered, tuple(node.boot_macs)))
    serials = {node.serial for node in fleet.nodes.values()}
    for delivery, machine in details.values():
        if machine.serial_number not in serials:
            identity = (machine.name, machine.serial_number, _normalize(machine.bmc_mac))
            ordered = (delivery.name, delivery.vendor, delivery.model)
            boots_from = (_normalize(machine.mac),) if machine.mac else ()
            known.append(KnownMachine(*identity, machine.rack, machine.u, "", *ordered, boots_from))
    return known


def match_machines(seen: Iterable[SeenMachine], fleet: Fleet) -> list[MachineMatch]:
    """Return what each machine is. Two that claim one serial number or MAC address contradict each other."""
    machines, matcher = list(seen), MachineMatcher(fleet)
    claims = Counter(claim for machine in machines for claim in _list_claims(machine))
    return [
        matcher.match(machine, [claim for claim in _list_claims(machine) if claims[claim] > 1]) for machine in machines
    ]


def find_unseen(matches: Iterable[MachineMatch], fleet: Fleet) -> list[KnownMachine]:
    """Return the machines of deliveries that nobody has seen, and that are no nodes yet."""
    seen = {match.node for match in matches} | fleet.nodes.keys()
    return [machine for machine in list_known_machines(fleet) if machine.name not in seen]


class MachineMatcher:
    """Finds the known machine that a seen one is."""

    def __init__(self, fleet: Fleet) -> None:
        self._nodes = fleet.nodes
        known = list_known_machines(fleet)
        self._by_serial = {machine.serial: machine for machine in known}
        self._by_mac = {machine.bmc_mac: machine for machine in known if machine.bmc_mac}
        self._by_boot_mac = {mac: machine for machine in known for mac in machine.boot_macs}
        self._by_address = {machine.address: machine for machine in known if machine.address}

    def match(self, seen: SeenMachine, claimed_twice: Iterable[str] = ()) -> MachineMatch:
        """Return what one machine is. `claimed_twice`: what another seen machine says of itself too."""
        by_serial, by_mac = self._by_serial.get(seen.serial), self._by_mac.get(seen.bmc_mac)
        twice = [f"another machine says {claim} of itself too" for claim in claimed_twice]
        known = by_serial or by_mac or self._by_boot_mac.get(seen.mac)
        if known is None:
            return MachineMatch(
                seen, "contradiction" if twice else "stranger", "", "", (*twice, *self._tell_place(seen))
            )
        identity = [*twice, *_compare_identity(seen, known, by_serial, by_mac)]
        place = []
        if (seen.rack and seen.rack != known.rack) or (seen.u and seen.u != known.u):
            stands = f"{seen.rack or 'an unnamed rack'} U{seen.u or '?'}"
            place = [f"it says that it stands at {stands}, and it belongs at {known.rack} U{known.u}"]
        place += self._tell_place(seen, known)
        verdict: Verdict = "node" if known.name in self._nodes else "expected"
        if identity or place:
            verdict = "contradiction" if identity else "misplaced"
        return MachineMatch(seen, verdict, known.name, known.delivery, (*identity, *place))

    def _tell_place(self, seen: SeenMachine, known: KnownMachine | None = None) -> Iterator[str]:
        there = self._by_address.get(seen.address)
        if there and there is not known:
            yield f"it answers at {seen.address}, the address of {there.name} (serial {there.serial})"


def _list_claims(machine: SeenMachine) -> list[str]:
    return [claim for claim in (machine.serial, machine.bmc_mac) if claim]


def _compare_identity(
    seen: SeenMachine, known: KnownMachine, by_serial: KnownMachine | None, by_mac: KnownMachine | None
) -> Iterator[str]:
    if by_serial and by_mac and by_serial is not by_mac:
        yield f"its serial number is that of {by_serial.name}, its BMC's MAC address that of {by_mac.name}"
    elif seen.serial and not by_serial and not by_mac:
        yield f"it boots from {seen.mac} of {known.name} with serial {seen.serial}, and {known.serial} is declared"
    elif seen.serial and not by_serial:
        yield f"behind the BMC of {known.name} is serial {seen.serial}, and {known.serial} should be"
    elif seen.bmc_mac and known.bmc_mac and not by_mac:
        yield f"its BMC has the MAC address {seen.bmc_mac}, and {known.bmc_mac} is declared: was the board exchanged?"
    if by_serial and seen.mac and known.boot_macs and seen.mac not in known.boot_macs:
        yield f"it boots from {seen.mac}, and {known.boot_macs[0]} is declared: was the adapter exchanged?"
    for aspect, observed, ordered in (("vendor", seen.vendor, known.vendor), ("model", seen.model, known.model)):
        if observed and ordered and observed.casefold() != ordered.casefold():
            yield f"its {aspect} is {observed}, and {ordered} was ordered"


def _normalize(mac: str) -> str:
    return mac.lower().replace("-", ":")


@frozen
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
        return bool(_list_identities(seen)) and (known is None or _merge(known, seen) != known.machine)

    def add(self, sighting: Sighting) -> None:
        """Add a sighting. One that says nothing of which machine it is is left out."""
        claims = _list_identities(sighting.machine)
        if not claims:
            return
        key = self._find_key(sighting.machine) or claims[0]
        self._sightings[key] = replace(sighting, machine=_merge(self._sightings.get(key), sighting.machine))
        self._keys |= dict.fromkeys(claims, key)

    def copy(self) -> MachineRegister:
        """Return one that changes for itself."""
        copied = MachineRegister()
        copied._sightings, copied._keys = dict(self._sightings), dict(self._keys)
        return copied

    def forget(self, seen: SeenMachine) -> None:
        """Forget the machine that was seen."""
        gone = self._find_key(seen)
        self._sightings.pop(gone, None)
        self._keys = {claim: key for claim, key in self._keys.items() if key != gone}

    def _find_key(self, seen: SeenMachine) -> str:
        keys = [self._keys[claim] for claim in _list_identities(seen) if claim in self._keys]
        return next((key for key in keys if _is_same(self._sightings[key].machine, seen)), "")


def _list_identities(seen: SeenMachine) -> list[str]:
    return [claim for claim in (seen.bmc_mac, seen.serial, seen.mac, seen.address) if claim]


def _merge(known: Sighting | None, seen: SeenMachine) -> SeenMachine:
    return from_json(SeenMachine, {**(to_stored(known.machine) if known else {}), **to_stored(seen)})


def _is_same(earlier: SeenMachine, later: SeenMachine) -> bool:
    """Whether two sights that share a claim are of one machine."""
    if earlier.bmc_mac and later.bmc_mac:
        return earlier.bmc_mac == later.bmc_mac
    if earlier.serial and later.serial:
        return earlier.serial == later.serial
    return True


LISTED_FOR = timedelta(days=30)
"""A machine that was not seen for so long is no longer listed: its board may have gone elsewhere."""
REPEATED_AFTER = timedelta(days=7)
"""A machine that says nothing new is recorded again after so long, so that it stays in the list."""
HEARSAY, MOST_HEARSAY_A_DAY = ("lease", "report"), 20_000
"""Sources that repeat what machines say of themselves, and how many news each may record in a day."""


@dataclass(slots=True)
class SeenMachines:
    """The machines that were ever seen, the id of the last entry about one, and how many a source gave in a day.

    A machine that comes again after `LISTED_FOR` begins anew.
    """

    register: MachineRegister = field(default_factory=MachineRegister)
    newest: str = ""
    counts: Counter[str] = field(default_factory=Counter)

    def copy(self) -> SeenMachines:
        """Return one that changes for itself."""
        return SeenMachines(self.register.copy(), self.newest, self.counts.copy())

    def add(self, entry: LedgerEntry) -> SeenMachines:
        """Add the next entry, and return this object."""
        seen = MachineSeenEntry.read(entry)
        known = self.register.find(seen.machine)
        if known and parse_time(entry.at) - parse_time(known.at) > LISTED_FOR:
            self.register.forget(seen.machine)
        self.register.add(Sighting(seen.machine, entry.at, seen.source))
        self.newest = entry.id
        self.counts[_name_day(seen.source, entry.at)] += 1
        return self


def _name_day(source: str, at: str) -> str:
    return f"{source} {at[:10]}"


SEEN_MACHINES = Projection((MachineSeenEntry.kind,), SeenMachines, SeenMachines.add, SeenMachines.copy)


def record_sightings(ledger: Ledger, seen: Iterable[SeenMachine], source: str, now: datetime) -> list[SeenMachine]:
    """Append an entry for each machine that says what the ledger does not have of it, and return these machines.

    Of hearsay, a source may have told only so many in a day: who asks for a lease can say anything.
    """
    known = read_projection(ledger, SEEN_MACHINES)
    entries, batch, last = list[LedgerEntry](), MachineRegister(), known.newest
    left = MOST_HEARSAY_A_DAY - known.counts[_name_day(source, format_time(now))]
    for machine in islice(seen, max(left, 0)) if source in HEARSAY else seen:
        earlier = known.register.find(machine)
        is_old = earlier is not None and now - parse_time(earlier.at) > REPEATED_AFTER
        if (is_old or known.register.says_news(machine)) and batch.says_news(machine):
            batch.add(Sighting(machine))
            # of two that record the same at once, one wins
            last = derive_id(MachineSeenEntry.kind, last, json.dumps(to_stored(machine), sort_keys=True))
            entries.append(MachineSeenEntry(machine, source).make_entry(last, format_time(now)))
    ledger.append(*entries)
    return [MachineSeenEntry.read(entry).machine for entry in entries]


def read_sightings(ledger: Ledger, now: datetime) -> list[Sighting]:
    """Return the machines that were seen lately, each as it was seen last."""
    sightings = read_projection(ledger, SEEN_MACHINES).register.sightings
    return [sighting for sighting in sightings if now - parse_time(sighting.at) <= LISTED_FOR]
