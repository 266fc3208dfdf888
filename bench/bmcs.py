"""The cost to read everything from a hundred BMCs, compared with Ansible on twenty of them.

Ansible's Redfish modules are not in ansible-core, so `ansible.builtin.uri` stands in for them, one GET a task. It
reads the first few of our resources; its cost is extrapolated to all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from assay.declare.loader import load_fleet
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.evidence_collector import NodeQuery, read_bmc_channel, run_queries
from bench.bmc_lab import PASSWORD, USER
from bench.cost import cost
from bench.measurement import Measurement
from bench.programs import BIN, ROOT

COUNT, SAMPLE, TASKS = 100, 20, 2
DEADLINE_S = 120.0
AT_LEAST = 10.0
READS = (
    "Systems?$expand=.($levels=1)",
    "Managers/BMC_0",
    "Chassis?$expand=.($levels=1)",
    "Chassis/Chassis_0",
    "Chassis/Chassis_0/PowerSubsystem?$expand=.($levels=3)",
    "Chassis/Chassis_0/ThermalSubsystem?$expand=.($levels=3)",
    "Chassis/Chassis_0/Sensors?$expand=.($levels=1)",
    "Chassis/Chassis_0/EnvironmentMetrics",
    "UpdateService",
    "UpdateService/FirmwareInventory?$expand=.($levels=1)",
    "Systems/System_0/Processors?$expand=.($levels=1)",
    "Systems/System_0/Memory?$expand=.($levels=1)",
    "Systems/System_0/Bios",
    "Systems/System_0/Bios/Settings",
    "Systems/System_0/BootOptions?$expand=.($levels=1)",
    "Systems/System_0/SecureBoot",
    "Managers/BMC_0/NetworkProtocol",
    "ComponentIntegrity?$expand=.($levels=1)",
    "EventService?$expand=.($levels=2)",
    "AccountService?$expand=.($levels=2)",
    "TaskService?$expand=.($levels=2)",
    "Systems/System_0/LogServices?$expand=.($levels=1)",
    "Systems/System_0/LogServices/SEL/Entries?$expand=.($levels=1)",
)
"""The requests of one read, without the service root, login and logout. A test compares them with the real ones."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Read the BMCs over HTTPS, and a sample of them with Ansible."""
    with bmcs(folder / "bmcs", COUNT) as ports:
        nodes = nodes_at(ports, folder / "bmcs" / "lab" / "ca.pem")
        ours_s, wall_s, failed = read_all(nodes)
        theirs_s = ansible_s(folder / "bmcs", dict(list(ports.items())[:SAMPLE]))
    if failed:
        raise RuntimeError(f"{failed} of {COUNT} BMCs were not read completely")
    each, their_each = ours_s / COUNT, theirs_s / SAMPLE * len(READS) / TASKS
    made_of = {"cpu_s": ours_s, "wall_s": wall_s, "bmcs": COUNT, "requests": len(READS) + 3, "cpu_ms_each": 1000 * each}
    against = {"against_cpu_s_each": their_each, "sample": SAMPLE, "sample_requests": TASKS}
    what = f"read {COUNT} BMCs, all readings: ansible.builtin.uri a BMC / ours a BMC"
    yield Measurement(what, their_each / each, "×", "at least", AT_LEAST, {**made_of, **against})


@contextmanager
def bmcs(folder: Path, count: int) -> Iterator[dict[str, int]]:
    """Run `count` BMCs during the block; yield the port of each."""
    folder.mkdir()
    process = subprocess.Popen([sys.executable, "-m", "bench.bmc_lab", str(folder), str(count)], cwd=ROOT)
    try:
        while not (folder / "ports.json").exists():
            if process.poll() is not None:
                raise RuntimeError("the lab's BMCs did not start")
            time.sleep(0.1)
        yield json.loads((folder / "ports.json").read_text())
    finally:
        process.kill()
        process.wait()


def nodes_at(ports: Mapping[str, int], ca: Path) -> list[Node]:
    """Return nodes with BMCs at these ports."""
    os.environ["ASSAY_BENCH_BMC"] = f"{USER}:{PASSWORD}"
    declared = load_fleet(ROOT).nodes["n0003"]
    credentials = {"env": "ASSAY_BENCH_BMC"}
    shared = make_node_settings({"bmc_ca": str(ca), "bmc_credentials": credentials})
    return [
        replace(declared, name=name, bmc_address="127.0.0.1", settings=shared.model_copy(update={"bmc_port": port}))
        for name, port in ports.items()
    ]


def read_all(nodes: list[Node]) -> tuple[float, float, int]:
    """Return CPU seconds, wall seconds, and how many BMCs were not read completely."""
    questions = [NodeQuery((node.name, "bmc"), _reading(node), DEADLINE_S) for node in nodes]
    cpu, wall = time.process_time(), time.monotonic()
    failed = sum(not _is_complete(answer) for _, answer in run_queries(questions))
    return time.process_time() - cpu, time.monotonic() - wall, failed


def _reading(node: Node) -> Any:
    return lambda: read_bmc_channel(node, ROOT, DEADLINE_S)


def _is_complete(answer: Any) -> bool:
    return isinstance(answer, dict) and len(answer.get("sensor", {}).get("temperature", {})) > 8 and "events" in answer


def ansible_s(folder: Path, ports: Mapping[str, int]) -> float:
    """Return the CPU seconds of a playbook that reads some resources of each BMC, one GET a task."""
    hosts = {name: {"port": port} for name, port in ports.items()}
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = {"all": {"vars": variables, "hosts": hosts}}
    (folder / "inventory.yml").write_text(yaml.safe_dump(inventory))
    (folder / "read.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": _tasks(folder)}]))
    command = [str(BIN / "ansible-playbook"), "-i", str(folder / "inventory.yml"), "-f", "20", str(folder / "read.yml")]
    return cost(command, folder, times=1).cpu_s


def _tasks(folder: Path) -> list[dict[str, Any]]:
    plain: dict[str, Any] = {
        "url_username": USER,
        "url_password": PASSWORD,
        "force_basic_auth": True,
        "ca_path": str(folder / "lab" / "ca.pem"),
        "return_content": True,
    }
    url = "https://127.0.0.1:{{ port }}/redfish/v1/"
    return [{"name": path, "ansible.builtin.uri": {**plain, "url": url + path}} for path in READS[:TASKS]]
