"""What machines boot by: scripts of iPXE and GRUB, and what a DHCP server (dnsmasq, Kea) must answer to get there.

TFTP stays with dnsmasq: a firmware that knows no HTTP gets iPXE by it, and iPXE goes on by HTTP.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import Any
from urllib.parse import quote, urlsplit

from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.image import ATTEMPT, IMAGE, Image
from assay.model.specs.provisioning import Provisioning

BOOT_PATH = "/boot/v1"
QUESTION = "script?mac=${netX/mac}&serial=${serial:uristring}&uuid=${uuid}"


@frozen
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


@frozen
class Loader:
    """What a firmware starts first. `numbers`: its system architectures, as the registry of RFC 5970 has them."""

    name: str
    numbers: tuple[int, ...]
    file: str
    by_http: bool = False

    def locate(self, provisioning: Provisioning) -> str:
        """Return its URL. Over IPv4, a firmware without HTTP is given the name of the file alone."""
        if self.by_http:
            return f"{provisioning.url}{BOOT_PATH}/loaders/{self.file}"
        return f"tftp://{re.sub(r':[0-9]+$', '', urlsplit(provisioning.url).netloc)}/{self.file}"


LOADERS = (
    Loader("bios", (0,), "undionly.kpxe"),
    Loader("efi-x86_64", (7, 9), "ipxe.efi"),
    Loader("efi-aarch64", (11,), "ipxe-arm64.efi"),
    Loader("http-x86_64", (16,), "ipxe.efi", by_http=True),
    Loader("http-aarch64", (19,), "ipxe-arm64.efi", by_http=True),
)
LOADERS_6 = LOADERS[1:]
IPXE_OPTION = 175
HTTP_CLIENT_6 = (343).to_bytes(4) + len("HTTPClient").to_bytes(2) + b"HTTPClient"
"""The vendor class by which UEFI knows an answer for HTTP boot: Intel's enterprise number, length and text."""


@frozen
class DhcpHost:
    """A node's interface that boots: how a DHCP server knows it, and its addresses (none where DHCP chooses one).

    `circuit_id`, `remote_id`: what its switch adds to its requests (option 82 of IPv4). With one of them, IPv4 knows
    the interface by its port alone, whichever adapter is there.
    """

    name: str
    mac: str
    addresses: tuple[IPv4Interface | IPv6Interface, ...] = ()
    circuit_id: bytes = b""
    remote_id: bytes = b""

    def list_addresses(self, version: int) -> list[str]:
        """Return the addresses of one version of IP, without prefix length."""
        return [str(address.ip) for address in self.addresses if address.version == version]

    @property
    def port(self) -> dict[str, bytes]:
        """The sub-options of option 82 by their names in dnsmasq."""
        both = {"circuitid": self.circuit_id, "remoteid": self.remote_id}
        return {name: value for name, value in both.items() if value}


def list_dhcp_hosts(fleet: Fleet, provisioning: Provisioning) -> list[DhcpHost]:
    """Return the interfaces of a Provisioning's nodes that have a MAC address or a port, by name."""
    nodes = (node for node in fleet.nodes.values() if provisioning.applies_to(node.pool))
    return sorted((host for node in nodes for host in _list_hosts(node)), key=lambda host: (host.name, host.mac))


def _list_hosts(node: Node) -> Iterator[DhcpHost]:
    network = node.settings.node_network
    links, macs = network.ethernets.values() if network else (), dict.fromkeys(node.boot_macs)
    has_port = any(link.circuit_id or link.remote_id for link in links)
    for link in links:
        host = DhcpHost(
            node.name,
            mac=link.mac.lower() if link.mac.lower() in macs else "",
            addresses=tuple(ip_interface(address) for address in link.addresses),
            circuit_id=_read_id(link.circuit_id),
            remote_id=_read_id(link.remote_id),
        )
        macs.pop(host.mac, None)
        if host.mac or host.port:
            yield host
    yield from (DhcpHost(node.name, mac) for mac in macs if not has_port)  # a port without `mac` is of this adapter


