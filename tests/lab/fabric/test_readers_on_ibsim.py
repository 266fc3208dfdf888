"""The real tools' output for a simulated fabric with a real subnet manager, each read by its reader."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.fabric.health.switch_facts import describe_pkey_differences
from assay.fabric.readers import ibqueryerrors, smpquery
from assay.fabric.readers.format_detection import read_tool_output, read_topology
from assay.fabric.readers.ibnetdiscover import parse as ibnetdiscover
from assay.fabric.readers.port_guids import read_port_guids, resolve_port_guids
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.model.specs.fabric.cable import PortId
from tests.support.fabrics import ibsim

TOOLS = ibsim.find_ibsim_tools()
SBIN = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
NEEDED = ("opensm", "iblinkinfo", "ibqueryerrors", "smpquery")
MISSING = [name for name in NEEDED if not any((Path(one) / name).exists() for one in SBIN.split(os.pathsep))]
pytestmark = pytest.mark.skipif(
    not TOOLS or bool(MISSING), reason=f"needs the packages {ibsim.PACKAGES} opensm infiniband-diags"
)
LEAVES = ["0xb83f000000001000", "0xb83f000000001010"]
SPINE = "0xb83f000000002000"
NODES = [f"0xa0880000000000{index}0" for index in range(4)]
CABLES = [
    *(
        DiscoveredCable(PortId(node, 1), PortId(LEAVES[index // 2], index % 2 + 1), "4xHDR")
        for index, node in enumerate(NODES)
    ),
    *(DiscoveredCable(PortId(LEAVES[k // 2], 5 + k % 2), PortId(SPINE, k + 1), "4xHDR") for k in range(4)),
]
PLANTED = f"""
do PerformanceSet "S-{LEAVES[0][2:]}"[1] PortCounters.SymbolErrorCounter=65535
do PerformanceSet "S-{LEAVES[0][2:]}"[1] PortCounters.LinkDownedCounter=7
"""
PARTITIONS = f"""
Default=0x7fff, ipoib : ALL=limited, SELF=full ;
customer=0x0012 : {NODES[0][:-1]}1=full, {NODES[1][:-1]}1=limited ;
"""
"""As OpenSM reads them, by port GUID: ibsim counts those of adapters from their device's."""


def fabric() -> str:
    devices = {SPINE: DiscoveredDevice(SPINE, "switch", 8, "MF0;spine-0:MQM9700/U1")}
    devices |= {guid: DiscoveredDevice(guid, "switch", 8, f"MF0;leaf-{i}:MQM9700/U1") for i, guid in enumerate(LEAVES)}
    devices |= {guid: DiscoveredDevice(guid, "hca", 1, f"n{i} mlx5_0") for i, guid in enumerate(NODES)}
    return format_net_file(devices, CABLES) + PLANTED


