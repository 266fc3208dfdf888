"""A lab's clock that jumps is handed out in steps; without a jump it passes as it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.lab.world import LabWorld
from assay.node.burnin.node_tasks import EVERY_TEST, RehearsedClock
from assay.node.load.run import RunPlan, find_start, parse_after

START, RATE, HOUR_S = datetime(2026, 1, 5, 8, tzinfo=UTC), 60.0, 3600.0


@pytest.fixture
def world(tmp_path: Path) -> LabWorld:
    world = LabWorld(tmp_path)
    world.set_clock(START, RATE)
    return world


def test_a_jump_passes_in_steps_and_time_stands_still_between_them(world: LabWorld) -> None:
    clock = RehearsedClock(str(world.home / "clock.json"))
    assert (clock.behind_s, clock.rate) == (0.0, RATE)
    world.jump(timedelta(hours=2))
    before = clock.now()
    assert clock.now() == before
    assert clock.behind_s >= 2 * HOUR_S
    clock.go_on(600)
    assert clock.now() == before + 600
    clock.go_on(24 * HOUR_S)
    assert clock.behind_s == 0.0
    assert clock.now() - before >= 2 * HOUR_S
    assert abs(clock.now() - world.clock().now().timestamp()) < 30 * RATE


def test_a_short_jump_passes_at_once_and_time_never_goes_back(world: LabWorld) -> None:
    clock = RehearsedClock(str(world.home / "clock.json"))
    before = clock.now()
    world.jump(timedelta(seconds=300))
    assert clock.now() >= before + 300
    world.set_clock(START, RATE)
    assert clock.now() >= before + 300


@pytest.mark.parametrize("second", [0, 1, 37_211])
def test_the_battery_of_a_burn_in_goes_on_with_other_seeds(second: int) -> None:
    plan = RunPlan(60, 7, 1, [], parse_after(f"{second}:{EVERY_TEST}"))
    assert find_start(["matmul.fp16", "copy"], plan) == (second + 1, 0)
