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


def test_dnsmasq_takes_it(fleet: Fleet, tmp_path: Path) -> None:
    file = tmp_path / "dnsmasq.conf"
    file.write_text(render_dnsmasq(fleet.provisionings["lab1"], HOSTS))
    done = subprocess.run(
        [find_program("dnsmasq"), "--test", f"--conf-file={file}"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.strip()) == (0, "dnsmasq: syntax check OK.")


def test_kea_takes_it(fleet: Fleet, tmp_path: Path) -> None:
    content = json.loads(render_kea(fleet.provisionings["lab1"], HOSTS))
    content["Dhcp4"]["lease-database"] = {"type": "memfile", "persist": False}
    file = tmp_path / "kea.json"
    file.write_text(json.dumps(content))
    done = subprocess.run([find_program("kea-dhcp4"), "-t", file], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_node_is_listed_once_for_each_mac_address(example_with_network: Fleet) -> None:
    hosts = list_dhcp_hosts(example_with_network, example_with_network.provisionings["lab1"])
    assert hosts == [
        DhcpHost("n0001", "02:00:00:00:01:01", "10.20.1.11"),
        DhcpHost("n0001", "02:00:00:00:01:02", ""),
    ]


@pytest.fixture
def example_with_network(tmp_path: Path) -> Fleet:
    for part in ("inventory", "specs"):
        shutil.copytree(EXAMPLE / part, tmp_path / part)
    network = {"eth0": {"mac": "02:00:00:00:01:01", "addresses": ["10.20.1.11/24"]}}
    host = {"mac": "02:00:00:00:01:02", "node_network": {"ethernets": network}}
    (tmp_path / "inventory" / "network.yml").write_text(json.dumps({"h100-a": {"hosts": {"n0001": host}}}))
    return load_fleet(tmp_path)
