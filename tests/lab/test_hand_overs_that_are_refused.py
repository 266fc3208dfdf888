"""Nodes of a new fleet go to another customer: one opens with its proofs, two stay closed for what is left on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.lab.world import LabWorld
from tests.act.boot.boot_room import BootServer, declare_image
from tests.support.forked_assay import assay, run_assay
from tests.support.reserved_ports import reserve_ports
from tests.support.serving_fleet import change_yaml

GOOD, OWNED, REACHABLE = NODES = ("n0001", "n0002", "n0003")
POOL = "inventory/h100-a.yml"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A new fleet whose nodes serve customer a and boot by assay."""
    home, (port,) = tmp_path / "fleet", reserve_ports(1)
    assert run_assay("init", str(home)).returncode == 0
    change_yaml(home / "specs/profiles/managed.yaml", lambda profile: profile.update(may=["wipe", "network-starts"]))
    change_yaml(home / "specs/lifecycle/default.yaml", lambda policy: policy["limits"].update(pool_percent=50))
    declare_image(home, port)

    def declare(pools: dict[str, Any]) -> None:
        pools["h100-a"]["vars"]["customer"] = "a"
        for number, host in enumerate(pools["h100-a"]["hosts"].values(), 1):
            host["mac"] = f"02:00:00:00:00:{number:02x}"

    change_yaml(home / POOL, declare)
    assay(home, "lab", "up")
    server = BootServer(home, port)
    try:
        server.start()
        for node in NODES:
            with LabWorld(home / ".assay-lab/world").change(node) as state:
                state["boot_server"] = server.url
        assay(home, "reconcile", "--once")
        yield home
    finally:
        server.stop()
        assay(home, "lab", "down")


def hand_over(home: Path, *nodes: str) -> None:
    """Let the inventory give nodes to b, which closes them, and order their hand-over."""

    def give(pools: dict[str, Any]) -> None:
        for node in nodes:
            pools["h100-a"]["hosts"][node]["customer"] = "b"

    change_yaml(home / POOL, give)
    assay(home, "reconcile", "--once")
    for node in nodes:
        assert show(home)[node]["state"] == "cordoned"
        assay(home, "move", node, "hand-over", "--reason", "a left, b comes", "--who", "ann", "--within", "24h")


def show(home: Path) -> dict[str, dict[str, Any]]:
    return {each["node"]: each for each in json.loads(assay(home, "status", "--format", "json"))["nodes"]}


@pytest.mark.slow(minutes=8)
def test_what_a_former_customer_left_keeps_a_node_closed_with_incident_and_ticket(home: Path) -> None:
    hand_over(home, GOOD)
    for _ in range(3):
        assay(home, "reconcile", "--once")
    assert show(home)[GOOD]["state"] == "production"
    proved = show(home)[GOOD]["because"]
    assert "tpm-owner: test_tpm_has_no_owner passed" in proved
    assert "image: netboot verified: runs image gpu-node-2026.10" in proved

    assay(home, "lab", "inject", "tpm.owned", "--node", OWNED)
    assay(home, "lab", "inject", "bmc.reachable", "--node", REACHABLE)
    hand_over(home, OWNED, REACHABLE)
    for _ in range(5):
        assay(home, "reconcile", "--once")
    shown = show(home)
    tickets = json.loads(assay(home, "tickets", "--format", "json"))["tickets"]
    for node, check, words in (
        (OWNED, "test_tpm_has_no_owner", "a secret is set for owner: clear the TPM"),
        (REACHABLE, "test_bmc_network", "the BMC answers its node at 22/tcp"),
    ):
        assert shown[node]["state"] == "triage"
        assert f"{check} failed on h100-a/{node}: {words}" in shown[node]["because"]
        assert shown[node]["incident"], shown[node]
        assert any(words in each["seen"] for each in tickets if each["node"] == node), (node, tickets)
        assert "hand-over.refused" in assay(home, "history", node)
        assay(home, "move", node, "production", "--reason", "b waits", "--who", "ann", codes=(0, 1, 2))
    assay(home, "reconcile", "--once")
    assert {show(home)[node]["state"] for node in (OWNED, REACHABLE)}.isdisjoint({"production", "spare"})
