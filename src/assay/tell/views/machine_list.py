"""The machines that were seen: which node each is, what it says of itself, what contradicts that, and what to do."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from assay.act.boot.matching import MachineMatch, Sighting, Verdict, find_unseen, match_machines
from assay.act.ingest.bmc_takeovers import list_open_takeovers
from assay.ledger.store import Ledger
from assay.model.facts import frozen
from assay.model.fleet import Fleet

VERDICT_WORDS: dict[Verdict, str] = {
    "contradiction": "contradicts itself or the inventory: look before it boots",
    "misplaced": "stands where it does not belong: move it before it boots",
    "expected": "of a delivery: propose it with `assay discover --propose`",
    "stranger": "unknown: no delivery and no inventory has it",
    "node": "in the inventory",
}
"""In the order in which people should look."""
TODO: dict[Verdict, str] = {
    "contradiction": "Look at its labels. Then correct the inventory or the delivery, and scan again.",
    "misplaced": "Move it, or correct its place in the inventory. Then scan again.",
    "expected": "Propose its inventory entry.",
    "stranger": "Ask who plugged it in. If it is yours, declare its delivery.",
    "node": "",
}
SCAN_FIRST = "Let assay read its serial number and its certificate first: a MAC address is no proof, nor is a report."
PROPOSE = "assay discover --propose"


@frozen
class ListedMachine(MachineMatch):
    """A machine that was seen, and what to do."""

    recorded_at: str = ""
    """When its last news was recorded: ISO 8601 with the offset of UTC."""
    source: str = ""
    """Where that news came from."""
    todo: str = ""
    """What to do; "" for nothing."""
    command: str = ""
    """What to type; "" for nothing."""

    def describe(self) -> str:
        """Return what it says of itself, in a line."""
        seen = self.seen
        bmc = " ".join(part for part in (seen.bmc_mac, seen.address) if part)
        parts = [
            f"serial {seen.serial}" if seen.serial else "serial not read",
            " ".join(part for part in (seen.vendor, seen.model) if part),
            f"BMC {bmc}" if bmc else "",
            f"boots from {seen.mac}" if seen.mac else "",
            f"{seen.rack} U{seen.u}" if seen.rack else "",
        ]
        return ", ".join(part for part in parts if part)


@frozen
class UnseenMachine:
    """A machine of a delivery that nobody has seen yet."""

    node: str
    """The node that it shall be."""
    serial: str
    """Its serial number."""
    rack: str
    """The rack that it shall stand in."""
    u: int
    """Its place in the rack, in rack units."""
    delivery: str
    """The delivery that it belongs to."""


@frozen
class MachineList:
    """The machines that were seen, and those that are expected and were not seen."""

    machines: list[ListedMachine]
    """The machines that were seen, those first that people should look at."""
    not_seen: list[UnseenMachine]
    """The machines that are expected and were not seen."""
    factory_logins: list[str]
    """The nodes whose BMCs may still have the login with which they were shipped."""


def build_machine_list(fleet: Fleet, sightings: Sequence[Sighting], ledger: Ledger) -> MachineList:
    """Return the machines that were seen, and what the ledger says of factory logins."""
    matches = match_machines([sighting.machine for sighting in sightings], fleet)
    machines = [_list_machine(sighting, match) for sighting, match in zip(sightings, matches, strict=True)]
    ranks = {verdict: rank for rank, verdict in enumerate(VERDICT_WORDS)}
    machines.sort(
        key=lambda machine: (ranks[machine.verdict], machine.node, machine.seen.rack, -machine.seen.u, machine.seen.key)
    )
    unseen = [
        UnseenMachine(known.name, known.serial, known.rack, known.u, known.delivery)
        for known in sorted(find_unseen(matches, fleet), key=lambda known: (known.delivery, known.name))
    ]
    return MachineList(machines, unseen, list_open_takeovers(fleet, ledger))


def _list_machine(sighting: Sighting, match: MachineMatch) -> ListedMachine:
    todo, command = TODO[match.verdict], ""
    is_read = bool(match.seen.serial and match.seen.fingerprint)
    if match.verdict == "expected" and not is_read:
        todo = SCAN_FIRST
    if match.verdict == "expected" and is_read:
        command = PROPOSE
    elif match.verdict != "node" and match.seen.address:
        command = f"assay discover --scan {shlex.quote(match.seen.address)} --login"
    named = (match.seen, match.verdict, match.node, match.delivery, match.problems)
    return ListedMachine(*named, sighting.at, sighting.source, todo, command)
