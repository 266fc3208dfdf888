"""A small lab of healthy virtual nodes, and a function that probes them as the fleet does: as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from assay.lab.node.virtual_node import make_initial_state
from assay.lab.virtual_node_state import VirtualNodeState
from assay.lab.world import LabWorld
from assay.model.node import Node
from assay.model.specs.firmware_bundle import FirmwareArtifact, FirmwareBundle, FirmwareComponent
from assay.model.specs.node.node_spec import GpuSpec, HcaSpec, NicSpec, NodeSpec, NvmeSpec, PsuSpec

NOW = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
PCI = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]

SPEC = NodeSpec(
    kind="NodeSpec",
    name="hgx-h100",
    product="HGX H100",
    gpus=GpuSpec(model="NVIDIA H100 80GB HBM3", pci=PCI),
    hcas=[HcaSpec(name=f"mlx5_{rail}", rail=rail, pci=f"0000:{0x10 + 8 * rail:02x}:00.0") for rail in range(8)],
    nics=[NicSpec(name="eth0", speed_mbps=100_000), NicSpec(name="eth1", speed_mbps=100_000)],
    nvme=NvmeSpec(count=8, size_gb=3840),
    psus=PsuSpec(count=6, needed=4),
    fans=8,
    cpu_sockets=2,
    cpu_threads=224,
    memory_gib=2048,
    driver="570.172.08",
    firmware="b1",
    kernel_cmdline=["iommu=pt"],
)
CARRIED = {
    "gpu": ("96.00.BC.00.01", [f"HGX_FW_GPU_SXM_{slot}" for slot in range(1, 9)]),
    "hca": ("28.41.1000", [f"HCA_{rail}" for rail in range(8)]),
    "bios": ("1.5.6", ["BIOS"]),
}
BUNDLE = FirmwareBundle(
    kind="FirmwareBundle",
    name="b1",
    components=[
        FirmwareComponent(
            name=name,
            version=version,
            inventory=ids,
            artifact=FirmwareArtifact(url="x", sha256="0" * 64),
            push="simple",
            reset="ac",
            order=1,
        )
        for name, (version, ids) in CARRIED.items()
    ],
)


def declared(name: str) -> Node:
    """Return the inventory's node of this name."""
    guids = tuple(f"0xb83fd20300{rail:02x}0000" for rail in range(8))
    return Node(name, "h100-a", "lab1", "r01", 12, f"SN-{name}", "hgx-h100", "managed", guids)


@dataclass
class VirtualNode:
    """One node of the lab."""

    world: LabWorld
    name: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.world.folder(self.name)

    def change(self, edit: Callable[[VirtualNodeState], object]) -> None:
        with self.world.change(self.name) as state:
            edit(state)

    def run(self, *command: str, timeout_s: float = 30) -> subprocess.CompletedProcess[str]:
        shell = [sys.executable, "-m", "assay.lab.node.shell", str(self.world.home), self.name]
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            [*shell, *command], capture_output=True, text=True, timeout=timeout_s, env=environment, check=False
        )

    def document(self, *arguments: str) -> dict[str, Any]:
        done = self.run("python3", "-m", "assay.node.probe", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def probe(self, *arguments: str) -> dict[str, Any]:
        return self.document(*arguments)["probe"]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> LabWorld:
    lab = LabWorld(tmp_path_factory.mktemp("lab"))
    lab.set_clock(NOW, 60)
    return lab


_names = count(1)


@pytest.fixture
def node(world: LabWorld) -> VirtualNode:
    """A healthy node that no other test has touched."""
    name = f"n{next(_names):04}"
    with world.change(name) as state:
        state.update(make_initial_state(declared(name), SPEC, BUNDLE, NOW))
    return VirtualNode(world, name)


@pytest.fixture
def healthy() -> Callable[[str], VirtualNodeState]:
    """The state of a healthy node of some name."""
    return lambda name: make_initial_state(declared(name), SPEC, BUNDLE, NOW)
