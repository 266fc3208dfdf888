"""Another image: zap and a restart bring it, the checks' evidence shows it, and fifty machines start at once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from assay.act.actions import netboot, powercycle, reboot, zap
from assay.act.boot.network_boot import read_running_boot
from tests.act.boot.boot_room import PATIENT, BootRoom, open_boot_room
from tests.support.lab_room import wish

OLD = "root=/dev/md0 ro iommu=pt pci=realloc=off numa_balancing=disable assay.image=gpu-node-2026.09:2026.09:01234567"


@pytest.mark.slow(minutes=2)
@pytest.mark.parametrize(("action", "node"), [(zap, "n0007"), (reboot, "n0008"), (powercycle, "n0009")])
def test_a_node_that_runs_another_image_gets_the_declared_one(boot: BootRoom, action, node: str) -> None:
    boot.plug_in(node)
    boot.room.change(node, lambda state: state.update(cmdline=OLD, asset_tag="property of lab 1"))
    name = action.__name__.rpartition(".")[2]
    before = action.before(boot.room.context(), wish(name, node))
    intent = wish(name, node, before=before)
    if action is zap:
        proof = zap.verify(boot.room.context(), intent)
        assert proof.done is False
        assert "runs image gpu-node-2026.09:2026.09:01234567, not gpu-node-2026.10:2026.10:" in proof.reason
    action.run(boot.room.context(), intent)
    proof = action.verify(boot.room.context(), intent)
    assert proof.done, proof.reason
    declared = boot.room.fleet.nodes[node]
    assert read_running_boot(declared).image == declared.image
    (attempt,) = boot.attempts(node)
    assert attempt.effect == intent.effect
    state = boot.room.state(node)
    assert hashlib.sha256(state["boot"]["asset_tag"].encode()).hexdigest() == attempt.nonce_sha256
    assert state["asset_tag"] == "property of lab 1", "the BMC has its own asset tag again"


QUESTIONS = 20
"""How often a machine is asked what it runs: on a busy one of ours, an answer may come too late to count."""
MACHINES = [f"m{number:03}" for number in range(50)]


@pytest.fixture
def many(tmp_path: Path) -> Iterator[BootRoom]:
    """A site with fifty more machines."""

    def declare(root: Path) -> None:
        path = root / "inventory" / "macs.yml"
        content = yaml.safe_load(path.read_text())
        for number, name in enumerate(MACHINES):
            content["h100-a"]["hosts"][name] = {
                "mac": f"02:00:00:00:01:{number:02x}",
                "serial_number": f"A520112X4401{number:03}",
                "rack": f"r{20 + number // 4}",
                "u": 4 + 10 * (number % 4),
                "bmc_address": f"10.20.1.{number + 10}",
            }
        path.write_text(yaml.safe_dump(content))

    with open_boot_room(tmp_path, more=declare, deadlines=PATIENT) as room:
        yield room


@pytest.mark.slow(minutes=3)
def test_fifty_machines_start_at_once(many: BootRoom) -> None:
    for node in MACHINES:
        many.plug_in(node)

    def start(node: str) -> str:
        intent = many.begin(node)
        netboot.run(many.room.context(), intent)
        proofs = (netboot.verify(many.room.context(), intent) for _ in range(QUESTIONS))
        known = next((proof for proof in proofs if proof.done is not None), None)
        return "unknown" if known is None else "" if known.done else known.reason

    with ThreadPoolExecutor(len(MACHINES)) as pool:
        assert dict(zip(MACHINES, pool.map(start, MACHINES), strict=True)) == dict.fromkeys(MACHINES, "")
    attempts = {node: many.attempts(node) for node in MACHINES}
    assert {len(some) for some in attempts.values()} == {1}
    assert len({some[0].nonce_sha256 for some in attempts.values()}) == len(MACHINES), "each its own number"
