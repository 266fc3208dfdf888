"""Elapsed time changes a node's state: updates end and power comes on, once, in order, never backwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.lab.bmc import firmware_flash
from assay.lab.bmc.firmware_flash import ComponentBusy, UploadedImage, flash_progress, read_image, start_flash
from assay.lab.bmc.power_transitions import (
    RESET_TYPES,
    ResetNotPossible,
    apply_elapsed_time,
    power_state,
    reset_node,
)
from tests.lab.bmc.pending_changes import has_pending_changes
from tests.support.example_images import IMAGES, make_image

START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)

seconds = st.integers(0, 400).map(lambda whole: timedelta(seconds=whole))
components = st.sampled_from(sorted(IMAGES))


def an_image(name: str, version: str) -> UploadedImage:
    return read_image(make_image(name, version, IMAGES[name][1]))


def base() -> dict[str, Any]:
    ids = [name for _, inventory in IMAGES.values() for name in inventory]
    return {
        "power": {"state": "On", "on_at": None},
        "boot": {"id": "first", "ready_at": START.isoformat(), "count": 1},
        "timing": {"power_on_s": 60, "boot_s": 120, "flash_s": 90, "bmc_reset_s": 30},
        "firmware": dict.fromkeys(ids, "old"),
        "staged": {},
        "flashes": [],
        "tasks": [],
        "events": [],
        "gpus": [{"lost": True}],
        "kernel_log": [{"at": START.isoformat(), "text": "NVRM: Xid"}],
        "fails": {"flash": []},
        "box": {"bios": {"QuietBoot": "Disabled"}, "bios_pending": {"QuietBoot": "Enabled"}},
    }


@st.composite
def histories(draw: st.DrawFn) -> dict[str, Any]:
    """States that came to be by updates and resets at growing times, from START on."""
    state, now = base(), START
    state["fails"]["flash"] = draw(st.lists(components, max_size=3))
    for _ in range(draw(st.integers(0, 5))):
        now += draw(seconds)
        if draw(st.booleans()):
            name = draw(components)
            try:
                state = start_flash(
                    apply_elapsed_time(state, now),
                    read_image(make_image(name, draw(st.sampled_from("ab")), IMAGES[name][1])),
                    (),
                    now,
                )
            except ComponentBusy:
                continue
        else:
            try:
                state = reset_node(state, draw(st.sampled_from(RESET_TYPES)), now)
            except ResetNotPossible:
                continue
    return state


@given(histories(), seconds)
def test_settling_twice_is_settling_once(state: dict[str, Any], later: timedelta) -> None:
    once = apply_elapsed_time(state, START + later)
    assert apply_elapsed_time(once, START + later) is once


@given(histories(), seconds)
def test_only_a_pending_state_is_changed_by_time(state: dict[str, Any], later: timedelta) -> None:
    assert has_pending_changes(state) or apply_elapsed_time(state, START + later) is state
    assert not has_pending_changes(apply_elapsed_time(state, START + timedelta(days=1)))


@given(histories(), seconds, seconds)
def test_time_may_pass_in_steps_or_at_once(state: dict[str, Any], first: timedelta, second: timedelta) -> None:
    in_steps = apply_elapsed_time(apply_elapsed_time(state, START + first), START + first + second)
    assert in_steps == apply_elapsed_time(state, START + first + second)


@given(histories(), seconds, seconds)
def test_what_ended_stays_as_it_ended_and_progress_never_falls(
    state: dict[str, Any], first: timedelta, second: timedelta
) -> None:
    early, late = apply_elapsed_time(state, START + first), apply_elapsed_time(state, START + first + second)
    for before, after in zip(early["tasks"], late["tasks"], strict=True):
        assert before["state"] == "Running" or before == after
        assert flash_progress(before, START + first) <= flash_progress(after, START + first + second)
    assert late["events"][: len(early["events"])] == early["events"]


@given(histories())
def test_a_settled_state_is_never_changed_in_place(state: dict[str, Any]) -> None:
    before = repr(state)
    apply_elapsed_time(state, START + timedelta(days=1))
    assert repr(state) == before


@given(histories())
def test_in_the_end_nothing_runs_and_every_ended_task_is_in_the_event_log(state: dict[str, Any]) -> None:
    end = apply_elapsed_time(state, START + timedelta(days=1))
    assert {task["state"] for task in end["tasks"]} <= {"Completed", "Exception"}
    told = [event for event in end["events"] if event["message_id"].endswith(("UpdateSuccessful", "ApplyFailed"))]
    assert len(told) == len(end["tasks"])


@given(histories())
def test_event_ids_are_unique_and_grow(state: dict[str, Any]) -> None:
    ids = [int(event["id"]) for event in apply_elapsed_time(state, START + timedelta(days=1))["events"]]
    assert ids == sorted(set(ids))


def flashed(name: str, **changes: Any) -> dict[str, Any]:
    state = base() | changes
    return start_flash(state, read_image(make_image(name, "new", IMAGES[name][1])), (), START)


def test_progress_follows_the_clock_and_reaches_100_only_when_completed() -> None:
    state = flashed("gpu")
    times = [START + timedelta(seconds=at) for at in (0, 45, 89.9, 90)]
    assert [flash_progress(apply_elapsed_time(state, at)["tasks"][0], at) for at in times] == [0, 50, 99, 100]


def test_a_written_image_is_staged_and_the_running_version_stays() -> None:
    state = apply_elapsed_time(flashed("gpu"), START + timedelta(seconds=90))
    assert state["firmware"]["HGX_FW_GPU_SXM_1"] == "old"
    assert state["staged"]["HGX_FW_GPU_SXM_8"] == {"version": "new", "reset": "ac"}


def test_firmware_that_needs_no_reset_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firmware_flash, "RESET_BY_COMPONENT", ())
    state = apply_elapsed_time(flashed("bios"), START + timedelta(seconds=90))
    assert state["firmware"]["BIOS"] == "new"
    assert state["staged"] == {}


def test_a_planned_failure_fails_one_update_and_is_spent() -> None:
    state = flashed("gpu", fails={"flash": ["gpu", "bios"]})
    assert state["fails"]["flash"] == ["bios"]
    ended = apply_elapsed_time(state, START + timedelta(seconds=90))
    assert ended["tasks"][0]["state"] == "Exception"
    assert (ended["firmware"]["HGX_FW_GPU_SXM_1"], ended["staged"]) == ("old", {})
    assert flash_progress(ended["tasks"][0], START + timedelta(days=1)) < 100


def test_power_comes_when_its_time_has_come() -> None:
    state = reset_node(reset_node(base(), "ForceOff", START), "On", START)
    assert power_state(state, START + timedelta(seconds=59)) == "PoweringOn"
    on = apply_elapsed_time(state, START + timedelta(seconds=60))
    assert power_state(on, START + timedelta(seconds=60)) == "On"
    assert on["events"][-1]["message"] == "System power is on"
