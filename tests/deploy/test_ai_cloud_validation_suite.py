"""NVIDIA's own suite for AI clouds judges a lab that has lived through failures, by the API over HTTPS alone.

The suite is on no package index: ASSAY_AI_CLOUD_VALIDATION names a checkout whose `.venv` has its command `isvctl`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import trustme
import yaml

from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.timestamps import format_time
from tests.support.forked_assay import assay, run_assay
from tests.support.places import ROOT
from tests.support.reserved_ports import reserve_ports
from tests.support.serving_fleet import change_yaml, start_history

CHECKOUT = Path(os.environ.get("ASSAY_AI_CLOUD_VALIDATION", "/nowhere"))
PACKAGES = ("isvctl", "isvtest", "isvreporter")
ISVCTL = CHECKOUT / ".venv/bin/isvctl"
pytestmark = [
    pytest.mark.slow(minutes=15),
    pytest.mark.skipif(not ISVCTL.exists(), reason="ASSAY_AI_CLOUD_VALIDATION names no checkout with .venv/bin/isvctl"),
]
NODES = tuple(f"n{number:04}" for number in range(1, 7))
RACKS = {"n0005": "r02", "n0006": "r03"}
SCENARIO = """\
kind: Scenario
name: suite
description: The lab's clock is slow enough for agents, and fast enough for restarts.
owner: tests
start: "{start}"
rate: 10
chapters: [{{title: nothing, steps: [{{reconcile: {{}}}}]}}]
"""
VISITORS = {"ann": {"role": "operator"}, "acme": {"role": "customer", "pools": ["h100-a"]}}
CHOSEN = {
    "ASSAY_NODE": "n0001",
    "ASSAY_NODE_REPLACED": "n0002",
    "ASSAY_NODE_RETURNED": "n0003",
    "ASSAY_NODE_CORDONED": "n0004",
    "ASSAY_RACK": "r03",
}
BREAK_FIX = {
    *("GpuResetCheck", "CordonNodeCheck", "ReturnNodeMaintenanceCheck", "ReturnRackMaintenanceCheck"),
    *("HostReplacementCheck", "MaintenanceEventsCheck", "RetirementNoticesCheck", "RepairHistoryCheck"),
    *("BmHardwareSerialCheck", "NvSwitchFirmwareCheck", "BmcKernelLogCheck", "NodeHealthAgentCheck"),
    *("PlannedMaintenanceNotificationCheck", "FailureNotificationCheck"),
}
"""BFX01-01 to BFX06-01: fourteen."""
FLEET = {
    *("GovernanceMetricsCheck", "FleetManagementApiCheck", "ResourceDiscoveryApiCheck", "HostHealthCheck"),
    *("HealthAggregationCheck", "HardwareIngestionCheck", "BmHostRebootedCheck", "BmHostPowerCycledCheck"),
    *("BmHostStoppedCheck", "BmHostStartedCheck", "BmIdentifierStableAfterRebootCheck"),
}
"""CAP01-01 to CAP05-02, HWING01-01, CNP01-05 to 01-08 and CNP08-01."""
OBSERVED = {
    *("TelemetryDeliveryLatencyCheck", "EastWestNetworkTelemetryCheck", "NvswitchFabricTelemetryCheck"),
    *("HostNicNetworkTelemetryCheck", "BmcSelLogsCheck", "BmcGpuTelemetryCheck", "GpuNvlinkTelemetryCheck"),
}
"""OBS05-01, 07-01, 09-01, 10-01, 17-01, TELEM04-01 and 07-01."""


@dataclass
class JudgedLab:
    """A fleet in `home`, with its lab, its controller, its server, its agents, and the suite's folder of providers."""

    home: Path
    folder: Path
    port: int = field(default_factory=lambda: reserve_ports(1)[0])
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What the provider's steps are given."""
        return {
            **os.environ,
            **CHOSEN,
            "ASSAY_SERVER": f"https://127.0.0.1:{self.port}",
            "ASSAY_TOKEN_FILE": str(self.folder / "ann"),
            "ASSAY_CUSTOMER_TOKEN_FILE": str(self.folder / "acme"),
            "PATH": f"{ISVCTL.parent}{os.pathsep}{os.environ['PATH']}",
            "ASSAY_CA": str(self.folder / "ca.pem"),
            "PYTHONPATH": os.pathsep.join(
                str(CHECKOUT / part / "src") for part in ("isvctl", "isvtest", "isvreporter")
            ),
            "NO_COLOR": "1",
        }

    def start(self, *words: object) -> subprocess.Popen[bytes]:
        """Start a process of its own, no fork, that lives as long as the lab."""
        with (self.folder / "processes.log").open("ab") as log:
            process = subprocess.Popen(["env", *map(str, words)], cwd=self.home, stdout=log, stderr=log)
        self.running.append(process)
        return process

    def start_services(self) -> None:
        """Start the server, an agent on each node, and the controller."""
        certificate = self.folder / "server.pem"
        self.start(sys.executable, "-m", "assay", "serve", "--port", self.port, "--cert", certificate)
        world = self.home / ".assay-lab/world"
        for node in NODES:
            shell = [sys.executable, "-m", "assay.lab.node.shell", world, node]
            state = self.folder / f"state-{node}"
            own = ["--node", node, "--token-file", self.folder / node, "--state", state, "--no-events", "--beat", 4]
            kernel_log = self.folder / f"kmsg-{node}"
            kernel_log.touch()
            server = ["--server", f"https://127.0.0.1:{self.port}", "--ca", self.folder / "ca.pem"]
            self.start(*shell, sys.executable, "-m", "assay.node.agent", *own, *server, "--log", kernel_log)
        self.start(sys.executable, "-m", "assay", "reconcile", "--interval", 20)

    def stop(self) -> None:
        """End what was started."""
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            process.wait(60)
        self.running.clear()

    def read_states(self) -> dict[str, str]:
        """Return the state of each node."""
        return {one["node"]: one["state"] for one in json.loads(self.say("status", "--format", "json"))["nodes"]}

    def say(self, *words: str) -> str:
        """Type a command, whatever its exit code."""
        return run_assay(*words, cwd=self.home).stdout

    def occupy(self, node: str) -> None:
        """Let a customer's job run on a node."""
        fleet = load_fleet(self.home, [self.home / ".assay-lab/world/inventory.yml"])
        scheduler = fleet.nodes[node].settings.other_variables["lab_scheduler"]
        job = {"name": "train", "owner": "acme", "node": node, "seconds": 1e7}
        with urlopen(Request(f"{scheduler}/jobs", json.dumps(job).encode(), method="POST")) as answer:
            assert answer.status < 300

    def ask(self, step: str) -> dict[str, Any]:
        """Return what a step of the provider prints."""
        command = [sys.executable, self.folder / "isv/providers/assay/assay_step.py", step]
        return json.loads(subprocess.run(command, env=self.environment, capture_output=True, check=False).stdout)

    def judge(self, config: str, *words: str) -> dict[str, tuple[str, str]]:
        """Run the suite with one config; return the result of each check, and what it says."""
        report = self.folder / f"{config}.xml"
        command = [ISVCTL, "test", "run", "-f", self.folder / f"isv/providers/assay/config/{config}", "--no-upload"]
        command += ["--no-user-config", "--junitxml", report, *words]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, check=False)
        (self.folder / f"{config}.out").write_bytes(done.stdout + done.stderr)
        assert report.exists(), (done.stdout + done.stderr)[-4000:].decode()
        results: dict[str, tuple[str, str]] = {}
        for case in ET.parse(report).getroot().iter("testcase"):
            problem = next((one for one in case if one.tag in ("failure", "error", "skipped")), None)
            name = case.get("name", "").partition("[")[2].rstrip("]") or case.get("name", "")
            text = (problem.get("message") or problem.text or "") if problem is not None else ""
            results[name] = (problem.tag if problem is not None else "passed", text[:400])
        return results


