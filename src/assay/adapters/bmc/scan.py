"""Finds BMCs at addresses by Redfish's service root, which needs no login and no secret.

With a login, it reads what the machine behind a BMC is: serial number, model, place, and the BMC's MAC address.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network, summarize_address_range

from assay.adapters.bmc.client import BmcClient, open_bmc
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.adapters.bmc.session import Resource, UserPassword
from assay.adapters.bmc.tls import make_pinned_context
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.node import Node
from assay.model.specs.machines import SeenMachine
from assay.model.specs.node_settings import NodeSettings

ASKED_AT_ONCE = 64
ANSWER_S = 3.0
LOOK_S = 30.0
MOST_ADDRESSES = 65_536
MOST_BYTES = 256 * 1024
ROOT = "/redfish/v1/"
Network = IPv4Network | IPv6Network


@frozen
class FoundBmc:
    """A Redfish service: its address, the `sha256:…` of its certificate, and what its root says before any login."""

    address: str
    fingerprint: str
    vendor: str = ""
    product: str = ""
    uuid: str = ""


def list_addresses(ranges: Iterable[str]) -> list[str]:
    """Return the addresses of networks (`10.1.0.0/24`), ranges (`10.1.0.5-10.1.0.9`) and single addresses.

    Raises AssayError for what is none of them, and for too many.
    """
    addresses: dict[str, None] = {}
    for text in ranges:
        try:
            networks = _read_networks(text.strip())
        except (ValueError, TypeError) as error:
            fix = "write 10.1.0.0/24, 10.1.0.5-10.1.0.9 or 10.1.0.7"
            raise AssayError(f"{text} is no range of addresses: {error}", where="--scan", fix=fix) from None
        if len(addresses) + sum(network.num_addresses for network in networks) > MOST_ADDRESSES:
            fix = f"scan at most {MOST_ADDRESSES:,} addresses at once"
            raise AssayError(f"{text} has too many addresses", where="--scan", fix=fix)
        for network in networks:
            hosts = network.hosts() if "/" in text else network  # a range has neither network nor broadcast address
            addresses |= dict.fromkeys(map(str, hosts))
    return list(addresses)


def scan_service_roots(
    addresses: Iterable[str], port: int = 443, progress: Callable[[], None] = lambda: None
) -> Iterator[FoundBmc]:
    """Yield the services among the addresses, in their order. `progress` is called after each answer."""

    def ask(address: str) -> FoundBmc | None:
        try:
            return ask_service_root(address, port)
        finally:
            progress()

    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        yield from filter(None, pool.map(ask, addresses))


def ask_service_root(address: str, port: int = 443) -> FoundBmc | None:
    """Return the Redfish service at an address, None if there is none.

    Any certificate is accepted, since nothing secret is said; its fingerprint is what a person confirms.
    """
    connection = http.client.HTTPSConnection(address, port, timeout=ANSWER_S, context=make_pinned_context())
    try:
        connection.connect()
        certificate = connection.sock.getpeercert(binary_form=True) or b""
        connection.request("GET", ROOT, headers={"Accept": "application/json"})
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    root = _read_root(answer.status, body)
    if root is None:
        return None
    texts = [str(root.get(name) or "") for name in ("Vendor", "Product", "UUID")]
    return FoundBmc(address, f"sha256:{hashlib.sha256(certificate).hexdigest()}", *texts)


def _read_root(status: int, body: bytes) -> dict[str, object] | None:
    """Return the service root, {} where it is shown after a login only, None if this is no Redfish service."""
    try:
        root = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(root, dict):
        return None
    if status == 401:
        return {} if "error" in root else None
    return root if status == 200 and "RedfishVersion" in root else None


def _read_networks(text: str) -> list[Network]:
    first, dash, last = text.partition("-")
    if not dash:
        return [ip_network(text)]
    return list(summarize_address_range(ip_address(first.strip()), ip_address(last.strip())))


def read_machine(service: FoundBmc, port: int, credentials: UserPassword, quirks: BmcQuirkSet) -> SeenMachine:
    """Return what the machine behind a BMC says. Only the BMC with the fingerprint of the scan gets the credentials.

    Raises AssayError where it refuses them, or does not answer in time.
    """
    settings = NodeSettings(bmc_port=port, bmc_fingerprint=service.fingerprint)
    node = Node(service.address, "", "", "", 0, "", "", "", bmc_address=service.address, settings=settings)
    with open_bmc(node, deadline_s=LOOK_S, quirks=quirks, credentials=credentials) as bmc:
        return read_identity(bmc, service)


def read_identity(bmc: BmcClient, service: FoundBmc) -> SeenMachine:
    """Return the identity that a BMC gives; what it does not show is left empty."""
    system = bmc.system()
    identity = {
        "address": service.address,
        "fingerprint": service.fingerprint,
        "serial": (system.get("SerialNumber") or "").strip(),
        "vendor": system.get("Manufacturer") or service.vendor,
        "model": system.get("Model") or service.product,
        "bmc_mac": next(_list_bmc_macs(bmc, system), ""),
        **_read_place(bmc, system),
    }
    return SeenMachine.parse(identity)


def _list_bmc_macs(bmc: BmcClient, system: Resource) -> Iterator[str]:
    """Yield the MAC addresses of the BMC's interfaces, the one with the address that we use first."""
    interfaces: list[Resource] = []
    with contextlib.suppress(AssayError):  # a BMC without this collection shows its machine all the same
        for link in system.get("Links", {}).get("ManagedBy", []):
            interfaces += bmc.members(bmc.follow(bmc.get(link["@odata.id"]), "EthernetInterfaces", 1))
    addresses = {bmc.node.bmc_address}
    for is_ours in (True, False):
        for interface in interfaces:
            own = {address.get("Address") for address in interface.get("IPv4Addresses") or []}
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
