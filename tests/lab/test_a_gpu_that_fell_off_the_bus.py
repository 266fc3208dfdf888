"""After XID 79, a GPU serves again only if it passes its diagnosis, is fast on tensor cores and computes right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forked_assay import assay, run_assay

GOOD, BAD = "n0002", "n0003"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A new fleet of four nodes that serve, its lab up; two may be out of service at once."""
    home = tmp_path / "fleet"
    assert run_assay("init", str(home)).returncode == 0
    policy = home / "specs" / "lifecycle" / "default.yaml"
    policy.write_text(policy.read_text().replace("pool_percent: 25", "pool_percent: 50"))
    assay(home, "lab", "up")
    assay(home, "reconcile", "--once")
    yield home
    assay(home, "lab", "down")


@pytest.mark.slow(minutes=4)
def test_only_the_gpu_that_passes_what_its_fault_asks_for_serves_again(home: Path) -> None:
    for name in (GOOD, BAD):
        assay(home, "lab", "inject", "gpu.xid", "--node", name, "--with", "gpu=4", "--with", "xid=79")
    for fault in ("gpu.fails-diagnosis", "gpu.slow"):
        assay(home, "lab", "inject", fault, "--node", BAD, "--with", "gpu=4")
    for _ in range(4):
        assay(home, "reconcile", "--once", "--settle")
        nodes = {node["node"]: node for node in json.loads(assay(home, "status", "--format", "json"))["nodes"]}
        if (nodes[GOOD]["state"], nodes[BAD]["state"]) == ("production", "triage"):
            break
    else:
        raise AssertionError({name: nodes[name]["state"] for name in (GOOD, BAD)})
    assert "test_gpu_passes_the_diagnosis failed" in nodes[BAD]["because"]
    assert "test_tensor_cores_alike_in_dcgmproftester failed" in nodes[BAD]["because"]
    passed, skipped = nodes[GOOD]["because"].split(" checks of phase test passed, ")
    count, total = passed.split(" of ")
    assert int(total) - int(count) == int(skipped.split(" skipped: no load ran ")[0]) > 0
