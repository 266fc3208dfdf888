"""What DHCP servers are given: taken by dnsmasq and Kea themselves, with each way to boot and each node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from assay.act.boot.script import DhcpHost, list_dhcp_hosts, render_dnsmasq, render_kea
from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from tests.support.places import ROOT

EXAMPLE = ROOT
PATHS = "/usr/sbin:/sbin:/usr/bin:/bin"
HOSTS = [DhcpHost("n0001", "02:00:00:00:00:01", "10.20.1.11"), DhcpHost("n0002", "02:00:00:00:00:02", "")]


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(EXAMPLE)


def find_program(name: str) -> str:
    path = shutil.which(name, path=PATHS)
    if path is None:
        pytest.skip(f"{name} is not installed: `make system` as root installs it")
    return path


MANY = [
    DhcpHost(f"n{n:04}", f"02:00:00:00:{n // 256:02x}:{n % 256:02x}", f"10.20.{n // 250}.{n % 250 + 1}")
    for n in range(5000)
]


@pytest.mark.parametrize("hosts", [HOSTS, MANY], ids=["two", "five thousand"])
def test_dnsmasq_takes_it(fleet: Fleet, tmp_path: Path, hosts: list[DhcpHost]) -> None:
    file = tmp_path / "dnsmasq.conf"
    file.write_text(render_dnsmasq(fleet.provisionings["lab1"], hosts))
    done = subprocess.run(
        [find_program("dnsmasq"), "--test", f"--conf-file={file}"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.strip()) == (0, "dnsmasq: syntax check OK.")


@pytest.mark.parametrize("hosts", [HOSTS, MANY], ids=["two", "five thousand"])
def test_kea_takes_it(fleet: Fleet, tmp_path: Path, hosts: list[DhcpHost]) -> None:
    content = json.loads(render_kea(fleet.provisionings["lab1"], hosts))
    content["Dhcp4"]["lease-database"] = {"type": "memfile", "persist": False}
    file = tmp_path / "kea.json"
    file.write_text(json.dumps(content))
    done = subprocess.run([find_program("kea-dhcp4"), "-t", file], check=False, capture_output=True, text=True)
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


@pytest.mark.parametrize("mac", ["02:00:00:00:01:01", "02:00:00:00:01:0A"])
def test_a_mac_that_is_declared_twice_is_listed_once(tmp_path: Path, mac: str) -> None:
    declared = load_with_network(tmp_path, mac, {"mac": mac.lower(), "addresses": ["10.20.1.11/24", "fd00::11/64"]})
    hosts = list_dhcp_hosts(declared, declared.provisionings["lab1"])
    assert hosts == [DhcpHost("n0001", mac.lower(), "10.20.1.11")]


LEASE = """\
set -e
ip link set lo up
ip link add server type veth peer name client address 02:00:00:00:00:01
ip address add 10.20.0.1/16 dev server
ip link set server up; ip link set client up
{server} &
trap "kill $!" EXIT
busybox udhcpc -i client -n -q -f -t 20 -T 1 -s {home}/said {asks}
"""
SAID = """\
#!/bin/sh
[ "$1" = bound ] || exit 0
echo "$ip,$hostname,${{bootfile:-$boot_file}}" > {home}/lease
"""
ASKS = {
    "iPXE": ("-x 0x5d:0007 -x 0xaf:00 -O hostname -O bootfile", "/boot/v1/ipxe"),
    "UEFI HTTP": ("-x 0x5d:0010 -V HTTPClient -O hostname -O bootfile", "/boot/v1/loaders/ipxe.efi"),
}


@pytest.mark.parametrize("asks", ASKS)
@pytest.mark.parametrize("program", ["dnsmasq", "kea-dhcp4"])
def test_a_server_gives_a_node_its_address_and_its_boot_file(
    fleet: Fleet, tmp_path: Path, program: str, asks: str
) -> None:
    provisioning, path = fleet.provisionings["lab1"], find_program(program)
    if subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no network namespace is allowed here; it needs root")
    file = tmp_path / "server.conf"
    if program == "dnsmasq":
        file.write_text(f"{render_dnsmasq(provisioning, HOSTS)}dhcp-range=10.20.0.0,static,255.255.0.0\n")
        server = (
            f"{path} -d --port=0 --conf-file={file} --interface=server --dhcp-leasefile={tmp_path}/leases --user=root"
        )
    else:
        content = json.loads(render_kea(provisioning, HOSTS))
        four = content["Dhcp4"]
        four["lease-database"] = {"type": "memfile", "persist": False}
        four["interfaces-config"] = {"interfaces": ["server"]}
        four["subnet4"] = [{"id": 1, "subnet": "10.20.0.0/16", "pools": [{"pool": "10.20.9.1-10.20.9.9"}]}]
        file.write_text(json.dumps(content))
        server = f"env KEA_PIDFILE_DIR={tmp_path} KEA_LOCKFILE_DIR={tmp_path} {path} -c {file}"
    (tmp_path / "said").write_text(SAID.format(home=tmp_path))
    (tmp_path / "said").chmod(0o755)
    words, boot_file = ASKS[asks]
    script = LEASE.format(server=server, home=tmp_path, asks=words)
    command = ["unshare", "-n", "-m", "bash", "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    address, name, named = (tmp_path / "lease").read_text().strip().split(",")
    assert (address, name, named) == ("10.20.1.11", "n0001", f"{provisioning.url}{boot_file}")


def test_each_node_is_listed_once_for_each_mac_address(example_with_network: Fleet) -> None:
    hosts = list_dhcp_hosts(example_with_network, example_with_network.provisionings["lab1"])
    assert hosts == [
        DhcpHost("n0001", "02:00:00:00:01:01", "10.20.1.11"),
        DhcpHost("n0001", "02:00:00:00:01:02", ""),
    ]


def load_with_network(folder: Path, mac: str, link: dict[str, object]) -> Fleet:
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
