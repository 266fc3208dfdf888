"""The load tools of a virtual node answer as the real ones do, and show what is planted."""

from __future__ import annotations

from typing import Any

import pytest

from assay.lab.faults.injection import inject_fault
from assay.lab.node.healthy_host import STORAGE
from assay.model.reading import parse_reading

TOOLS = (
    *("dcgm_diag_3", "ubergemm", "dcgmproftester", "gpu_fryer", "nvbandwidth", "ib_write_bw", "ib_write_bw_gpu"),
    *("fio_verify", "stressapptest"),
)


def unread(tree: Any, path: str = "") -> dict[str, str]:
    reading = parse_reading(tree)
    if reading is not None:
        return {} if reading.kind == "value" else {path: reading.kind}
    return {place: kind for name, below in tree.items() for place, kind in unread(below, f"{path}/{name}").items()}


@pytest.mark.slow
def test_every_tool_of_a_healthy_node_gives_values(node: Any) -> None:
    active = node.document("--active", ",".join(TOOLS), "--seconds", "1")["active"]
    assert unread(active) == {f"/dcgm_diag_3/devices/{gpu}/tests/eud": "unsupported" for gpu in range(8)}
    assert active["dcgm_diag_3"]["devices"]["7"]["tests"]["memory"] == {"value": "Pass"}
    assert active["nvbandwidth"]["device_to_device"]["3"]["gb_s"]["value"] > 335
    assert len(active["ib_write_bw"]["adapters"]) == 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "arguments", "part", "path", "wanted"),
    [
        ("gpu.slow", {"gpu": 4}, "gpu_fryer", "devices/4/problem", {"value": "LowFlops"}),
        ("gpu.fails-diagnosis", {"gpu": 4}, "dcgm_diag_2", "exit_code", {"value": 226}),
        ("gpu.fails-diagnosis", {"gpu": 4, "test": "pcie"}, "dcgm_diag_2", "devices/3/tests/pcie", {"value": "Pass"}),
        (
            "hca.slow",
            {"hca": "mlx5_2", "percent": 100},
            "ib_write_bw",
            "adapters/mlx5_2/gbps",
            {"failed": "'0.0' is no speed"},
        ),
        ("drives.forget", {}, "fio_verify", "intact", {"value": False}),
        ("memory.forgets", {"errors": 3}, "stressapptest", "errors", {"value": 3}),
    ],
)
def test_a_planted_fault_shows_in_its_tool(
    node: Any, fault: str, arguments: dict[str, Any], part: str, path: str, wanted: Any
) -> None:
    inject_fault(node.world, fault, node.name, arguments)
    found = node.document("--active", part, "--seconds", "1")["active"][part]
    for step in path.split("/"):
        found = found[step]
    assert found == wanted


def test_storage_that_forgets_shows_on_the_node_that_mounts_it_and_its_drives_are_well(node: Any) -> None:
    arguments = ("--active", "shared_storage,fio_verify", "--load-tools", '{"storage": "/shared"}')
    unmounted = node.document(*arguments)["active"]["shared_storage"]
    assert unmounted == {"failed": "/shared is not on shared storage, but on ext4"}
    node.change(lambda state: state["host"]["mounts"].append(STORAGE))
    assert unread(node.document(*arguments)["active"]) == {}
    inject_fault(node.world, "storage.forgets", node.name, {})
    active = node.document(*arguments)["active"]
    assert (active["shared_storage"]["intact"], active["fio_verify"]["intact"]) == ({"value": False}, {"value": True})


@pytest.mark.slow
def test_slow_parts_are_slow_and_the_others_not(node: Any) -> None:
    parts = ("ubergemm", "nvbandwidth")
    before = node.document("--active", ",".join(parts), "--seconds", "1")["active"]
    for fault, arguments in (
        ("gpu.slow", {"gpu": 4}),
        ("gpu.copies-slowly", {"gpu": 4}),
        ("hca.slow", {"hca": "mlx5_2"}),
    ):
        inject_fault(node.world, fault, node.name, arguments)
    after = node.document("--active", ",".join(parts), "--seconds", "1")["active"]

    def share(*path: str) -> float:
        old, new = before, after
        for step in path:
            old, new = old[step], new[step]
        return float(new["value"] / old["value"])

    assert share("ubergemm", "devices", "4", "gflops") == pytest.approx(0.8, rel=0.01)
    assert share("ubergemm", "devices", "5", "gflops") == 1
    assert share("nvbandwidth", "host_to_device", "4", "gb_s") == pytest.approx(0.5, rel=0.01)
    assert share("nvbandwidth", "device_to_host", "3", "gb_s") == 1


@pytest.mark.slow
def test_beside_a_lost_gpu_the_slow_one_has_its_own_name(node: Any) -> None:
    """CUDA counts only the GPUs that are left: its fourth is gpu4."""
    before = node.document("--active", "ubergemm", "--seconds", "1")["active"]["ubergemm"]["devices"]
    inject_fault(node.world, "gpu.lost", node.name, {"gpu": 1})
    inject_fault(node.world, "gpu.slow", node.name, {"gpu": 4})
    after = node.document("--active", "ubergemm", "--seconds", "1")["active"]["ubergemm"]["devices"]
    assert unread(after) == {"/1": "failed"}
    shares = {gpu: after[gpu]["gflops"]["value"] / before[gpu]["gflops"]["value"] for gpu in after.keys() - {"1"}}
    assert shares == {gpu: pytest.approx(0.8 if gpu == "4" else 1, rel=0.01) for gpu in "0234567"}
