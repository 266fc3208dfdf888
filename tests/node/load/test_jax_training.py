"""Training in JAX, on devices that a CPU stands for: alone, spread over devices, shared out, and over two nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.node.load.jax_needed import needs_jax, run_load
from tests.support.reserved_ports import reserve_ports

pytestmark = [pytest.mark.slow(minutes=3), needs_jax]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def train(workload: str, *words: str, cache: Path) -> list[dict[str, Any]]:
    """Return the steps of three on four devices."""
    lines = run_load("train", workload, "--steps", "3", "--devices", "4", *words, cache=cache)
    return [line for line in lines if "step" in line]


def test_the_same_batch_on_each_device_gives_one_digest_and_a_hit_stays_in_every_later_step(cache: Path) -> None:
    steps = train("gpt", "--plant", "device=2,bit=28,from=1", cache=cache)
    assert [len(set(step["digests"])) for step in steps] == [1, 2, 2]
    assert all(step["digests"][2] != step["digests"][0] for step in steps[1:])


def test_two_runs_give_the_same_losses_and_digests(cache: Path) -> None:
    first, second = (train("gpt", cache=cache) for _ in range(2))
    kept = ("digests", "own", "loss")
    assert [[step[name] for name in kept] for step in first] == [[step[name] for name in kept] for step in second]


def test_spread_data_gives_one_state_and_the_device_own_digest_shows_whose_gradient_was_wrong(cache: Path) -> None:
    golden = train("data-parallel", cache=cache)
    spoilt = train("data-parallel", "--plant", "device=1,bit=29,from=2", cache=cache)
    assert all(len(set(step["digests"])) == 1 for step in [*golden, *spoilt]), "the sum reaches every device"
    assert golden[2]["digests"] != spoilt[2]["digests"]
    wrong = [mine != other for mine, other in zip(golden[2]["own"], spoilt[2]["own"], strict=True)]
    assert wrong == [False, True, False, False]


def test_shared_layers_give_one_state(cache: Path) -> None:
    steps = train("tensor-parallel", cache=cache)
    assert all(len(set(step["digests"])) == 1 and len(set(step["own"])) == 4 for step in steps)
    assert len({step["digests"][0] for step in steps}) == 3


def test_two_nodes_of_two_devices_give_the_bits_of_one_node_with_four(cache: Path) -> None:
    one = train("data-parallel", cache=cache)
    settings = {**os.environ, "ASSAY_LOAD_CACHE": str(cache), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
    (port,) = reserve_ports(1)
    words = ["train", "data-parallel", "--engine", "jax", "--steps", "3", "--devices", "2", "--nodes", "2"]
    nodes = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "assay.node.load", *words),
                *("--node", str(node), "--coordinator", f"127.0.0.1:{port}"),
            ],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=settings,
        )
        for node in range(2)
    ]  # fmt: skip
    try:
        printed = [node.communicate(timeout=300)[0].splitlines() for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    steps = [[json.loads(line) for line in lines if b'"step"' in line] for lines in printed]
    for whole, first, second in zip(one, *steps, strict=True):
        for name in ("digests", "own", "loss"):
            assert whole[name] == first[name] + second[name]
