"""The memory of the probe on a large node: 10 adapters, 224 CPUs, 32 modules, 300 PCI devices, 3,000 processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.lab.node.shell import install_tools
from assay.lab.node.virtual_node import render_node

PROCESSES, INTERRUPTS, DEVICES, CPUS = 3_000, 2_500, 300, 224
MOST_MIB = 60
# A small process between us and the probe: what a child is said to have used at most begins with what its parent had.
MEASURED = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
sys.stderr.write(json.dumps(used.ru_maxrss / 1024))
"""


@pytest.fixture
def large(healthy: Any, tmp_path: Path) -> Path:
    state = healthy("large")
    module = state["host"]["dimms"][0]
    state["host"]["dimms"] = [{**module, "slot": f"P{slot // 16 + 1}-DIMM{slot % 16}"} for slot in range(32)]
    adapter = state["hcas"][0]
    state["hcas"] = [
        {**adapter, "name": f"mlx5_{rail}", "pci": f"0000:{0x10 + 8 * rail:02x}:00.0"} for rail in range(10)
    ]
    render_node(state, tmp_path)
    root = tmp_path / "root"
    crowd(root)
    (root / "proc/uptime").write_text("100000.0 1.0\n")
    return root


def crowd(root: Path) -> None:
    """Add what a large node has besides: other devices, processes, interrupts and frequency policies."""
    for number in range(DEVICES):
        put(root / f"sys/bus/pci/devices/0000:fe:{number // 8:02x}.{number % 8}/class", "0x088000\n")
    for pid in range(100, 100 + PROCESSES):
        put(root / f"proc/{pid}/stat", f"{pid} (kworker/{pid}) I 2 0 0 0 -1 69238880 0 0 0 0\n")
    for cpu in range(CPUS):
        put(root / f"sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_governor", "performance\n")
    counts = "".join(f"{cpu:>11}" for cpu in range(CPUS))
    numbered = [f"{irq:4}:{counts}  IR-PCI-MSIX mlx5_comp{irq}\n" for irq in range(INTERRUPTS)]
    named = [f" {name}:{counts}  of the processors\n" for name in ("LOC", "MCE", "MCP", "THR", "DFR")]
    put(root / "proc/interrupts", "".join([*numbered, *named]))


def put(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_a_large_node_is_read_in_sixty_megabytes(large: Path, tmp_path: Path) -> None:
    path = f"{install_tools(tmp_path / 'tools')}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-S", "-c", MEASURED, sys.executable, "-m", "assay.node.probe", "--root", str(large)]
    environment = {**os.environ, "PATH": path, "ASSAY_ROOT": str(large)}
    run = subprocess.run(command, capture_output=True, check=True, env=environment)
    probe = json.loads(run.stdout)["probe"]
    assert probe["host"]["processes"]["count"]["value"] >= PROCESSES
    assert len(probe["memory"]["firmware"]["dimms"]) == 32
    assert len(probe["hca"]) == 10
    assert probe["memory"]["machine_checks"]["exceptions"]["value"] == sum(range(CPUS))
    assert json.loads(run.stderr) < MOST_MIB