def wait_for(what: Callable[[], Any], patience_s: float = 420) -> Any:
    ends_at = time.monotonic() + patience_s
    while not (answer := what()) and time.monotonic() < ends_at:
        time.sleep(3)
    return answer


def make_fleet(home: Path, folder: Path) -> None:
    """Make a new fleet with six nodes in three racks, a customer, and an agent on each node."""
    assert run_assay("init", str(home)).returncode == 0
    hosts = yaml.safe_load((ROOT / "inventory/h100-a.yml").read_text())["h100-a"]["hosts"]

    def digest(name: str) -> dict[str, str]:
        (folder / name).write_text(f"token-of-{name}-8d1f\n")
        return {"sha256": hashlib.sha256(f"token-of-{name}-8d1f".encode()).hexdigest()}

    def add(pools: dict[str, Any]) -> None:
        pool = pools["h100-a"]
        pool["hosts"] |= {name: {**hosts[name], "rack": rack} for name, rack in RACKS.items()}
        for name, host in pool["hosts"].items():
            host["agent_token"] = digest(name)
        pool["vars"]["service_import"]["nodes"] = list(NODES)

    def widen(policy: dict[str, Any]) -> None:
        policy["access"] = {"visitors": {name: {**role, "token": digest(name)} for name, role in VISITORS.items()}}
        policy["limits"] |= {"pool_percent": 100, "rack_concurrent": 6}
        for series in policy["breaker"]["by_class"]:
            series["min_nodes"] = 6

    change_yaml(home / "inventory/h100-a.yml", add)
    shutil.rmtree(home / "specs/expected")  # machines of a delivery that nobody has seen yet
    change_yaml(home / "specs/fabrics/compute.yaml", lambda design: design.update(nodes=["n0001..n0006"]))
    change_yaml(home / "specs/lifecycle/default.yaml", widen)
    start_history(home)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JudgedLab]:
    """Return a lab after a GPU that fell off the bus and came back, and a power supply that was exchanged."""
    folder = tmp_path_factory.mktemp("judged")
    lab = JudgedLab(folder / "fleet", folder)
    make_fleet(lab.home, folder)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    (folder / "isv").mkdir()
    (folder / "isv/suites").symlink_to(CHECKOUT / "isvctl/configs/suites")
    shutil.copytree(ROOT / "deploy/ai-cloud-validation", folder / "isv/providers/assay")
    (folder / "suite.yaml").write_text(SCENARIO.format(start=(datetime.now(UTC)).isoformat(timespec="seconds")))
    assay(lab.home, "lab", "up", "--scenario", str(folder / "suite.yaml"))
    try:
        assay(lab.home, "reconcile", "--once")
        lab.say("lab", "inject", "psu.failed", "--node", "n0003", "--with", "psu=1")
        lab.say("lab", "inject", "gpu.xid", "--node", "n0002", "--with", "gpu=4", "--with", "xid=79")
        lab.say("reconcile", "--once", "--settle")
        lab.say("lab", "inject", "psu.replaced", "--node", "n0003", "--with", "psu=1")
        for _ in range(6):
            lab.say("lab", "advance", "0.5")
            lab.say("reconcile", "--once", "--settle")
            if set(lab.read_states().values()) == {"production"}:
                break
        lab.start_services()
        assert set(lab.read_states().values()) == {"production"}, lab.say("status")
        yield lab
    finally:
        lab.stop()
        lab.say("lab", "down")


