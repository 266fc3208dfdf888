"""Whatever a BMC's tasks hold, an update is found again by them or is not, and only times that can be read prove it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.act.remedies.bmc_updates import FirmwareUpdater
from assay.adapters.bmc.client import BmcClient
from assay.model.specs.firmware_bundle import FirmwareComponent

NAMED = [{"Message": "done", "MessageArgs": ["HGX_BMC_0", "1.2"]}]
TASK = {"@odata.id": "/t/1", "TaskState": "Completed", "StartTime": "2026-11-21T10:00:00Z", "Messages": NAMED}
RESET = "2026-11-21T12:00:00Z"
ODD = [None, 7, "", "²", [], [None], [{}], [{"MessageArgs": None}], [{"MessageArgs": 7}], {}, "0000-00-00T00:00:00Z"]


class Paper:
    """A BMC that has one task, and was reset at a time."""

    def __init__(self, task: dict[str, Any], reset: Any) -> None:
        self.root, self._task, self._reset = {}, task, reset

    def follow(self, resource: Any, link: str, levels: int = 0) -> dict[str, Any]:
        return {}

    def members(self, collection: Any, *, may_go: bool) -> list[dict[str, Any]]:
        return [self._task, {**self._task, "@odata.id": "/t/0", "StartTime": "2026-11-21T08:00:00Z"}]

    def system(self) -> dict[str, Any]:
        return {"LastResetTime": self._reset}


def reset_since(ended: Any, reset: Any) -> bool:
    component = FirmwareComponent.model_construct(name="HGX_BMC_0", inventory=[], reset="host")
    update = FirmwareUpdater(cast("BmcClient", Paper({**TASK, "EndTime": ended}, reset))).find_update(component)
    assert update is not None
    return update.reset_since


def test_a_reset_after_the_end_of_a_task_is_seen() -> None:
    assert reset_since("2026-11-21T11:00:00Z", RESET)
    assert not reset_since("2026-11-21T13:00:00Z", RESET)


@pytest.mark.parametrize("odd", ODD)
def test_a_time_that_cannot_be_read_proves_no_reset(odd: Any) -> None:
    assert not reset_since(odd, RESET)
    assert not reset_since("2026-11-21T11:00:00Z", odd)


@example({"Messages": None})
@example({"StartTime": "0000-00-00T00:00:00Z"})
@given(
    st.dictionaries(
        st.sampled_from(["Messages", "StartTime", "EndTime", "TaskState", "TaskStatus", "PercentComplete"]),
        st.sampled_from(ODD),
        min_size=1,
    )
)
def test_whatever_a_task_holds_it_is_this_update_or_none(spoilt: dict[str, Any]) -> None:
    component = FirmwareComponent.model_construct(name="HGX_BMC_0", inventory=["BMC"], reset="host")
    found = FirmwareUpdater(cast("BmcClient", Paper({**TASK, **spoilt}, RESET))).find_update(component)
    assert found is None or isinstance(found.message, str)
