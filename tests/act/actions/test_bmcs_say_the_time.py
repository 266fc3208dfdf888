"""Whether the controller's clock is right, by the BMCs of a lab: they are asked before any effect begins."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timedelta

import pytest

from assay.act.ingest.right_clock import WrongClock, require_right_clock
from assay.act.loop.context import ControllerContext
from tests.support.lab_room import Room


def test_real_bmcs_are_asked_for_the_time(room: Room) -> None:
    plain = room.context()
    context = ControllerContext(**{one.name: getattr(plain, one.name) for one in fields(plain)})
    require_right_clock(context)

    class Ahead:
        def now(self) -> datetime:
            return plain.clock.now() + timedelta(hours=25)

    with pytest.raises(WrongClock, match="25 h ahead of the clocks of 7 of 7 BMCs and agents"):
        require_right_clock(replace(context, clock=Ahead()))