def _read_id(declared: str) -> bytes:
    return bytes.fromhex(declared[2:]) if re.fullmatch(r"0x([0-9a-fA-F]{2})+", declared) else declared.encode()


def render_dnsmasq(provisioning: Provisioning, hosts: Sequence[DhcpHost]) -> str:
    """Return lines for dnsmasq.conf. A site adds its own `dhcp-range` and `tftp-root`."""
    return "\n".join(_list_dnsmasq_lines(provisioning, hosts)) + "\n"


def _list_dnsmasq_lines(provisioning: Provisioning, hosts: Sequence[DhcpHost]) -> Iterator[str]:
    first = f"{provisioning.url}{BOOT_PATH}/ipxe"
    yield f"# Machines of the Provisioning {provisioning.name} boot from assay. From `assay boot dhcp --for dnsmasq`."
    yield "# Add `dhcp-range=…` of your networks; beside another DHCP server: `dhcp-range=ADDRESS,proxy`. As declared:"
    for version, networks in ((4, _list_networks(hosts, 4)), (6, _list_networks(hosts, 6))):
        for start, network in networks.items():
            size = network.netmask if version == 4 else network.prefixlen
            yield f"# dhcp-range={start.partition('/')[0]},static,{size}"
    yield "# For machines that know no HTTP: `enable-tftp` and `tftp-root=…` with the loaders named below."
    yield f"dhcp-match=set:ipxe,{IPXE_OPTION}"
    yield "dhcp-userclass=set:ipxe,iPXE"
    yield from (
        f"dhcp-match=set:{each.name},option:client-arch,{number}" for each in LOADERS for number in each.numbers
    )
    yield from (
        f"dhcp-match=set:{each.name},option6:61,00:{number:02x}" for each in LOADERS_6 for number in each.numbers
    )
    yield f"dhcp-boot=tag:ipxe,{first}"
    yield f"dhcp-option=tag:ipxe,option6:bootfile-url,{first}"
    for loader in LOADERS:
        tags = f"tag:!ipxe,tag:{loader.name}"
        if loader.by_http:
            yield f"dhcp-option-force={tags},option:vendor-class,HTTPClient"
            # dnsmasq puts a length of two bytes before it; UEFI looks for `HTTPClient` from the sixth byte on
            yield f"dhcp-option-force={tags},option6:16,UEFIHTTPClient"
        yield f"dhcp-boot={tags},{loader.locate(provisioning) if loader.by_http else loader.file}"
        if loader in LOADERS_6:
            yield f"dhcp-option={tags},option6:bootfile-url,{loader.locate(provisioning)}"
    if any(host.port for host in hosts):
        yield "dhcp-proxy"  # a machine that renews asks its relay, which knows its port, and not this server
    for number, host in enumerate(hosts):
        six = [f"[{address}]" for address in host.list_addresses(6)]
        four, name = host.list_addresses(4)[:1], host.name
        yield from (f"dhcp-{key}=set:{key}-{number},{value.hex(':')}" for key, value in host.port.items())
        if host.port:
            yield ",".join(("dhcp-host=*:*:*:*:*:*", *(f"tag:{key}-{number}" for key in host.port), *four, name))
        if host.mac and (six or not host.port):
            yield ",".join((f"dhcp-host={host.mac}", *(["tag:dhcpv6"] if host.port else four), *six, name))


def _list_networks(hosts: Sequence[DhcpHost], version: int) -> dict[str, Any]:
    networks = {address.network for host in hosts for address in host.addresses if address.version == version}
    return {str(network): network for network in sorted(networks, key=lambda network: network.network_address.packed)}


