"""A GPU is lost and swapped in the lab, and a whole machine after it: people rehearse what they will do in the hall."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from assay.lab.world import LabWorld
from assay.observe.evidence_store import EvidenceStore
from tests.support.forked_assay import assay, run_assay
from tests.support.serving_fleet import change_yaml

NODE = "n0002"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A new fleet of four nodes that serve, its lab up."""
    home = tmp_path / "fleet"
    assert run_assay("init", str(home)).returncode == 0
    assay(home, "lab", "up")
    assay(home, "reconcile", "--once")
    yield home
    assay(home, "lab", "down")


def read_state(home: Path) -> str:
    nodes = json.loads(assay(home, "status", "--format", "json"))["nodes"]
    return next(str(node["state"]) for node in nodes if node["node"] == NODE)


def pass_time(home: Path, *until: str) -> str:
    """Let half hours pass until the node is in one of these states; return it."""
    for _ in range(12):
        assay(home, "lab", "advance", "0.5")
        assay(home, "reconcile", "--once", "--settle")
        if (state := read_state(home)) in until:
            return state
    raise AssertionError(f"{NODE} is in {state}, and never came to {until}:\n{assay(home, 'explain', NODE)}")


@pytest.mark.slow(minutes=4)
def test_a_lost_gpu_is_swapped_and_its_node_serves_again(home: Path) -> None:
    assay(home, "lab", "inject", "gpu.missing", "--node", NODE, "--with", "gpu=4")
    pass_time(home, "triage")
    old = LabWorld(home / ".assay-lab/world").load(NODE)["gpus"][4]["serial"]
    assay(home, "lab", "inject", "gpu.replaced", "--node", NODE, "--with", "gpu=4")
    new = LabWorld(home / ".assay-lab/world").load(NODE)["gpus"][4]["serial"]
    assay(home, "certify", NODE, "--reason", "GPU 4 swapped")
    pass_time(home, "test")
    assay(home, "lab", "advance", "25")
    assay(home, "reconcile", "--once", "--settle")
    assay(home, "schedules", "run")  # the collectives that end the burn-in, which a loop runs beside its rounds
    assay(home, "reconcile", "--once", "--settle")
    assert read_state(home) == "production"
    assert f"gpu4 is {new}, was {old}" in assay(home, "history", NODE)


@pytest.mark.slow(minutes=3)
def test_another_machine_in_the_place_of_a_node_is_noticed_and_trusted_by_its_own_certificate(home: Path) -> None:
    assay(home, "lab", "inject", "chassis.replaced", "--node", NODE, "--with", "serial=NEWCHASSIS001")
    assay(home, "lab", "advance", "1.1")
    assay(home, "reconcile", "--once", "--settle")
    assert "NEWCHASSIS001" in assay(home, "history", NODE)
    assert "its certificate is not accepted by the system's authorities" in read_bmc(home)

    declared = yaml.safe_load((home / ".assay-lab/world/inventory.yml").read_text())["all"]["hosts"]
    port = declared[NODE]["bmc_port"]
    found = json.loads(assay(home, "discover", "--scan", "127.0.0.1/32", "--port", str(port), "--format", "json"))
    (fingerprint,) = [machine["seen"]["fingerprint"] for machine in found["machines"]]
    inventory = home / "inventory/h100-a.yml"
    change_yaml(inventory, lambda pools: pools["h100-a"]["hosts"][NODE].update(bmc_fingerprint="sha256:" + "0a" * 32))
    assert "its certificate is not the one that bmc_fingerprint pins" in read_bmc(home)
    change_yaml(inventory, lambda pools: pools["h100-a"]["hosts"][NODE].update(bmc_fingerprint=fingerprint))
    assert "NEWCHASSIS001" in read_bmc(home)
    assert "A520112X4400001" in read_bmc(home, "n0001"), "the others are trusted by the authority of the lab"


def read_bmc(home: Path, node: str = NODE) -> str:
    """Return what the BMC of a node tells now."""
    assay(home, "observe", node)
    return json.dumps(EvidenceStore(home / ".assay-lab/evidence").latest(node).channels["bmc"])
