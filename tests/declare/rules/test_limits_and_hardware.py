"""A limit must be within what hardware reads, and within what the spec's own hardware does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository
from assay.declare.loader import load_fleet
from assay.declare.rules.measurement_limits import GPU_MAXIMA, GPU_UNITS, LIMIT_BOUNDS, find_gpu_maximum
from assay.model.specs.fabric.cable import find_next_slower_gbps, rate_to_gbps
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.units import UNITS
from tests.declare.rules.cases.case import FABRIC, NODE

Write = Callable[[Mapping[str, "str | None"]], Path]


def said(root: Path, code: str) -> list[str]:
    return [problem.message for problem in check_repository(root).problems if problem.code == code]


def with_limit(name: str, value: float, unit: str, model: str = "NVIDIA H100 80GB HBM3") -> str:
    return NODE.replace("model: H100", f"model: {model}") + f"  {name}: {{value: {value}, unit: {unit}, source: us}}\n"


@pytest.mark.parametrize(
    ("name", "value", "unit", "wrong"),
    [
        ("link_downed", 254, "count", False),
        ("link_downed", 255, "count", True),
        ("symbol_error", 65535, "count", True),
        ("psu_input_low", 12, "V", True),
        ("psu_input_low", 48_000, "mV", False),
        ("nvme_read", 33, "GB/s", True),
        ("nvme_read", 5, "GB/s", False),
        ("our_own", -1, "count", True),
        ("our_own", 101, '"%"', True),
        ("our_own_temperature", -1, "°C", False),
        ("hca_rate", 50, "°C", False),
    ],
)
def test_a_limit_that_can_never_fire(name: str, value: float, unit: str, wrong: bool, fleet_with: Write) -> None:
    assert bool(said(fleet_with({"specs/node.yaml": with_limit(name, value, unit)}), "ASY0050")) is wrong


@pytest.mark.parametrize(
    ("name", "value", "unit", "model", "wrong"),
    [
        ("pcie_generation", 6, "generation", "NVIDIA H100 80GB HBM3", True),
        ("pcie_generation", 6, "generation", "NVIDIA GB200", False),
        ("pcie_generation", 6, "generation", "a GPU of tomorrow", False),
        ("nvlink_links", 18, "links", "NVIDIA A100-SXM4-80GB", True),
        ("nvlink_links", 18, "links", "NVIDIA H100 80GB HBM3", False),
        ("gpu_power_limit", 700, "W", "NVIDIA H200 NVL", True),
        ("gpu_power_limit", 0.7, "kW", "NVIDIA H200", False),
        ("all_reduce_bus_bandwidth", 901, "GB/s", "NVIDIA H200", True),
        ("gpu_burn_gflops", 68, "Tflop/s", "NVIDIA H200", True),
        ("nvme_size", 0.02, "TB", "NVIDIA H200", True),
    ],
)
def test_a_limit_beyond_the_spec_s_hardware(
    name: str, value: float, unit: str, model: str, wrong: bool, fleet_with: Write
) -> None:
    assert bool(said(fleet_with({"specs/node.yaml": with_limit(name, value, unit, model)}), "ASY0055")) is wrong


@pytest.mark.parametrize(
    ("value", "unit", "codes"),
    [
        (400, "Gb/s", set()),
        (390, "Gb/s", set()),
        (50, "GB/s", set()),
        (200, "Gb/s", {"ASY0055"}),
        (100, "Gb/s", {"ASY0055"}),
        (401, "Gb/s", {"ASY0086"}),
        (400, "GB/s", {"ASY0050", "ASY0086"}),
    ],
)
def test_the_rate_of_the_fabric_and_the_limit_of_its_adapters_agree(
    value: float, unit: str, codes: set[str], fleet_with: Write
) -> None:
    root = fleet_with({"specs/node.yaml": with_limit("hca_rate", value, unit), "specs/fabric.yaml": FABRIC})
    assert {problem.code for problem in check_repository(root).problems} & {"ASY0050", "ASY0055", "ASY0086"} == codes


def test_a_slower_link_has_fewer_or_slower_lanes() -> None:
    assert (rate_to_gbps("4xNDR"), find_next_slower_gbps("4xNDR")) == (400, 200)
    assert (rate_to_gbps("1xSDR"), find_next_slower_gbps("1xSDR")) == (2.5, 0)


def test_every_bound_has_a_unit_and_room() -> None:
    assert all(bound.unit in UNITS and bound.low < bound.high for bound in LIMIT_BOUNDS.values())
    assert all(unit in UNITS for unit in GPU_UNITS.values())
    assert all(gpu.source for gpu in GPU_MAXIMA.values())


def test_the_gpus_of_every_example_are_known(example: Path) -> None:
    every: Mapping[str, NodeSpec] = load_fleet(example).node_specs
    specs = {name: spec for name, spec in every.items() if spec.gpus.count}
    assert {name: find_gpu_maximum(spec.gpus.model) is not None for name, spec in specs.items()} == dict.fromkeys(
        specs, True
    )
