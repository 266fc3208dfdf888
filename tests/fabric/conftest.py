"""A small fabric: six nodes on four rails, four leaves, two spines; 56 cables, with ports to spare."""

from pathlib import Path

import pytest

from assay.fabric.design.compiler import CompiledTopology, compile_topology
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.node_settings import make_node_settings

NODES = [f"n{number:02}" for number in range(1, 7)]


def small_design(**changes) -> FabricDesign:
    leaves = [{"guid": f"0x{0x5000 + rail:016x}", "rack": "r09", "u": 10 + rail} for rail in range(4)]
    spines = [{"guid": f"0x{0x6000 + index:016x}", "rack": "r10", "u": 10 + index} for index in range(2)]
    rules = {
        "kind": "FabricDesign",
        "name": "small",
        "site": "lab1",
        "nodes": ["n01..n06"],
        "rails": 4,
        "rate": "4xNDR",
        "hca_label": "R{rail}",
        "switch": {"product": "MQM9700", "ports": 64, "labels": "cage/port"},
        "leaves": {"name": "leaf-{unit}-{rail}", "down": "1..8", "up": "9..16", "at": leaves},
        "spines": {"name": "spine-{index}", "per_pair": 4, "at": spines},
    }
    return FabricDesign.model_validate(rules | changes)


def small_fleet(design: FabricDesign, **variables) -> Fleet:
    nodes = {
        name: Node(
            name, "pool", "lab1", f"r0{1 + index // 4}", 4 + 10 * (index % 4), f"s{index}", "spec", "managed",
            tuple(f"0x{0xA000 + 16 * index + rail:016x}" for rail in range(design.rails)),
            settings=make_node_settings(variables),
        )
        for index, name in enumerate(NODES)
    }  # fmt: skip
    return Fleet(Path(), nodes, designs={design.name: design})


@pytest.fixture(scope="session")
def design() -> FabricDesign:
    return small_design()


@pytest.fixture(scope="session")
def fleet(design: FabricDesign) -> Fleet:
    return small_fleet(design)


@pytest.fixture(scope="session")
def small(design: FabricDesign, fleet: Fleet) -> CompiledTopology:
    return compile_topology(design, fleet)


@pytest.fixture
def make_design():
    return small_design


@pytest.fixture
def make_fleet():
    return small_fleet
