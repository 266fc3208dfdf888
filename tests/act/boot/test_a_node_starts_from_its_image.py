"""netboot: a machine asks a real boot server, and its own probe proves which start and which image it runs."""

from __future__ import annotations

import hashlib

import pytest

from assay.act.actions import netboot
from assay.act.boot.attempts import BootAttempt
from tests.act.boot.boot_room import BootRoom


def test_a_machine_boots_from_the_declared_image_and_proves_it(boot: BootRoom) -> None:
    boot.plug_in("n0001")
    boot.room.change("n0001", lambda state: state.update(asset_tag="property of lab 1"))
    intent = boot.begin("n0001")
    assert netboot.verify(boot.room.context(), intent).done is False

    netboot.run(boot.room.context(), intent)

    proof = netboot.verify(boot.room.context(), intent)
    assert proof.done, proof.reason
    (attempt,) = boot.attempts("n0001")
    assert list(attempt.stages) == ["pxe", "kernel", "cloud-init", "agent"]
    assert (attempt.effect, attempt.proven_by, attempt.failure) == (intent.effect, "document", "")
    state = boot.room.state("n0001")
    assert f"assay.attempt={attempt.name}" in state["cmdline"]
    assert f"assay.image={boot.room.fleet.nodes['n0001'].image}" in state["cmdline"]
    assert "iommu=pt" in state["cmdline"], "the node spec's own arguments"
    assert state["asset_tag"] == "property of lab 1", "the BMC has its own asset tag again"
    assert hashlib.sha256(state["boot"]["asset_tag"].encode()).hexdigest() == attempt.nonce_sha256


def test_running_it_once_more_starts_nothing(boot: BootRoom) -> None:
    boot.plug_in("n0002")
    intent = boot.begin("n0002")
    netboot.run(boot.room.context(), intent)
    netboot.run(boot.room.context(), intent)
    assert boot.room.state("n0002")["boot"]["count"] == 2
    assert len(boot.attempts("n0002")) == 1


@pytest.mark.slow
def test_a_controller_that_died_after_the_power_cycle_follows_the_same_start(boot: BootRoom) -> None:
    boot.plug_in("n0003")
    intent = boot.begin("n0003")
    begun = start_and_die(boot, intent)
    netboot.run(boot.room.context(), intent)
    assert [one.name for one in boot.attempts("n0003")] == [begun.name]
    assert boot.room.state("n0003")["boot"]["count"] == 2
    assert netboot.verify(boot.room.context(), intent).done


def start_and_die(boot: BootRoom, intent) -> BootAttempt:
    """Do what a controller does until its machine has started, and nothing more."""
    from assay.act.boot.network_boot import NetworkBoot

    context = boot.room.context()
    provisioning, image = context.fleet.provisioning_of(intent.node), context.fleet.image_of(intent.node)
    assert provisioning is not None
    assert image is not None
    return NetworkBoot(context, intent, provisioning, image)._start()
