"""What a DHCP server must answer, so that machines boot from assay: for dnsmasq, and for Kea.

TFTP stays with dnsmasq: a firmware that knows no HTTP gets iPXE by it, and iPXE goes on by HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_interface

from assay.act.boot.boot_script import BOOT_PATH
from assay.model.fleet import Fleet
from assay.model.specs.provisioning_spec import Provisioning

PXE_ARCHITECTURES = {"bios": (0,), "efi-x86_64": (7, 9), "efi-aarch64": (11,)}
HTTP_ARCHITECTURES = {"http-x86_64": (16,), "http-aarch64": (19,)}
"""Client system architectures of option 93, as the registry of RFC 5970 numbers them."""
TFTP_LOADERS = {"bios": "undionly.kpxe", "efi-x86_64": "ipxe.efi", "efi-aarch64": "ipxe-arm64.efi"}
HTTP_LOADERS = {"http-x86_64": "ipxe.efi", "http-aarch64": "ipxe-arm64.efi"}
IPXE_OPTION = 175


@dataclass(frozen=True, slots=True)
class DhcpHost:
    """A node that boots: its name, the MAC address from which it asks, and its address ("" where DHCP chooses one)."""

    name: str
    mac: str
    address: str


def list_dhcp_hosts(fleet: Fleet, provisioning: Provisioning) -> list[DhcpHost]:
    """Return the nodes of a Provisioning with a MAC address, by name."""
    nodes = (node for node in fleet.nodes.values() if provisioning.applies_to(node.pool))
    hosts = [DhcpHost(node.name, mac, _find_address(fleet, node.name, mac)) for node in nodes for mac in node.boot_macs]
    return sorted(hosts, key=lambda host: (host.name, host.mac))


def render_dnsmasq(provisioning: Provisioning, hosts: list[DhcpHost]) -> str:
    """Return lines for dnsmasq.conf. A site adds its own `dhcp-range` and `tftp-root`."""
    return "\n".join(_list_dnsmasq_lines(provisioning, hosts)) + "\n"


def _list_dnsmasq_lines(provisioning: Provisioning, hosts: list[DhcpHost]) -> Iterator[str]:
    base = f"{provisioning.url}{BOOT_PATH}"
    yield f"# Machines of the Provisioning {provisioning.name} boot from assay. From `assay boot dhcp --for dnsmasq`."
    yield "# Add `dhcp-range=…` of your network; beside another DHCP server: `dhcp-range=ADDRESS,proxy`."
    yield "# For machines that know no HTTP: `enable-tftp` and `tftp-root=…` with the loaders named below."
    yield f"dhcp-match=set:ipxe,{IPXE_OPTION}"
    for name, numbers in {**PXE_ARCHITECTURES, **HTTP_ARCHITECTURES}.items():
        yield from (f"dhcp-match=set:{name},option:client-arch,{number}" for number in numbers)
    yield f"dhcp-boot=tag:ipxe,{base}/ipxe"
    yield from (f"dhcp-boot=tag:!ipxe,tag:{name},{loader}" for name, loader in TFTP_LOADERS.items())
    for name, loader in HTTP_LOADERS.items():
        yield f"dhcp-option-force=tag:!ipxe,tag:{name},option:vendor-class,HTTPClient"
        yield f"dhcp-boot=tag:!ipxe,tag:{name},{base}/loaders/{loader}"
    for host in hosts:
        yield ",".join(filter(None, (f"dhcp-host={host.mac}", host.address, host.name)))


def render_kea(provisioning: Provisioning, hosts: list[DhcpHost]) -> str:
    """Return a configuration for kea-dhcp4. A site adds its own interfaces, subnets and pools."""
    base = f"{provisioning.url}{BOOT_PATH}"
    by_tftp = [_make_class(name, PXE_ARCHITECTURES[name], loader) for name, loader in TFTP_LOADERS.items()]
    by_http = [
        _make_class(name, HTTP_ARCHITECTURES[name], f"{base}/loaders/{loader}", vendor_class="HTTPClient")
        for name, loader in HTTP_LOADERS.items()
    ]
    ipxe = {"name": "ipxe", "test": f"option[{IPXE_OPTION}].exists", "boot-file-name": f"{base}/ipxe"}
    reservations = [
        {"hw-address": host.mac, "hostname": host.name, **({"ip-address": host.address} if host.address else {})}
        for host in hosts
    ]
    content = {
        "Dhcp4": {
            "client-classes": [ipxe, *by_tftp, *by_http],
            "reservations": reservations,
            "reservations-global": True,
            "interfaces-config": {"interfaces": []},
            "subnet4": [],
        }
    }
    return json.dumps(content, indent=2) + "\n"


def _make_class(name: str, numbers: tuple[int, ...], file: str, vendor_class: str = "") -> dict[str, object]:
    tests = " or ".join(f"option[93].hex == 0x{number:04x}" for number in numbers)
    said = {"option-data": [{"name": "vendor-class-identifier", "data": vendor_class}]} if vendor_class else {}
    return {"name": name, "test": f"not member('ipxe') and ({tests})", "boot-file-name": file, **said}


def _find_address(fleet: Fleet, node: str, mac: str) -> str:
    network = fleet.nodes[node].settings.node_network
    links = network.ethernets.values() if network else ()
    addresses = [one for link in links if link.mac.lower() == mac for one in link.addresses]
    fixed = (ip_interface(address) for address in addresses)
    return next((str(one.ip) for one in fixed if one.version == 4), "")
