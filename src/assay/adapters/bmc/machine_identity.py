"""Reads what a machine is from its BMC: serial number, model, place, and the BMC's MAC address. Needs a login."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from assay.adapters.bmc.bmc_client import BmcClient, open_bmc
from assay.adapters.bmc.credentials import UserPassword
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.adapters.bmc.service_root_scan import FoundBmc
from assay.adapters.bmc.session import Resource
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings
from assay.model.specs.seen_machine import SeenMachine

LOOK_S = 30.0


def read_machine(found: FoundBmc, port: int, credentials: UserPassword, quirks: BmcQuirkSet) -> SeenMachine:
    """Return what the machine behind a BMC says. Only the BMC with the fingerprint of the scan gets the credentials.

    Raises AssayError where it refuses them, or does not answer in time.
    """
    settings = NodeSettings(bmc_port=port, bmc_fingerprint=found.fingerprint)
    node = Node(found.address, "", "", "", 0, "", "", "", bmc_address=found.address, settings=settings)
    with open_bmc(node, deadline_s=LOOK_S, quirks=quirks, credentials=credentials) as bmc:
        return read_identity(bmc, found)


def read_identity(bmc: BmcClient, found: FoundBmc) -> SeenMachine:
    """Return the identity that a BMC gives; what it does not show is left empty."""
    system = bmc.system()
    said = {
        "address": found.address,
        "fingerprint": found.fingerprint,
        "serial": (system.get("SerialNumber") or "").strip(),
        "vendor": system.get("Manufacturer") or found.vendor,
        "model": system.get("Model") or found.product,
        "bmc_mac": next(_list_bmc_macs(bmc, system), ""),
        **_read_place(bmc, system),
    }
    return SeenMachine.parse(said)


def _list_bmc_macs(bmc: BmcClient, system: Resource) -> Iterator[str]:
    """Yield the MAC addresses of the BMC's interfaces, the one with the address that we use first."""
    interfaces: list[Resource] = []
    with contextlib.suppress(AssayError):  # a BMC without this collection shows its machine all the same
        for link in system.get("Links", {}).get("ManagedBy", []):
            interfaces += bmc.members(bmc.follow(bmc.get(link["@odata.id"]), "EthernetInterfaces", 1))
    addresses = {bmc.node.bmc_address}
    for is_ours in (True, False):
        for interface in interfaces:
            own = {one.get("Address") for one in interface.get("IPv4Addresses") or []}
            mac = interface.get("MACAddress") or interface.get("PermanentMACAddress")
            if mac and bool(own & addresses) == is_ours:
                yield str(mac)


def _read_place(bmc: BmcClient, system: Resource) -> Resource:
    """Return `rack` and `u` from the chassis of the system, where somebody has written them into the BMC."""
    with contextlib.suppress(AssayError):
        for link in system.get("Links", {}).get("Chassis", []):
            place = (bmc.get(link["@odata.id"]).get("Location") or {}).get("Placement") or {}
            if place.get("Rack"):
                return {"rack": place["Rack"], "u": place.get("RackOffset")}
    return {}