@pytest.fixture(scope="module")
def say(tmp_path_factory):
    """Return a function that runs a tool on the simulated fabric and returns its stdout and stderr."""
    home = tmp_path_factory.mktemp("ibsim")
    (home / "fabric.net").write_text(fabric())
    environment = {**os.environ, "PATH": SBIN, "IBSIM_SOCKNAME": f"assay-readers-{os.getpid()}"}
    preloaded = {**environment, "LD_PRELOAD": TOOLS.umad2sim, "OSM_TMP_DIR": str(home), "OSM_CACHE_DIR": str(home)}

    def run(*command: str) -> tuple[str, str]:
        done = subprocess.run(
            command, check=False, cwd=home, env=preloaded, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
        return done.stdout, done.stderr

    with ibsim._simulator(TOOLS, ["-N", "32", "-S", "16", "-P", "400"], str(home), environment):
        manager = subnet_manager(home, environment, preloaded)
        yield run
        manager.terminate()
        manager.wait(timeout=60)


def subnet_manager(home, environment, preloaded):
    """Start OpenSM and wait until it has given out the LIDs."""
    defaults = ["opensm", "-c", "opensm.conf"]
    subprocess.run(defaults, check=False, cwd=home, env=environment, capture_output=True, timeout=120)
    settings = (home / "opensm.conf").read_text()
    for name, value in (("force_log_flush", "TRUE"), ("dump_files_dir", "./"), ("max_wire_smps", "16")):
        settings = re.sub(rf"(?m)^{name} .*", f"{name} {value}", settings)
    (home / "opensm.conf").write_text(settings)
    (home / "partitions.conf").write_text(PARTITIONS)
    command = ["opensm", "-F", "opensm.conf", "-R", "minhop", "-f", str(home / "opensm.log"), "-D", "0x03", "-s", "0"]
    command += ["-P", str(home / "partitions.conf")]
    manager = subprocess.Popen(
        command, cwd=home, env=preloaded, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while "SUBNET UP" not in ((home / "opensm.log").read_text() if (home / "opensm.log").exists() else ""):
        if time.monotonic() > deadline or manager.poll() is not None:
            manager.kill()
            raise TimeoutError("OpenSM did not bring the subnet up")
        time.sleep(0.05)
    return manager


@pytest.fixture(scope="module")
def known(say):
    return read_port_guids(say("ibnetdiscover")[0])


@pytest.fixture(scope="module")
def lids(say):
    return ibsim.list_lids(say("ibnetdiscover")[0])


def links(discovery, known):
    return {(frozenset(cable[:2]), cable.rate) for cable in resolve_port_guids(discovery, known).cables}


def test_three_tools_find_the_same_cables(say, known):
    designed = {(frozenset(cable[:2]), cable.rate) for cable in CABLES}
    for command in (["ibnetdiscover"], ["ibnetdiscover", "-p"], ["iblinkinfo", "-l"], ["iblinkinfo"]):
        found = read_topology(*say(*command))
        assert found.problems == (), command
        assert links(found, known) == designed, command
        assert resolve_port_guids(found, known).devices.keys() == {SPINE, *LEAVES, *NODES}, command


def test_ibqueryerrors_tells_what_was_planted_and_nothing_else(say):
    for options in ([], ["-r"], ["--data"], ["--details"]):
        found = read_tool_output(*say("ibqueryerrors", *options))
        assert found.problems == ()
        (facts,) = found.facts.values()
        errors = {name: count for name, count in facts.counters.items() if name not in ibqueryerrors.DATA}
        assert (facts.port, errors) == (PortId(LEAVES[0], 1), {"SymbolErrorCounter": 65535, "LinkDownedCounter": 7})
        assert facts.saturated == {"SymbolErrorCounter"}


def test_ibqueryerrors_counters_are_of_every_port(say):
    found = read_tool_output(*say("ibqueryerrors", "--counters"))
    assert found.problems == ()
    assert {port.guid for port in found.facts} == {SPINE, *LEAVES, *NODES}


def test_smpquery_tells_of_a_node_its_name_and_its_ports(say, lids):
    lid = lids[LEAVES[0]]
    asked = (("nodeinfo", lid), ("nodedesc", lid), ("portinfo", lid, "1"), ("portinfo", lid, "8"))
    said = [say("smpquery", *words) for words in asked]
    found = smpquery.parse("".join(out for out, _ in said), "".join(err for _, err in said))
    assert found.problems == ()
    assert found.devices[LEAVES[0]] == DiscoveredDevice(LEAVES[0], "switch", 8, "MF0;leaf-0:MQM9700/U1")
    one, eight = found.facts[PortId(LEAVES[0], 1)], found.facts[PortId(LEAVES[0], 8)]
    assert (one.state, one.physical, one.rate) == ("active", "linkup", "4xHDR")
    assert (eight.state, eight.physical, eight.rate) == ("down", "polling", "")


def test_smpquery_tells_the_partitions_that_the_subnet_manager_gave(say, lids):
    asked = [(("nodeinfo", lids[one]), ("portinfo", lids[one], "1"), ("pkeys", lids[one], "1")) for one in NODES]
    said = [say("smpquery", *words) for port in asked for words in port]
    found = smpquery.parse("".join(out for out, _ in said), "".join(err for _, err in said))
    assert found.problems == ()
    pkeys = [found.facts[PortId(node, 1)].pkeys for node in NODES]
    assert pkeys == [{0x7FFF, 0x8012}, {0x7FFF, 0x0012}, {0x7FFF}, {0x7FFF}]
    assert describe_pkey_differences({0xFFFF, 0x8012}, pkeys[1]) == [
        "is a limited member of 0x0012, designed as a full one",
        "is a limited member of 0x7fff, designed as a full one",
    ]


def test_an_address_that_does_not_answer_is_a_problem(say):
    assert any("failed" in problem for problem in smpquery.parse(*say("smpquery", "portinfo", "99", "1")).problems)


def test_the_ports_are_those_of_the_subnet(known):
    assert {port.guid for port in known.values()} == set(NODES)


def test_the_reader_of_the_plain_form_reads_the_same(say, known):
    assert links(ibnetdiscover(*say("ibnetdiscover")), known) == {(frozenset(c[:2]), c.rate) for c in CABLES}
