"""What each reset does: a new boot, a healed GPU, active firmware, an interrupted update."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assay.lab.bmc.firmware_flash import read_image, start_flash
from assay.lab.bmc.power_transitions import (
    RESET_TYPES,
    ResetNotPossible,
    apply_elapsed_time,
    is_bmc_ready,
    power_state,
    reset_bmc,
    reset_node,
)
from tests.support.example_images import IMAGES, make_image

START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)

RESTARTS = ["GracefulRestart", "ForceRestart", "PowerCycle", "FullPowerCycle"]


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def flashing(state: dict[str, Any], name: str) -> dict[str, Any]:
    return start_flash(state, read_image(make_image(name, "new", IMAGES[name][1])), (), START)


def staged(state: dict[str, Any], name: str) -> dict[str, Any]:
    return apply_elapsed_time(flashing(state, name), after(90))


@pytest.mark.parametrize("reset_type", RESTARTS)
def test_a_restart_begins_a_new_boot_at_once(healthy: dict[str, Any], reset_type: Any) -> None:
    healthy["gpus"][3]["lost"] = True
    healthy["host"] |= {"taint": 1 << 14, "machine_checks": 2}
    healthy["kernel_log"] = [{"at": START.isoformat(), "text": "NVRM: Xid (PCI:0000:1b:00): 79"}]
    state = reset_node(healthy, reset_type, START)
    assert state["boot"]["id"] != healthy["boot"]["id"]
    assert state["boot"]["count"] == healthy["boot"]["count"] + 1
    assert state["power"] == {"state": "On", "on_at": after(60).isoformat()}
    assert state["boot"]["ready_at"] == after(180).isoformat()
    assert state["kernel_log"] == []
    assert not any(gpu["lost"] for gpu in state["gpus"])
    assert (state["host"]["taint"], state["host"]["machine_checks"]) == (12288, 0), "another kernel"


@pytest.mark.parametrize("reset_type", ["ForceOff", "GracefulShutdown"])
def test_off_is_off_and_the_next_boot_comes_with_on(healthy: dict[str, Any], reset_type: Any) -> None:
    off = reset_node(healthy, reset_type, START)
    assert power_state(off, after(9999)) == "Off"
    assert off["boot"]["count"] == 1
    assert reset_node(off, "On", after(10))["boot"]["count"] == 2


@pytest.mark.parametrize("reset_type", ["GracefulRestart", "ForceRestart"])
def test_what_is_off_cannot_be_restarted(healthy: dict[str, Any], reset_type: Any) -> None:
    with pytest.raises(ResetNotPossible, match="is off"):
        reset_node(reset_node(healthy, "ForceOff", START), reset_type, START)


@pytest.mark.parametrize(
    ("first", "second"), [("ForceOff", "ForceOff"), ("On", "On"), ("ForceOff", "GracefulShutdown")]
)
def test_asking_for_what_already_is_changes_nothing(healthy: dict[str, Any], first: Any, second: Any) -> None:
    state = reset_node(healthy, first, START)
    assert reset_node(state, second, START) == state


@pytest.mark.parametrize(
    ("component", "fitting"),
    [
        ("bios", {"GracefulRestart", "ForceRestart", "PowerCycle", "FullPowerCycle"}),
        ("hca", {"GracefulRestart", "ForceRestart", "PowerCycle", "FullPowerCycle"}),
        ("gpu", {"PowerCycle", "FullPowerCycle"}),
        ("retimer", {"PowerCycle", "FullPowerCycle"}),
        ("bmc", {"FullPowerCycle"}),
        ("hmc", {"FullPowerCycle"}),
    ],
)
def test_new_firmware_runs_after_the_reset_that_it_needs_and_no_other(
    healthy: dict[str, Any], component: str, fitting: set[str]
) -> None:
    first = IMAGES[component][1][0]
    for reset_type in RESET_TYPES:
        state = reset_node(staged(healthy, component), reset_type, after(100))
        assert (state["firmware"][first] == "new") == (reset_type in fitting), reset_type
        assert (first in state["staged"]) == (reset_type not in fitting), reset_type


def test_turning_off_and_on_is_a_host_reset_but_no_loss_of_ac_power(healthy: dict[str, Any]) -> None:
    state = staged(staged(healthy, "bios"), "gpu")
    state = reset_node(reset_node(state, "ForceOff", after(200)), "On", after(200))
    assert (state["firmware"]["BIOS"], state["firmware"]["HGX_FW_GPU_SXM_1"] == "new") == ("new", False)


def test_a_bmc_reset_brings_bmc_and_hmc_and_leaves_the_host_alone(healthy: dict[str, Any]) -> None:
    state = reset_bmc(staged(staged(healthy, "bmc"), "hmc"), after(200))
    assert (state["firmware"]["BMC"], state["firmware"]["HGX_FW_BMC_0"]) == ("new", "new")
    assert state["boot"] == healthy["boot"]
    assert (is_bmc_ready(state, after(229)), is_bmc_ready(state, after(230))) == (False, True)


@pytest.mark.parametrize("reset_type", ["ForceOff", *RESTARTS])
def test_power_lost_while_flashing_ends_the_update_and_keeps_the_old_version(
    healthy: dict[str, Any], reset_type: Any
) -> None:
    state = reset_node(flashing(healthy, "gpu"), reset_type, after(45))
    task = state["tasks"][0]
    assert (task["state"], task["ended_at"]) == ("Exception", after(45).isoformat())
    assert "while gpu was being written" in task["message"]
    late = apply_elapsed_time(state, after(999))
    assert late["firmware"]["HGX_FW_GPU_SXM_1"] == healthy["firmware"]["HGX_FW_GPU_SXM_1"]
    assert late["staged"] == {}


def test_the_bmcs_own_update_lives_on_standby_power(healthy: dict[str, Any]) -> None:
    state = apply_elapsed_time(reset_node(flashing(healthy, "bmc"), "ForceOff", after(45)), after(90))
    assert state["tasks"][0]["state"] == "Completed"
    lost = reset_bmc(flashing(healthy, "bmc"), after(45))
    assert lost["tasks"][0]["state"] == "Exception"


def test_an_update_that_was_done_by_then_is_not_cut_off(healthy: dict[str, Any]) -> None:
    state = reset_node(flashing(healthy, "bios"), "ForceRestart", after(91))
    assert (state["tasks"][0]["state"], state["firmware"]["BIOS"]) == ("Completed", "new")


def test_a_boot_override_for_once_is_consumed_by_the_boot(healthy: dict[str, Any]) -> None:
    once, always = ({**healthy, "boot_override": {"enabled": how, "target": "Pxe"}} for how in ("Once", "Continuous"))
    assert reset_node(once, "ForceRestart", START)["boot_override"] == {}
    assert reset_node(always, "ForceRestart", START)["boot_override"]["target"] == "Pxe"
