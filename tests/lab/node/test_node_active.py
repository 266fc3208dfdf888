"""Load tests on a virtual node: the probe runs the usual tools and reads good and bad results."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from assay.lab.virtual_node_state import VirtualNodeState

ALL = "all_reduce,gpu_burn,nvme_read,memory"


def test_a_healthy_node_passes_all_four(node: Any) -> None:
    before = node.world.clock().now()
    active = node.document("--active", ALL)["active"]
    state = node.world.load(node.name)
    assert active["all_reduce"]["bus_bandwidth_gb_s"] == {"value": 470.0}
    assert active["all_reduce"]["wrong"] == {"value": 0}
    assert [gpu["ok"] for gpu in active["gpu_burn"]["devices"].values()] == [{"value": True}] * 8
    assert active["nvme_read"]["drives"]["nvme3"] == {"mb_s": {"value": float(state["nvme"][3]["mb_s"])}}
    assert active["memory"]["errors"] == {"value": 0}
    for part in active.values():
        started = datetime.fromisoformat(part["started_at"]["value"])
        assert before <= started <= before + timedelta(hours=1), "counted in the lab's time"


def test_what_is_wrong_with_a_node_comes_out_of_its_tools(node: Any) -> None:
    def spoil(state: VirtualNodeState) -> None:
        state["active"] |= {"bus_bandwidth_gb_s": 211.5, "wrong": 6, "memory_errors": 523}
        state["gpus"][4]["burn_ok"] = False
        state["nvme"][2]["mb_s"] = 900

    node.change(spoil)
    active = node.document("--active", ALL)["active"]
    assert active["all_reduce"]["bus_bandwidth_gb_s"] == {"value": 211.5}
    assert active["all_reduce"]["wrong"] == {"value": 6}
    assert {gpu for gpu, burnt in active["gpu_burn"]["devices"].items() if not burnt["ok"]["value"]} == {"4"}
    assert active["nvme_read"]["drives"]["nvme2"] == {"mb_s": {"value": 900.0}}
    assert active["memory"]["errors"] == {"value": 523}


def test_gpus_burn_in_the_precision_of_their_limit(node: Any) -> None:
    node.change(lambda state: state["gpus"][0].update(burn_gflops=4_000))
    burned = node.document("--active", "gpu_burn")["active"]["gpu_burn"]["devices"]
    assert burned["0"]["gflops"] == {"value": 4_000.0}, "with tensor cores, such a GPU is as fast as the limit in FP32"


@pytest.mark.slow
def test_a_lost_gpu_stops_the_collective_run_and_that_is_no_number(node: Any) -> None:
    node.change(lambda state: state["gpus"][0].update(lost=True))
    active = node.document("--active", "all_reduce,gpu_burn")["active"]
    assert "8 GPUs, 7 visible" in active["all_reduce"]["failed"]
    # gpu_burn numbers the GPUs that CUDA sees: with one lost, no number names a GPU for sure.
    assert [*active["gpu_burn"]["devices"]] == ["failed"]


def test_the_active_channel_is_there_only_when_asked(node: Any) -> None:
    assert list(node.document()) == ["probe"]


@pytest.mark.slow
def test_a_part_that_does_not_exist_failed_by_name(node: Any) -> None:
    active = node.document("--active", "all_reduced")["active"]
    assert "no active part is called 'all_reduced'" in active["all_reduced"]["failed"]


@pytest.mark.slow
def test_a_tool_that_is_not_installed_is_absent(node: Any) -> None:
    hidden = "import os, runpy; os.environ['PATH'] = '/nonexistent'; "
    hidden += "runpy.run_module('assay.node.probe', run_name='__main__')"
    done = node.run("python3", "-c", hidden, "--active", ALL, "--root", str(node.folder / "root"))
    assert '"all_reduce": {"absent": "all_reduce_perf is not installed"}' in done.stdout
    assert '"memory": {"absent": "stress-ng is not installed"}' in done.stdout
