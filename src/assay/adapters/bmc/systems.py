"""Finds what is the node's among the systems and chassis of a BMC: the BMC of a blade serves several nodes.

A system is the node's by the inventory's `bmc_system`, or by the serial number. Boards of a node that the BMC shows as
systems of their own (HGX baseboards) have no BIOS.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from assay.adapters.bmc.errors import BmcResourceMissing
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.errors import AssayError
from assay.model.evidence import fold_serial
from assay.model.node import Node

SYSTEM_RESET = "#ComputerSystem.Reset"
PARTS = ("Component", "Module", "Card", "Cartridge", "Expansion", "Zone")
"""Values of ChassisType that are a part of an enclosure, not an enclosure."""
SERIAL_SHARED_WITH = "assay.serial_shared_with"
"""The key, in a system that was chosen, of the other systems with its serial number: a blade's, not the node's."""


def choose_systems(systems: Sequence[Resource], node: Node, where: str) -> list[Resource]:
    """Return the node's system, then its boards. Raises AssayError where several may be the node's, or none.

    Without `bmc_system`, and where none shows the node's serial number, the only system with a BIOS is read.
    """
    wanted = node.settings.bmc_system
    named = [system for system in systems if _ident(system) == wanted]
    own = named if wanted else [system for system in systems if has_serial(system, node.serial)] or systems
    best = max(map(_rank, own), default=None)
    hosts = [system for system in own if _rank(system) == best]
    if len(hosts) != 1:
        idents = ", ".join(map(_ident, systems))
        which = f"has no system {wanted}" if wanted else f"shows serial number {node.serial} on none or on several"
        problem = f"the BMC {which} of {idents}: which is the node's is unknown"
        raise AssayError(problem, where=where, fix="declare bmc_system, the Id of the node's system, in the inventory")
    ours = hosts[0]
    serial = str(ours.get("SerialNumber") or "")
    others = [system for system in systems if system is not ours]
    same = [_ident(system) for system in others if _rank(system) == best and has_serial(system, serial)]
    boards = [system for system in others if _rank(system) < _rank(ours) and not _rank(system)[0]]
    return [{**ours, SERIAL_SHARED_WITH: same} if same else ours, *boards]


def has_serial(system: Resource, serial: str) -> bool:
    """Whether a system shows this serial number: spaces and case do not count."""
    shown, wanted = (fold_serial(str(text or "")) for text in (system.get("SerialNumber"), serial))
    return bool(shown) and shown == wanted


def _ident(system: Resource) -> str:
    return str(system.get("Id") or system.get("@odata.id", "").rstrip("/").rpartition("/")[2])


def _rank(system: Resource) -> tuple[bool, bool]:
    return "Bios" in system or "BiosVersion" in system, SYSTEM_RESET in system.get("Actions", {})


def list_chassis(bmc: RedfishSession, systems: Sequence[Resource], *, everywhere: bool = True) -> Iterator[Resource]:
    """Yield the chassis of the node's system: first the one that holds its parts, then what that contains.

    Mostly the system links to it. Some systems (GB200) link to the board of their BMC, or to nothing (blades of HPE
    Cray): then a chassis is theirs that links to them or has their name; any, where the BMC serves no other node.
    With `everywhere`, those come last too where the system links to an enclosure. Raises BmcResourceMissing for none.
    """
    system = systems[0]
    linked = read_links(bmc, system, "Chassis")
    yielded: dict[str, Resource] = {}

    def add(candidates: Sequence[Resource]) -> Iterator[Resource]:
        for chassis in sorted(candidates, key=_is_part):
            if chassis.get("@odata.id", "") not in ("", *yielded):
                yielded[chassis["@odata.id"]] = chassis
                yield chassis

    def add_contained() -> Iterator[Resource]:
        for chassis in list(yielded.values()):
            yield from add(read_links(bmc, chassis, "Contains"))

    yield from add([chassis for chassis in linked if not _is_part(chassis)])
    yield from add_contained()
    if everywhere or not yielded:
        listed = bmc.members(bmc.follow(bmc.root, "Chassis", 1)) if "Chassis" in bmc.root else []
        owners = [(chassis, read_link_paths(chassis, "ComputerSystems")) for chassis in listed]
        yield from add([chassis for chassis, paths in owners if system.get("@odata.id") in paths])
        yield from add(
            [chassis for chassis, paths in owners if not paths and chassis.get("Id", "") == system.get("Id")]
        )
        yield from add([chassis for chassis in listed if not (yielded or linked or bmc.neighbours)])
        yield from add(linked)
        yield from add_contained()
    if not yielded:
        raise BmcResourceMissing("the BMC shows no Chassis of the system", where=bmc.where)


def read_links(bmc: RedfishSession, resource: Resource, kind: str) -> list[Resource]:
    """Return what a resource links to, without links to nothing."""
    linked: list[Resource] = []
    for path in read_link_paths(resource, kind):
        with contextlib.suppress(BmcResourceMissing):
            linked.append(bmc.get(path))
    return linked


def read_link_paths(resource: Resource, kind: str) -> list[str]:
    """Return the paths that a resource links to."""
    return [link["@odata.id"] for link in (resource.get("Links") or {}).get(kind) or []]


def _is_part(chassis: Resource) -> bool:
    return chassis.get("ChassisType") in PARTS
