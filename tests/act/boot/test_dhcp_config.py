"""What DHCP servers are given: taken by dnsmasq and Kea themselves, with each way to boot and each node."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from ipaddress import ip_interface
from pathlib import Path
from typing import Any

import pytest

from assay.act.boot.script import DhcpHost, list_dhcp_hosts, render_dnsmasq, render_kea, render_kea6
from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from tests.support.places import ROOT

EXAMPLE = ROOT
PATHS = "/usr/sbin:/sbin:/usr/bin:/bin"
MAC = "02:00:00:00:00:01"


def make_host(name: str, mac: str, *addresses: str, **port: bytes) -> DhcpHost:
    return DhcpHost(name, mac, tuple(map(ip_interface, addresses)), **port)


HOSTS = [make_host("n0001", MAC, "10.20.1.11/16", "fd00:20::11/64"), make_host("n0002", "02:00:00:00:00:02")]
ON_PORTS = [
    make_host("n0001", MAC, "10.20.1.11/16", "fd00:20::11/64", circuit_id=b"Ethernet1/3", remote_id=b"leaf-7"),
    make_host("n0002", "", "10.20.1.12/16", circuit_id=b"Ethernet1/3", remote_id=b"leaf-8"),
    make_host("n0003", "", "10.20.1.13/16", remote_id=b"\x00\x04leaf"),
    make_host("n0004", "", "10.20.1.14/16", circuit_id=b"Ethernet1/4"),
]
MANY = [
    make_host(
        f"n{n:04}",
        f"02:00:00:00:{n // 256:02x}:{n % 256:02x}",
        f"10.20.{n // 250}.{n % 250 + 1}/16",
        f"fd00:20::{n + 1:x}/64",
    )
    for n in range(5000)
]
FLEETS = pytest.mark.parametrize("hosts", [HOSTS, ON_PORTS, MANY], ids=["two", "on ports", "five thousand"])
RENDERS = {"kea-dhcp4": render_kea, "kea-dhcp6": render_kea6}


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(EXAMPLE)


def find_program(name: str) -> str:
    path = shutil.which(name, path=PATHS)
    if path is None:
        pytest.skip(f"{name} is not installed: `make system` as root installs it")
    return path


@FLEETS
def test_dnsmasq_takes_it(fleet: Fleet, tmp_path: Path, hosts: list[DhcpHost]) -> None:
    file = tmp_path / "dnsmasq.conf"
    file.write_text(render_dnsmasq(fleet.provisionings["lab1"], hosts))
    done = subprocess.run(
        [find_program("dnsmasq"), "--test", f"--conf-file={file}"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.strip()) == (0, "dnsmasq: syntax check OK.")


@FLEETS
@pytest.mark.parametrize("program", RENDERS)
def test_kea_takes_it(fleet: Fleet, tmp_path: Path, program: str, hosts: list[DhcpHost]) -> None:
    (content,) = json.loads(RENDERS[program](fleet.provisionings["lab1"], hosts)).items()
    content[1]["lease-database"] = {"type": "memfile", "persist": False}
    file = tmp_path / "kea.json"
    file.write_text(json.dumps(dict([content])))
    done = subprocess.run([find_program(program), "-t", file], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("url", "server"), [("http://10.20.1.2:8080", "10.20.1.2"), ("http://boot.site:8080", None)])
def test_kea_is_told_the_server_of_loaders_by_tftp_where_it_takes_one(
    fleet: Fleet, tmp_path: Path, url: str, server: str | None
) -> None:
    rendered = render_kea(fleet.provisionings["lab1"].model_copy(update={"url": url}), HOSTS)
    classes = json.loads(rendered)["Dhcp4"]["client-classes"]
    by_tftp = [each for each in classes if "/" not in each["boot-file-name"]]
    assert len(by_tftp) == 3
    assert {each.get("next-server") for each in by_tftp} == {server}
    assert not any("next-server" in each for each in classes if each not in by_tftp)
    (tmp_path / "kea.json").write_text(rendered)
    command = [find_program("kea-dhcp4"), "-t", tmp_path / "kea.json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_firmware_that_knows_only_tftp_is_led_to_the_boot_server_over_ipv6(fleet: Fleet) -> None:
    provisioning = fleet.provisionings["lab1"].model_copy(update={"url": "http://[fd00:20::2]:8080"})
    assert "option6:bootfile-url,tftp://[fd00:20::2]/ipxe.efi\n" in render_dnsmasq(provisioning, HOSTS)


@pytest.mark.parametrize("mac", ["02:00:00:00:01:01", "02:00:00:00:01:0A", "02-00-00-00-01-0a"])
def test_a_mac_that_is_declared_twice_is_listed_once(tmp_path: Path, mac: str) -> None:
    plain = mac.lower().replace("-", ":")
    declared = load_with_network(tmp_path, mac, {"mac": plain.upper(), "addresses": ["10.20.1.11/24", "fd00::11/64"]})
    hosts = list_dhcp_hosts(declared, declared.provisionings["lab1"])
    assert hosts == [make_host("n0001", plain, "10.20.1.11/24", "fd00::11/64")]


def test_an_interface_may_be_known_by_its_port_alone(tmp_path: Path) -> None:
    link = {"circuit_id": "Ethernet1/3", "remote_id": "0x00046c656166", "addresses": ["10.20.1.11/24"]}
    declared = load_with_network(tmp_path, MAC, link)
    hosts = list_dhcp_hosts(declared, declared.provisionings["lab1"])
    port = {"circuit_id": b"Ethernet1/3", "remote_id": b"\x00\x04leaf"}
    assert hosts == [make_host("n0001", "", "10.20.1.11/24", **port)], "its `mac` is of the adapter at this port"


LEASE = """\
set -e
mount -t tmpfs none /var/lib; mkdir /var/lib/kea
ip link set lo up
ip link add server type veth peer name client address 02:00:00:00:00:01
ip address add 10.20.0.1/16 dev server
ip address add fd00:20::1/64 dev server nodad
for side in server client; do echo 0 > /proc/sys/net/ipv6/conf/$side/accept_dad; ip link set $side up; done
{before}
until ip link show server | grep -q "state UP"; do sleep 0.05; done
{server} &
trap "kill $!" EXIT
{client}
"""
RELAY = """\
mount -t tmpfs none /var/run; ip netns add relay; ip link set client netns relay
ip -n relay address add 10.20.0.3/16 dev client; ip -n relay link set client up
"""
SAID = """\
#!/bin/sh
[ "$1" = bound ] || exit 0
echo "$ip,$hostname,${{bootfile:-$boot_file}}" > {home}/lease
"""
SAID_6 = """\
#!/bin/sh
[ "$reason" != PREINIT6 ] || exit 0
echo "$new_ip6_address,$new_dhcp6_bootfile_url,$new_dhcp6_vendor_class" > {home}/lease
"""
CLIENT_6 = """\
option dhcp6.client-arch-type code 61 = array of integer 16;
option dhcp6.user-class code 15 = string;
option dhcp6.vendor-class code 16 = string;
option dhcp6.bootfile-url code 59 = text;
request dhcp6.bootfile-url, dhcp6.vendor-class;
send dhcp6.client-arch-type {number};
{more}
"""
ASKS = {
    "iPXE": ("-x 0x5d:0007 -x 0xaf:00", "/boot/v1/ipxe"),
    "UEFI HTTP": ("-x 0x5d:0010 -V HTTPClient", "/boot/v1/loaders/ipxe.efi"),
}
ASKS_6 = {
    "iPXE": ("7", "send dhcp6.user-class 00:04:69:50:58:45;", "/boot/v1/ipxe"),
    "UEFI HTTP": ("16", "", "/boot/v1/loaders/ipxe.efi"),
}
HTTP_CLIENT = "48:54:54:50:43:6c:69:65:6e:74"


def serve(program: str, fleet: Fleet, folder: Path, hosts: list[DhcpHost], client: str, before: str = "") -> None:
    """Run a client beside a server that has what assay prints, and the site's own part: its interface.

    `before`: commands before the server starts. Kea listens on no link that is down then.
    """
    if subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no network namespace is allowed here; it needs root")
    provisioning, path, file = fleet.provisionings["lab1"], find_program(program), folder / "server.conf"
    if program == "dnsmasq":
        ranges = render_dnsmasq(provisioning, hosts).replace("# dhcp-range=", "dhcp-range=")
        file.write_text(ranges)
        words = f"-d --port=0 --conf-file={file} --interface=server --dhcp-leasefile={folder}/leases"
        server = f"{path} {words} --user=root --log-dhcp"
    else:
        ((name, content),) = json.loads(RENDERS[program](provisioning, hosts)).items()
        content["lease-database"] = {"type": "memfile", "persist": False}
        content["interfaces-config"] = {"interfaces": ["server"]}
        for subnet in content[f"subnet{name[-1]}"]:
            subnet["interface"] = "server"
        file.write_text(json.dumps({name: content}))
        server = f"env KEA_PIDFILE_DIR={folder} KEA_LOCKFILE_DIR={folder} {path} -c {file}"
    command = ["unshare", "-n", "-m", "bash", "-c", LEASE.format(server=server, client=client, before=before)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


def write_program(path: Path, text: str) -> Path:
    path.write_text(text.format(home=path.parent))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("asks", ASKS)
@pytest.mark.parametrize("program", ["dnsmasq", "kea-dhcp4"])
def test_a_server_gives_a_node_its_address_and_its_boot_file(
    fleet: Fleet, tmp_path: Path, program: str, asks: str
) -> None:
    words, boot_file = ASKS[asks]
    said = write_program(tmp_path / "said", SAID)
    client = f"busybox udhcpc -i client -n -q -f -t 20 -T 1 -s {said} -O hostname -O bootfile {words}"
    serve(program, fleet, tmp_path, HOSTS, client)
    address, name, named = (tmp_path / "lease").read_text().strip().split(",")
    assert (address, name, named) == ("10.20.1.11", "n0001", f"{fleet.provisionings['lab1'].url}{boot_file}")


@pytest.mark.parametrize("asks", ASKS_6)
@pytest.mark.parametrize("program", ["dnsmasq", "kea-dhcp6"])
def test_a_server_gives_a_node_its_ipv6_address_and_its_boot_file(
    fleet: Fleet, tmp_path: Path, program: str, asks: str
) -> None:
    number, more, boot_file = ASKS_6[asks]
    said = write_program(tmp_path / "said", SAID_6)
    (tmp_path / "client.conf").write_text(CLIENT_6.format(number=number, more=more))
    files = f"-cf {tmp_path}/client.conf -lf {tmp_path}/client.leases -pf {tmp_path}/client.pid"
    client = f"timeout 200 {find_program('dhclient')} -6 -1 -d -D LL {files} -sf {said} client & dhclient=$!"
    waits = f"until [ -s {tmp_path}/lease ]; do kill -0 $dhclient; sleep 0.1; done; kill $dhclient"
    serve(program, fleet, tmp_path, HOSTS, f"{client}\n{waits}")
    address, url, vendor = (tmp_path / "lease").read_text().strip().split(",")
    assert (address, url) == ("fd00:20::11", f"{fleet.provisionings['lab1'].url}{boot_file}")
    at_byte_6 = ":".join(vendor.split(":")[6:16])
    assert (at_byte_6 == HTTP_CLIENT) is (asks == "UEFI HTTP"), "without it, UEFI takes no answer for HTTP boot"


@pytest.mark.parametrize("program", ["dnsmasq", "kea-dhcp4"])
def test_a_relay_tells_the_port_and_the_server_gives_the_address_of_the_port(
    fleet: Fleet, tmp_path: Path, program: str
) -> None:
    script = Path(__file__).with_name("dhcp_relay.py")
    client = f"ip netns exec relay {sys.executable} -I {script} 10.20.0.3 > {tmp_path}/said"
    serve(program, fleet, tmp_path, ON_PORTS, client, RELAY)
    assert json.loads((tmp_path / "said").read_text()) == {
        "leaf-7 Ethernet1/3": ["10.20.1.11", "n0001", "kept"],
        "leaf-8 Ethernet1/3": ["10.20.1.12", "n0002", "kept"],
        "leaf in bytes": ["10.20.1.13", "n0003", "kept"],
        "leaf-9 Ethernet1/4": ["10.20.1.14", "n0004", "kept"],
        "leaf-9 Ethernet1/3": [],
    }


def test_each_node_is_listed_once_for_each_mac_address(example_with_network: Fleet) -> None:
    hosts = list_dhcp_hosts(example_with_network, example_with_network.provisionings["lab1"])
    assert hosts == [
        make_host("n0001", "02:00:00:00:01:01", "10.20.1.11/24"),
        make_host("n0001", "02:00:00:00:01:02"),
    ]


def load_with_network(folder: Path, mac: str, link: dict[str, Any]) -> Fleet:
    """Return the example with a MAC address and a link of n0001."""
    for part in ("inventory", "specs"):
        shutil.copytree(EXAMPLE / part, folder / part)
    host = {"mac": mac, "node_network": {"ethernets": {"eth0": link}}}
    (folder / "inventory" / "network.yml").write_text(json.dumps({"h100-a": {"hosts": {"n0001": host}}}))
    return load_fleet(folder)


@pytest.fixture
def example_with_network(tmp_path: Path) -> Fleet:
    link: dict[str, object] = {"mac": "02:00:00:00:01:01", "addresses": ["10.20.1.11/24"]}
    return load_with_network(tmp_path, "02:00:00:00:01:02", link)