def test_the_suite_passes_what_a_node_manager_can_answer(lab: JudgedLab) -> None:
    begin = datetime.now(UTC) + timedelta(days=30)
    window = ["--at", format_time(begin), "--until", format_time(begin + timedelta(hours=4))]
    lab.say("operations", "start", "retire", "n0006", *window, "--reason", "its lease ends")
    lab.say("operations", "start", "reboot", "n0005", *window, "--reason", "a new kernel")
    lab.occupy("n0004")
    assert wait_for(lambda: all(one.get("running") for one in lab.ask("query_node_health_agents").get("agents", [{}])))
    results = lab.judge("observability.yaml", "--capability", "bare_metal")
    results |= lab.judge("network.yaml", "--capability", "bare_metal")
    results |= lab.judge("bare_metal.yaml")
    results |= lab.judge("k8s.yaml", "--label", "breakfix")
    (lab.folder / "results.json").write_text(json.dumps(results, indent=1))
    wanted = {*BREAK_FIX, *FLEET, *OBSERVED, "NvlinkDomainCheck"}
    assert {name: results.get(name, ("absent", "")) for name in wanted} == dict.fromkeys(wanted, ("passed", ""))
    assert not [name for name, (result, _) in results.items() if result in ("failure", "error")]


def test_every_record_is_an_entry_of_the_ledger(lab: JudgedLab) -> None:
    ledger = Ledger.open(lab.home / ".assay-lab/ledger.sqlite", context="lab")
    entries = {entry.id: entry for entry in ledger.entries()}
    by_number = {entry.seq: entry for entry in entries.values()}

    repairs = lab.ask("query_repair_history")["records"]
    steps = [step for record in repairs for entry in record["entries"] for step in entry["steps"]]
    assert {"opened", "closed"} <= {step["event"] for step in steps}
    assert all(entries[step["entry"]].at == step["at"] for step in steps)
    failures = [one for one in lab.ask("query_failure_notifications")["notifications"] if "ledger_entry" in one]
    assert "n0002" in {one["machine_id"] for one in failures}
    assert all(by_number[one["ledger_entry"]].at == one["notified_at"] for one in failures)
    notices = lab.ask("query_retirement_notices")["notices"]
    assert [one["machine_id"] for one in notices] == ["n0006"]
    assert [entry.at for entry in entries.values() if entry.kind == "operation.planned"].count(
        notices[0]["notified_at"]
    ) == 1
