"""Real lldpd daemons in network namespaces find each other; what `lldpctl -f json` prints compares with a design."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.readers.format_detection import read_topology
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.fabric.lldp_dumps import by_clush

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("lldpd") or os.geteuid() != 0, reason="needs lldpd (apt-get install lldpd), and root"
    ),
]

LINKS = (
    ("leaf1", "swp1", "n1", "ens1f0np0", "02:00:00:00:01:01"),
    ("leaf1", "swp2", "n2", "ens1f0np0", "02:00:00:00:02:01"),
    ("leaf2", "swp1", "n1", "ens2f0np0", "02:00:00:00:01:02"),
    ("leaf2", "swp2", "n2", "ens2f0np0", "02:00:00:00:02:02"),
    ("leaf1", "swp3", "spine1", "swp1", "02:00:00:00:05:01"),
    ("leaf2", "swp3", "spine1", "swp2", "02:00:00:00:05:02"),
)
HOSTS = ("leaf1", "leaf2", "spine1", "n1", "n2")
CHASSIS = {"leaf1": "02:00:00:00:0a:01", "leaf2": "02:00:00:00:0a:02", "spine1": "02:00:00:00:05:01"}


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=20).stdout


def succeeds(*words: str) -> bool:
    return subprocess.run(words, check=False, capture_output=True, timeout=20).returncode == 0


@pytest.fixture
def daemons():
    """Each host is a namespace with an lldpd; each link a pair of veth."""
    mark, started = f"assay{os.getpid()}", []
    space = {host: f"{mark}-{host}" for host in HOSTS}
    folder = Path(tempfile.mkdtemp(prefix="assay-lldpd-", dir="/tmp"))  # lldpd's other user must reach its socket
    folder.chmod(0o755)
    sockets = {host: str(folder / f"{host}.sock") for host in HOSTS}
    try:
        for host in HOSTS:
            run("ip", "netns", "add", space[host])
        for a, port, b, far, mac in LINKS:
            run("ip", "link", "add", port, "netns", space[a], "type", "veth", "peer", "name", far, "netns", space[b])
            run("ip", "-n", space[b], "link", "set", far, "address", mac, "up")
            run("ip", "-n", space[a], "link", "set", port, "up")
        for leaf in ("leaf1", "leaf2"):
            run("ip", "-n", space[leaf], "link", "set", "swp1", "address", CHASSIS[leaf])
        for host in HOSTS:
            words = ["ip", "netns", "exec", space[host], "lldpd", "-d", "-u", sockets[host]]
            started.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for host in HOSTS:
            tell = ("lldpcli", "-u", sockets[host], "configure")
            wait_for(lambda tell=tell, host=host: succeeds(*tell, "system", "hostname", host))
            if host in CHASSIS:
                run(*tell, "lldp", "portidsubtype", "ifname")
        yield space, sockets
    finally:
        for daemon in started:
            daemon.terminate()
        for daemon in started:
            daemon.wait(timeout=20)
        for name in space.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        shutil.rmtree(folder)


def wait_for(is_so) -> None:
    for _ in range(300):
        if is_so():
            return
        time.sleep(0.1)
    raise AssertionError("lldpd never answered")


def hear(space, sockets) -> str:
    """Return what the switches print of their neighbours and speeds, as clush shows it."""
    reports = {}
    for host in CHASSIS:
        text = run("lldpctl", "-u", sockets[host], "-f", "json")
        for _, port, _, _, _ in (link for link in LINKS if link[0] == host):
            words = ["ip", "netns", "exec", space[host], "grep", "-H", ".", f"/sys/class/net/{port}/speed"]
            text += subprocess.run(words, check=False, capture_output=True, text=True).stdout  # none without a link
        reports[host] = text
    return by_clush(reports)


def as_guid(mac: str) -> str:
    return f"0x0000{mac.replace(':', '')}"


def designed():
    places = {
        name: {"guid": as_guid(mac), "rack": "r1", "u": 10 + at} for at, (name, mac) in enumerate(CHASSIS.items())
    }
    rules = {
        "kind": "FabricDesign", "name": "roce", "nodes": ["n1..n2"], "rails": 2, "rate": "10G", "oversubscription": 2,
        "switch": {"product": "SN2010", "ports": 4},
        "leaves": {"name": "leaf{index}", "down": "1..2", "up": "3..3", "at": [places["leaf1"], places["leaf2"]]},
        "spines": {"name": "spine{index}", "per_pair": 1, "at": [places["spine1"]]},
    }  # fmt: skip
    design = FabricDesign.model_validate(rules)
    guids = {name: tuple(as_guid(mac) for _, _, far, _, mac in LINKS if far == name) for name in ("n1", "n2")}
    nodes = {name: Node(name, "", "", "r2", 4, "", "", "", own) for name, own in guids.items()}
    return compile_topology(design, Fleet(None, nodes, designs={"roce": design}))


def test_real_daemons_hear_each_other_and_match_the_design(daemons):
    space, sockets = daemons
    topology = designed()
    comparison = None
    for _ in range(300):
        for host in HOSTS:
            run("lldpcli", "-u", sockets[host], "update")
        comparison = compare_cabling(topology, read_topology(hear(space, sockets)))
        if comparison.matching == len(LINKS):
            break
        time.sleep(0.5)
    assert (comparison.verdict, comparison.matching) == ("match", len(LINKS)), (comparison, hear(space, sockets))
    run("ip", "-n", space["leaf1"], "link", "set", "swp2", "down")
    for _ in range(300):
        comparison = compare_cabling(topology, read_topology(hear(space, sockets)))
        if comparison.discrepancies:
            break
        time.sleep(0.5)
    assert [(each.kind, each.nodes) for each in comparison.discrepancies] == [("missing", ("n2",))], comparison
