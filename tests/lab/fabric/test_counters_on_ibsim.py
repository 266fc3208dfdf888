"""Two scans by the real tools of a simulated fabric with a real subnet manager: counter growth is found."""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.fabric.health.counters import DOWNED, SYMBOL
from assay.fabric.health.stored_scan import read_scan
from assay.fabric.scan import run_fabric_scan
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.node_settings import make_node_settings
from tests.support.fabrics import ibsim
from tests.support.places import ROOT

TOOLS = ibsim.find_ibsim_tools()
SBIN = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
NEEDED = ("opensm", "ibqueryerrors", "sminfo")
MISSING = [name for name in NEEDED if not any((Path(one) / name).exists() for one in SBIN.split(os.pathsep))]
pytestmark = pytest.mark.skipif(
    not TOOLS or bool(MISSING), reason=f"needs the packages {ibsim.PACKAGES} opensm infiniband-diags"
)
LEAF, NODE = "0xb83f000000001000", "0xa088000000000000"
HERE = PortId(LEAF, 1)


class Simulated:
    """A leaf and an adapter in ibsim, with its console, and OpenSM beside it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            **os.environ, "PATH": SBIN, "IBSIM_SOCKNAME": f"assay-counts-{os.getpid()}", "OSM_TMP_DIR": str(home),
            "OSM_CACHE_DIR": str(home),
        }  # fmt: skip
        devices = {LEAF: DiscoveredDevice(LEAF, "switch", 8, "MF0;leaf-0:MQM9700/U1")}
        devices[NODE] = DiscoveredDevice(NODE, "hca", 1, "n0 mlx5_0")
        (home / "fabric.net").write_text(format_net_file(devices, [DiscoveredCable(PortId(NODE, 1), HERE, "4xHDR")]))
        os.mkfifo(home / "console")
        self.console = os.open(home / "console", os.O_RDWR)  # both ways, or the simulator would see its end
        command = [
            "timeout",
            "120",
            TOOLS.ibsim,
            "-s",
            "-N",
            "32",
            "-S",
            "16",
            "-P",
            "400",
            "-L",
            "49152",
            "fabric.net",
        ]
        self.processes = [self._start(command, self.environment, self.console, home / "ibsim.log")]
        self._wait(home / "ibsim.log", "Network simulator ready")

    def manage(self) -> None:
        """Start OpenSM, and wait until it has given out the LIDs: without them nobody can be asked for counters."""
        run = {"cwd": self.home, "env": self.environment, "capture_output": True, "timeout": 20}
        subprocess.run(["opensm", "-c", "opensm.conf"], check=False, **run)
        settings = (self.home / "opensm.conf").read_text()
        for name, value in (("force_log_flush", "TRUE"), ("dump_files_dir", "./"), ("max_wire_smps", "16")):
            settings = re.sub(rf"(?m)^{name} .*", f"{name} {value}", settings)
        (self.home / "opensm.conf").write_text(settings)
        command = ["opensm", "-F", "opensm.conf", "-f", str(self.home / "opensm.log"), "-D", "0x03", "-s", "0"]
        preloaded = self.environment | {"LD_PRELOAD": TOOLS.umad2sim}
        self.processes.append(self._start(command, preloaded, subprocess.DEVNULL, self.home / "opensm.out"))
        self._wait(self.home / "opensm.log", "SUBNET UP")

    def set(self, counter: str, count: int) -> None:
        """Let the leaf's port 1 have counted so many."""
        line = f'PerformanceSet "S-{LEAF[2:]}"[1] PortCounters.{counter}={count}\n'
        os.write(self.console, line.encode())
        self._wait(self.home / "ibsim.log", f"PortCounters.{counter} has been set to {count}")

    def asking(self, *command: str) -> list[str]:
        """Return a command as the inventory names it, led to the simulator."""
        said = {"LD_PRELOAD": TOOLS.umad2sim, "IBSIM_SOCKNAME": self.environment["IBSIM_SOCKNAME"], "PATH": SBIN}
        return ["env", "-C", str(self.home), *(f"{name}={word}" for name, word in said.items()), *command]

    def end(self) -> None:
        """End what was started."""
        for process in reversed(self.processes):
            process.terminate()
            process.wait(timeout=60)
        os.close(self.console)

    def _start(self, command, environment, stdin, log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as out:
            return subprocess.Popen(command, cwd=self.home, env=environment, stdin=stdin, stdout=out, stderr=out)

    def _wait(self, log: Path, words: str) -> None:
        deadline = time.monotonic() + 120
        while words not in (log.read_text(errors="replace") if log.exists() else ""):
            assert time.monotonic() < deadline, f"{log.name} never said {words!r}"
            time.sleep(0.02)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    one = Simulated(tmp_path_factory.mktemp("ibsim"))
    yield one
    one.end()


@pytest.fixture(scope="module")
def look(simulated):
    """Scan the simulated fabric as the inventory says, `hours` after the scan before."""
    fleet = load_fleet(ROOT)
    commands = {"errors": simulated.asking("ibqueryerrors"), "subnet": simulated.asking("sminfo")}
    variables = {"fabric_discover": simulated.asking("ibnetdiscover"), "fabric_facts": commands}
    settings = make_node_settings(variables)
    nodes = {name: replace(node, settings=settings) for name, node in fleet.nodes.items()}
    asked = replace(fleet, nodes=nodes)

    def look(before=None, hours=4):
        found = run_fabric_scan(asked, fleet.designs["compute"], before=before)
        return replace(found, at=before.at + timedelta(hours=hours)) if before else found

    return look


def test_without_a_subnet_manager_nothing_is_taken_for_clean(look):
    blind = read_scan(look())
    assert blind.manager is None
    assert any(problem.startswith("errors:") for problem in blind.problems), "it prints nothing, and exits with 0"
    assert any("iberror: failed" in problem for problem in blind.problems)


def test_what_grew_between_two_scans_is_counted_and_a_cleared_counter_is_known(simulated, look):
    simulated.manage()
    simulated.set("SymbolErrorCounter", 1000)
    simulated.set("LinkDownedCounter", 9)
    first = look()
    simulated.set("SymbolErrorCounter", 65535)
    simulated.set("LinkDownedCounter", 2)
    second = read_scan(look(first))
    assert (second.problems, dict(second.failed_commands)) == ((), {})
    assert second.manager
    assert second.manager.master
    grown = second.find_port_growth(HERE)
    assert str(grown.find_growth(SYMBOL)) == "at least 64535"
    assert str(grown.find_growth(DOWNED)) == "at least 2 since it was cleared"
    assert grown.per_hour(SYMBOL) == 64535 / 4
