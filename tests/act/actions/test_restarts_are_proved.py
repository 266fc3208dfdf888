"""reboot and powercycle: once for one wish, however often it is run, and proved by the boot id alone."""

import pytest

from assay.act.actions import powercycle, poweroff, reboot
from assay.act.actions.action import EffectIntent
from assay.act.effects import effect_attempt_and_verification as steps
from tests.support.lab_room import Room, wish


def begun(room: Room, action, name: str, node: str) -> EffectIntent:
    """Return the intent with what was true before."""
    intent = wish(name, node)
    return wish(name, node, before=action.before(room.context(), intent))


@pytest.mark.parametrize(
    ("action", "name"), [pytest.param(reboot, "reboot", marks=pytest.mark.slow), (powercycle, "powercycle")]
)
def test_one_wish_restarts_the_node_once_however_often_it_is_run(room: Room, action, name: str):
    room.fresh("n0004")
    intent = begun(room, action, name, "n0004")
    assert action.verify(room.context(), intent).done is False, "the node still runs the boot from before"

    action.run(room.context(), intent)
    action.run(room.context(), intent)

    proof = action.verify(room.context(), intent)
    assert proof.done
    assert proof.facts["boot_id"] != intent.before["boot_id"]
    assert room.state("n0004")["boot"]["count"] == 2


def test_a_node_that_was_off_is_only_turned_on(room: Room):
    room.fresh("n0004")
    intent = begun(room, powercycle, "powercycle", "n0004")
    room.change("n0004", lambda state: state["power"].update(state="Off", on_at=None))

    powercycle.run(room.context(), intent)

    assert powercycle.verify(room.context(), intent).done
    assert room.state("n0004")["boot"]["count"] == 2


def test_a_node_is_switched_off_once_and_a_power_cycle_switches_it_on(room: Room):
    room.fresh("n0004")
    off, on = wish("poweroff", "n0004"), begun(room, powercycle, "powercycle", "n0004")
    assert poweroff.verify(room.context(), off).done is False
    for _ in range(2):
        poweroff.run(room.context(), off)
        assert poweroff.verify(room.context(), off).done
    assert room.state("n0004")["power"]["state"] == "Off"

    powercycle.run(room.context(), on)

    assert powercycle.verify(room.context(), on).done
    assert poweroff.verify(room.context(), off).done is False
    assert room.state("n0004")["boot"]["count"] == 2


@pytest.mark.slow
def test_a_boot_that_is_under_way_is_waited_for_and_not_cut_short(room: Room):
    room.fresh("n0004")
    intent = begun(room, reboot, "reboot", "n0004")
    from assay.adapters.bmc.client import open_bmc

    with open_bmc(room.fleet.nodes["n0004"], root=room.root) as bmc:
        bmc.reset_system("ForceRestart")

    reboot.run(room.context(), intent)

    assert reboot.verify(room.context(), intent).done
    assert room.state("n0004")["boot"]["count"] == 2


def test_without_a_boot_id_from_before_the_bmcs_last_reset_is_the_proof(room: Room):
    room.fresh("n0004")
    seen = begun(room, reboot, "reboot", "n0004").before
    intent = wish("reboot", "n0004", before={"last_reset": seen["last_reset"]})
    assert reboot.verify(room.context(), intent).done is False

    powercycle.run(room.context(), intent)

    assert reboot.verify(room.context(), intent).done


@pytest.mark.parametrize("action", [reboot, powercycle])
def test_without_a_boot_id_from_before_a_second_run_still_does_not_restart_it_twice(room: Room, action):
    room.fresh("n0004")
    seen = begun(room, powercycle, "powercycle", "n0004").before
    intent = wish("powercycle", "n0004", before={"last_reset": seen["last_reset"]})
    powercycle.run(room.context(), intent)
    action.run(room.context(), intent)
    assert room.state("n0004")["boot"]["count"] == 2


def test_a_node_that_is_off_has_not_come_back_and_one_that_is_silent_is_not_known(room: Room):
    room.fresh("n0004")
    intent = begun(room, powercycle, "powercycle", "n0004")
    room.change("n0004", lambda state: state["power"].update(state="Off", on_at=None))
    off = powercycle.verify(room.context(), intent)
    with room.shut_out("n0004"):
        nobody_tells = steps.verify_safely(room.context(), powercycle, intent)
    assert (off.done, off.facts) == (False, {"power": "Off"})
    assert off.reason.endswith("its BMC reads the power as Off")
    assert nobody_tells.done is None


def test_with_nothing_to_compare_it_cannot_be_told(room: Room):
    room.fresh("n0004")
    assert reboot.verify(room.context(), wish("reboot", "n0004")).done is None
