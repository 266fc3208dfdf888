"""What machines boot by: scripts of iPXE and GRUB, and what a DHCP server (dnsmasq, Kea) must answer to get there.

TFTP stays with dnsmasq: a firmware that knows no HTTP gets iPXE by it, and iPXE goes on by HTTP.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_interface
from urllib.parse import quote, urlsplit

from assay.model.fleet import Fleet
from assay.model.specs.image import ATTEMPT, IMAGE, Image
from assay.model.specs.provisioning import Provisioning

BOOT_PATH = "/boot/v1"
QUESTION = "script?mac=${netX/mac}&serial=${serial:uristring}&uuid=${uuid}"


@dataclass(frozen=True, slots=True)
class BootOrder:
    """What one machine boots: the node's name, its image, and the address of the server without a slash at the end.

    `attempt`: names this start in what the node reports. `arguments_of_spec`: the node spec's `kernel_cmdline`.
    """

    node: str
    image: Image
    url: str
    attempt: str
    arguments_of_spec: Sequence[str] = ()

    @property
    def arguments(self) -> list[str]:
        """The arguments of the kernel: the image's own, then those that lead the node to its data."""
        data = f"{self.url}{BOOT_PATH}/data/{quote(self.attempt, safe='')}/"
        initrds = [f"initrd={name}" for name in self.image.artifacts if name.startswith("initrd")]
        root = self.image.root
        disk = [f"assay.root={self.locate('root')}", f"assay.root_sha256={root.sha256}"] if root else []
        named = [f"{ATTEMPT}={self.attempt}", f"{IMAGE}={self.image.label}"]
        source = f"ds={self.image.data_source};s={data}"
        return [*initrds, *self.image.arguments, *self.arguments_of_spec, *disk, *named, source]

    def locate(self, artifact: str) -> str:
        """Return the URL of a file of the image. It names the digest, so that no cache gives out an older file."""
        return f"{self.url}{BOOT_PATH}/images/{self.image.artifacts[artifact].sha256}/{artifact}"


def render_boot_script(order: BootOrder) -> str:
    """Return the iPXE script. With signatures, iPXE starts only what it has verified."""
    started = [name for name in order.image.artifacts if name != "root"]
    lines = ["#!ipxe", f"echo assay: {order.node} boots {order.image.name} ({order.image.version})"]
    for name in started:
        arguments = f" {' '.join(order.arguments)}" if name == "kernel" else ""
        lines.append(f"{name.rstrip('0123456789')} --name {name} {order.locate(name)}{arguments} || goto failed")
    if order.image.signed_by:
        lines += [f"imgverify {name} {order.locate(name)}.sig || goto failed" for name in started]
    lines += ["boot || goto failed", ":failed", "echo assay: the boot failed, once more in 30 s", "sleep 30", "reboot"]
    return "\n".join(lines) + "\n"


def render_grub_config(order: BootOrder) -> str:
    """Return the same start for GRUB. It cannot verify the signatures of an image: then nothing boots."""
    if order.image.signed_by:
        return render_grub_wait(f"image {order.image.name} is signed for iPXE, and GRUB cannot verify that", 600)
    host, files = order.url.partition("://")[2], order.image.artifacts
    paths = {name: f"(http,{host}){BOOT_PATH}/images/{files[name].sha256}/{name}" for name in files if name != "root"}
    initrds = " ".join(path for name, path in paths.items() if name != "kernel")
    # GRUB's shell takes a quoted word as it is
    words = [word.replace("'", "'\\''") for word in order.arguments if not word.startswith("initrd=")]
    arguments = " ".join(f"'{word}'" for word in words)
    lines = ["insmod http", f"echo 'assay: {order.node} boots {order.image.name} ({order.image.version})'"]
    lines += [f"linux {paths['kernel']} {arguments}", *([f"initrd {initrds}"] if initrds else []), "boot"]
    return "\n".join(lines) + "\n"


def render_grub_wait(reason: str, pause_s: float) -> str:
    """Return a GRUB configuration that shows why this machine boots nothing, waits, and starts the machine again."""
    return f"echo 'assay: {_as_words(reason)}'\nsleep {math.ceil(pause_s)}\nreboot\n"


def render_first_script(server: str) -> str:
    """Return the script that a DHCP server names: it tells `server` (`http://HOST:PORT`) which machine asks."""
    return f"#!ipxe\n{_ask(server)}\n"


def render_wait_script(server: str, reason: str, pause_s: float) -> str:
    """Return an iPXE script that shows people why this machine boots nothing, waits, and asks `server` once more."""
    lines = ["#!ipxe", f"echo assay: {_as_words(reason)}", "echo this machine: ${netX/mac} serial ${serial}"]
    return "\n".join([*lines, f"sleep {math.ceil(pause_s)}", _ask(server)]) + "\n"


def _ask(server: str) -> str:
    return f"chain --replace {server}{BOOT_PATH}/{QUESTION} || reboot"


def _as_words(text: str) -> str:
    """Return a text that is no command of iPXE, whatever a machine has called itself."""
    return "".join(char if char.isalnum() or char in " .,:;()_-/" else "?" for char in text)


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
    host = urlsplit(provisioning.url).hostname or ""
    tftp = {"next-server": host} if re.fullmatch(r"[0-9.]+", host) else {}  # Kea takes no name there
    by_tftp = [_make_class(name, PXE_ARCHITECTURES[name], loader) | tftp for name, loader in TFTP_LOADERS.items()]
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
    option = {"option-data": [{"name": "vendor-class-identifier", "data": vendor_class}]} if vendor_class else {}
    return {"name": name, "test": f"not member('ipxe') and ({tests})", "boot-file-name": file, **option}


def _find_address(fleet: Fleet, node: str, mac: str) -> str:
    network = fleet.nodes[node].settings.node_network
    links = network.ethernets.values() if network else ()
    addresses = [address for link in links if link.mac.lower() == mac for address in link.addresses]
    fixed = (ip_interface(address) for address in addresses)
    return next((str(address.ip) for address in fixed if address.version == 4), "")
