"""Updates that go wrong as planned: each fault happens once, at its time, and the BMC shows what a real one shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assay.lab.bmc.authentication import BmcLogins
from assay.lab.bmc.firmware_flash import find_task, read_image, start_flash, tasks
from assay.lab.bmc.power_transitions import apply_elapsed_time, is_bmc_ready, reset_node
from assay.lab.bmc.resource_tree import ResourceView
from assay.lab.faults.node_faults import NODE_FAULTS
from assay.lab.virtual_node_state import VirtualNodeState
from assay.model.errors import AssayError
from tests.lab.bmc.pending_changes import has_pending_changes
from tests.support.example_images import IMAGES, make_image

START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def flashed(state: VirtualNodeState, fault: str, **arguments: Any) -> VirtualNodeState:
    """Plant a fault of the BIOS and start its update."""
    NODE_FAULTS[fault](state, START, "bios", **arguments)
    return start_flash(state, read_image(make_image("bios", "new", IMAGES["bios"][1])), (), START)


def view(state: VirtualNodeState, at: datetime) -> ResourceView:
    return ResourceView("n0003", state, at, BmcLogins("u:p"))


def test_a_version_that_needs_two_resets_runs_after_the_second(healthy: dict[str, Any]) -> None:
    state = apply_elapsed_time(flashed(healthy, "flash.second-reset"), after(90))
    once = reset_node(state, "ForceRestart", after(100))
    assert (once["firmware"]["BIOS"], "BIOS" in once["staged"]) == ("2.7.3", True)
    twice = reset_node(once, "ForceRestart", after(500))
    assert (twice["firmware"]["BIOS"], twice["staged"]) == ("new", {})


def test_a_version_that_rolls_back_runs_for_its_time(healthy: dict[str, Any]) -> None:
    state = reset_node(apply_elapsed_time(flashed(healthy, "flash.rolls-back", after_s=60), after(90)), "On", after(91))
    state = reset_node(state, "ForceRestart", after(100))
    assert state["firmware"]["BIOS"] == "new"
    assert has_pending_changes(state)
    assert apply_elapsed_time(state, after(159))["firmware"]["BIOS"] == "new"
    back = apply_elapsed_time(state, after(160))
    assert back["firmware"]["BIOS"] == "2.7.3"
    assert "did not start its new firmware" in back["events"][-1]["message"]


@pytest.mark.parametrize(("written", "staged"), [(True, ["BIOS"]), (False, [])])
def test_a_task_that_is_lost_is_known_to_nobody(healthy: dict[str, Any], written: bool, staged: list[str]) -> None:
    state = flashed(healthy, "flash.task-lost", at_percent=50, written=written)
    assert find_task(view(state, START), "1")["component"] == "bios"
    lost = apply_elapsed_time(state, after(45))
    with pytest.raises(LookupError):
        find_task(view(lost, after(45)), "1")
    assert tasks(view(lost, after(45)))["Members"] == []
    assert list(apply_elapsed_time(lost, after(90))["staged"]) == staged


@pytest.mark.parametrize("forgets", [False, True])
def test_a_bmc_that_restarts_in_the_middle_breaks_the_update(healthy: dict[str, Any], forgets: bool) -> None:
    state = apply_elapsed_time(flashed(healthy, "flash.bmc-restarts", at_percent=10, forgets=forgets), after(9))
    assert not is_bmc_ready(state, after(10))
    assert len(tasks(view(state, after(50)))["Members"]) == (0 if forgets else 1)
    end = apply_elapsed_time(state, after(1000))
    assert (end["tasks"][0]["state"], end["staged"]) == ("Exception", {})
    assert end["tasks"][0]["message"] == "Watchdog restart of the BMC while bios was being written"


def test_an_update_may_survive_the_restart_of_its_bmc(healthy: dict[str, Any]) -> None:
    state = apply_elapsed_time(flashed(healthy, "flash.bmc-restarts", forgets=True, breaks=False), after(45))
    assert not is_bmc_ready(state, after(50))
    assert tasks(view(state, after(50)))["Members"] == []
    assert apply_elapsed_time(state, after(90))["staged"]["BIOS"]["version"] == "new"


def test_a_fault_happens_once_and_to_its_component_only(healthy: dict[str, Any]) -> None:
    NODE_FAULTS["flash.second-reset"](healthy, START, "gpu")
    state = flashed(healthy, "flash.second-reset")
    assert [fault["component"] for fault in state["fails"]["flash_faults"]] == ["gpu"]
    again = start_flash(
        apply_elapsed_time(state, after(90)), read_image(make_image("bios", "newer", IMAGES["bios"][1])), (), after(90)
    )
    assert "resets" not in again["tasks"][-1]


def test_a_time_outside_of_the_update_is_refused(healthy: dict[str, Any]) -> None:
    with pytest.raises(AssayError, match="not within the update"):
        flashed(healthy, "flash.task-lost", at_percent=100)
