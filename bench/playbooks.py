"""The cost of a host in a playbook: our tasks, which run inside ansible-playbook, compared with a module of Ansible.

Both read firmware versions from the same BMCs of the lab. Ours log in, read the fleet's specs and compare, with --check
so that nothing changes; `ansible.builtin.uri` gets one resource. The cost of an empty task is subtracted.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from assay.declare.loader import load_fleet
from bench.bmc_lab import PASSWORD, USER
from bench.bmcs import bmcs
from bench.cost import cost
from bench.measurement import Measurement
from bench.programs import BIN, ROOT

HOSTS = 12
AT_LEAST = 2.0
INVENTORY = "https://127.0.0.1:{{ bmc_port }}/redfish/v1/UpdateService/FirmwareInventory?$expand=.($levels=1)"


def measurements(folder: Path) -> Iterator[Measurement]:
    """Run one task of each kind on every host."""
    root, ca = folder / "fleet", folder / "boxes" / "lab" / "ca.pem"
    for part in ("inventory", "specs", "playbooks"):
        shutil.copytree(ROOT / part, root / part)
    with bmcs(folder / "boxes", HOSTS) as ports:
        names = [node.name for node in load_fleet(root).nodes.values() if node.spec == "hgx-h100"][:HOSTS]
        _lay_over(root, dict(zip(names, ports.values(), strict=True)), ca)
        empty = _cpu_s(root, "empty", {"ansible.builtin.debug": {"msg": "here"}})
        firmware = _cpu_s(root, "ours", {"assay.fleet.firmware": {"components": ["bmc"]}})
        power = _cpu_s(root, "power", {"assay.fleet.power": {"reset": "ForceRestart"}})
        module = _cpu_s(root, "theirs", {"ansible.builtin.uri": _uri(ca)})
    parts = {"hosts": len(names), "empty_s_each": empty, "firmware_s_each": firmware, "power_s_each": power}
    what = "one task on a host, beyond an empty one: through a module of Ansible's / our firmware task"
    yield Measurement(
        what, (module - empty) / (firmware - empty), "×", "at least", AT_LEAST, {**parts, "module_s_each": module}
    )


def _lay_over(root: Path, ports: Mapping[str, int], ca: Path) -> None:
    """Point the hosts to the lab's BMCs, as the lab's own overlay does."""
    os.environ["ASSAY_BENCH_BMC"] = f"{USER}:{PASSWORD}"
    plain = {"bmc_address": "127.0.0.1", "bmc_ca": str(ca), "bmc_credentials": {"env": "ASSAY_BENCH_BMC"}}
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {name: {**plain, "bmc_port": port} for name, port in ports.items()}
    overlay = root / ".assay-lab" / "world" / "inventory.yml"
    overlay.parent.mkdir(parents=True)
    overlay.write_text(yaml.safe_dump({"all": {"vars": variables, "children": {"measured": {"hosts": hosts}}}}))


def _uri(ca: Path) -> dict[str, Any]:
    who = {"url_username": USER, "url_password": PASSWORD, "force_basic_auth": True, "ca_path": str(ca)}
    return {**who, "url": INVENTORY, "return_content": True}


def _cpu_s(root: Path, name: str, task: dict[str, Any]) -> float:
    """Return the CPU seconds per host."""
    book = root / "playbooks" / f"{name}.yml"
    book.write_text(yaml.safe_dump([{"hosts": "measured", "gather_facts": False, "tasks": [{"name": name, **task}]}]))
    where = ["-i", str(root / "inventory"), "-i", str(root / ".assay-lab" / "world" / "inventory.yml")]
    checked = [] if name == "theirs" else ["--check"]
    command = [str(BIN / "ansible-playbook"), *where, "-f", "4", *checked, str(book)]
    return cost(command, root, times=1).cpu_s / HOSTS
