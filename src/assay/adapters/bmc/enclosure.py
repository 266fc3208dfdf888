"""Finds the chassis that holds a system's parts: its fans, power supplies and sensors."""

from __future__ import annotations

from assay.adapters.bmc.errors import BmcResourceMissing
from assay.adapters.bmc.session import RedfishSession, Resource

PARTS = ("Component", "Module", "Card", "Cartridge", "Expansion", "Zone")
"""Values of ChassisType that are a part of an enclosure, not an enclosure."""


def find_enclosure(bmc: RedfishSession, system: Resource) -> Resource:
    """Return the chassis that holds a system's parts. Raises AssayError where the system has none.

    Mostly it is the first that the system links to. Some systems (GB200) link to the board of their BMC; then it is the
    chassis that links to the system and is no part itself.
    """
    links = (system.get("Links") or {}).get("Chassis", [])
    linked = [bmc.get(link["@odata.id"]) for link in links]
    found = [chassis for chassis in linked if chassis.get("ChassisType") not in PARTS]
    if not found and "Chassis" in bmc.root:
        every = bmc.members(bmc.follow(bmc.root, "Chassis", 1))
        found = [one for one in every if one.get("ChassisType") not in PARTS and (not linked or _holds(one, system))]
    if not (found or linked):
        raise BmcResourceMissing("the BMC shows no Chassis of the system", where=bmc.where)
    return [*found, *linked][0]


def _holds(chassis: Resource, system: Resource) -> bool:
    systems = (chassis.get("Links") or {}).get("ComputerSystems") or []
    return system.get("@odata.id") in [link.get("@odata.id") for link in systems]
