"""New events go to the log, which is read in pages and cleared; subscriptions are kept."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from assay.lab.virtual_node_state import MAX_SEL_EVENTS, with_sel_cleared, with_sel_event

ROOT = "/redfish/v1"
SEL = f"{ROOT}/Systems/System_0/LogServices/SEL"
SUBSCRIPTIONS = f"{ROOT}/EventService/Subscriptions"
AT = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def lab(build: Any) -> Any:
    """A lab of this test's own, whose log begins with its power that came on."""
    lab = build("n0003")
    assert lab.ask("GET", f"{SEL}/Entries").json()["Members@odata.count"] == 1
    return lab


def plant(lab: Any, message: str, node: str = "n0003") -> None:
    with lab.world.change(node) as state:
        state.update(with_sel_event(state, AT, "Critical", message, "ResourceEvent.1.3.ResourceErrorsDetected"))


def test_a_subscription_is_kept_until_it_is_deleted(lab: Any) -> None:
    body = {"Destination": "http://127.0.0.1:9/", "Protocol": "Redfish", "Context": "mine"}
    made = lab.ask("POST", SUBSCRIPTIONS, json=body)
    assert (made.status_code, made.json()["Destination"], made.json()["Context"]) == (201, body["Destination"], "mine")
    assert lab.ask("DELETE", made.headers["Location"]).status_code == 204
    assert lab.ask("GET", made.headers["Location"]).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"Destination": "ftp://x", "Protocol": "Redfish"},
        {"Destination": "http://127.0.0.1:1/", "Protocol": "SNMPv2c"},
        {"Protocol": "Redfish"},
    ],
)
def test_a_subscription_that_could_never_be_called_is_refused(lab: Any, body: dict[str, Any]) -> None:
    assert lab.ask("POST", SUBSCRIPTIONS, json=body).status_code == 400


def test_the_log_is_read_in_pages_and_cleared_by_its_action(lab: Any) -> None:
    for number in range(5):
        plant(lab, f"event {number}")
    page = lab.ask("GET", f"{SEL}/Entries?$skip=1&$top=2").json()
    assert [entry["Message"] for entry in page["Members"]] == ["event 0", "event 1"]
    one = lab.ask("GET", page["Members"][0]["@odata.id"]).json()
    assert (one["Message"], one["Severity"], one["Created"]) == ("event 0", "Critical", AT.isoformat())
    assert lab.ask("POST", f"{SEL}/Actions/LogService.ClearLog", json={}).status_code == 204
    assert [entry["Message"] for entry in lab.ask("GET", f"{SEL}/Entries").json()["Members"]] == [
        "The event log was cleared"
    ]


def test_the_log_keeps_the_newest_and_never_reuses_an_id() -> None:
    state: dict[str, Any] = {"events": []}
    for number in range(MAX_SEL_EVENTS + 20):
        state = with_sel_event(state, AT, "OK", str(number), "Assay.1.0.Test")
    assert (len(state["events"]), state["events"][0]["message"]) == (MAX_SEL_EVENTS, "20")
    assert int(with_sel_cleared(state, AT)["events"][0]["id"]) == MAX_SEL_EVENTS + 21