def render_kea(provisioning: Provisioning, hosts: Sequence[DhcpHost]) -> str:
    """Return a configuration for kea-dhcp4, with the subnets of the declared addresses. A site adds its interfaces.

    Kea reserves by a circuit only where no other switch has the same, so a port is a class, with a pool of one address.
    """
    host = urlsplit(provisioning.url).hostname or ""
    tftp = {"next-server": host} if re.fullmatch(r"[0-9.]+", host) else {}  # Kea takes no name there
    classes = [_make_class("ipxe", f"option[{IPXE_OPTION}].exists", boot_file=f"{provisioning.url}{BOOT_PATH}/ipxe")]
    for each in LOADERS:
        vendor = [{"name": "vendor-class-identifier", "data": "HTTPClient"}] if each.by_http else []
        file = each.locate(provisioning) if each.by_http else each.file
        more = {} if each.by_http else tftp
        classes.append(_make_class(each.name, _test_architecture(93, each), vendor, boot_file=file) | more)
    pools = dict[str, list[dict[str, Any]]]()
    for number, port in enumerate(host for host in hosts if host.port):
        options = zip(("relay4[1]", "relay4[2]"), (port.circuit_id, port.remote_id), strict=True)
        name, test = (
            f"port-{number}",
            " and ".join(f"{option}.hex == 0x{value.hex()}" for option, value in options if value),
        )
        classes.append(_make_class(name, test, [{"name": "host-name", "data": port.name}]))
        for address in (address for address in port.addresses[:1] if address.version == 4):
            pool = {"pool": f"{address.ip}/32", "client-class": name}
            pools.setdefault(str(address.network), []).append(pool)
    reservations = [
        {"hw-address": host.mac, "hostname": host.name, **({"ip-address": address[0]} if address else {})}
        for host in hosts
        if not host.port
        for address in [host.list_addresses(4)]
    ]
    return _render_kea(4, classes, reservations, hosts, pools)


def render_kea6(provisioning: Provisioning, hosts: Sequence[DhcpHost]) -> str:
    """Return a configuration for kea-dhcp6, with the subnets of the declared addresses. A site adds its interfaces."""
    first = [{"name": "bootfile-url", "data": f"{provisioning.url}{BOOT_PATH}/ipxe"}]
    classes = [_make_class("ipxe", "substring(option[15].hex, 2, 4) == 'iPXE'", first)]
    vendor: dict[str, object] = {"code": 16, "csv-format": False, "data": HTTP_CLIENT_6.hex(), "always-send": True}
    for each in LOADERS_6:
        options = [{"name": "bootfile-url", "data": each.locate(provisioning)}, *([vendor] if each.by_http else [])]
        classes.append(_make_class(each.name, _test_architecture(61, each), options))
    reservations = [
        {"hw-address": host.mac, "hostname": host.name, "ip-addresses": host.list_addresses(6)}
        for host in hosts
        if host.mac
    ]
    return _render_kea(6, classes, reservations, hosts, {})


def _test_architecture(option: int, loader: Loader) -> str:
    tests = " or ".join(f"option[{option}].hex == 0x{number:04x}" for number in loader.numbers)
    return f"not member('ipxe') and ({tests})"


def _make_class(name: str, test: str, options: Sequence[object] = (), boot_file: str = "") -> dict[str, object]:
    more = {"boot-file-name": boot_file} if boot_file else {}
    return {"name": name, "test": test, **more, **({"option-data": [*options]} if options else {})}


def _render_kea(
    version: int,
    classes: list[dict[str, object]],
    reservations: Sequence[Mapping[str, object]],
    hosts: Sequence[DhcpHost],
    pools: Mapping[str, list[dict[str, Any]]],
) -> str:
    networks = enumerate(_list_networks(hosts, version), start=1)
    content = {
        "client-classes": classes,
        "reservations": reservations,
        "reservations-global": True,
        "interfaces-config": {"interfaces": []},
        f"subnet{version}": [{"id": number, "subnet": name, "pools": pools.get(name, [])} for number, name in networks],
    }
    return json.dumps({f"Dhcp{version}": content}, indent=2) + "\n"
