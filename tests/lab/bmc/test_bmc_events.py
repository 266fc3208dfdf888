"""New events go to the log, to open streams within a second, and to subscribers."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from queue import Queue
from typing import Any

import pytest

from assay.lab.bmc import event_delivery
from assay.lab.virtual_node_state import MAX_SEL_EVENTS, with_sel_cleared, with_sel_event

ROOT = "/redfish/v1"
SEL = f"{ROOT}/Systems/System_0/LogServices/SEL"
STREAM = f"{ROOT}/EventService/SSE"
SUBSCRIPTIONS = f"{ROOT}/EventService/Subscriptions"
AT = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def lab(build: Any) -> Any:
    """A lab of this test's own, to which nobody listens yet, and whose log begins with its power that came on."""
    lab = build("n0003")
    assert lab.ask("GET", f"{SEL}/Entries").json()["Members@odata.count"] == 1
    return lab


def plant(lab: Any, message: str, node: str = "n0003") -> None:
    with lab.world.change(node) as state:
        state.update(with_sel_event(state, AT, "Critical", message, "ResourceEvent.1.3.ResourceErrorsDetected"))


def listen(lab: Any, session: Any, **headers: str) -> Iterator[str]:
    """Yield the lines of the stream; the first request's headers are there when this returns."""
    answer = session.get(
        lab.base() + STREAM, stream=True, timeout=60, headers={"Accept": "text/event-stream", **headers}
    )
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    return answer.iter_lines(decode_unicode=True, chunk_size=1)


def next_event(lines: Iterator[str]) -> dict[str, Any]:
    return json.loads(next(line for line in lines if line.startswith("data:"))[5:])


def wait_for(condition: Any, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(condition())


def count_streams(lab: Any) -> int:
    """Return how many event streams are open; the node's syslog server is a subscription too."""
    count: int = lab.ask("GET", SUBSCRIPTIONS).json()["Members@odata.count"]
    return count - 1


def test_a_planted_event_comes_down_an_open_stream_within_a_second(lab: Any) -> None:
    with lab.http() as session:
        lines = listen(lab, session)
        assert wait_for(lambda: count_streams(lab) == 1)
        plant(lab, "Power supply 2 lost its input")
        event = next_event(lines)
    assert event_delivery.POLL_EVERY_S <= 0.5, "so that it comes within a second, where the machine is not too busy"
    assert event["Events"][0]["Message"] == "Power supply 2 lost its input"
    assert event["Events"][0]["Severity"] == "Critical"


def test_what_time_brings_comes_down_the_stream_though_nobody_asks(lab: Any) -> None:
    with lab.http() as session:
        lab.ask("POST", f"{ROOT}/Systems/System_0/Actions/ComputerSystem.Reset", json={"ResetType": "ForceRestart"})
        lines = listen(lab, session)
        assert wait_for(lambda: count_streams(lab) == 1)
        lab.pass_s(61)
        assert next_event(lines)["Events"][0]["Message"] == "System power is on"


def test_a_silent_bmc_streams_nothing_and_makes_up_for_it_later(lab: Any) -> None:
    with lab.http() as session:
        lines = listen(lab, session)
        assert wait_for(lambda: count_streams(lab) == 1)
        with lab.world.change("n0003") as state:
            state["fails"]["bmc_silent"] = True
            state.update(with_sel_event(state, AT, "Critical", "while silent", "Assay.1.0.Test"))
        time.sleep(0.6)
        with lab.world.change("n0003") as state:
            state["fails"]["bmc_silent"] = False
        assert next_event(lines)["Events"][0]["Message"] == "while silent"


def test_a_stream_starts_with_what_comes_and_a_returning_listener_misses_nothing(lab: Any) -> None:
    plant(lab, "before")
    known = lab.ask("GET", f"{SEL}/Entries").json()["Members"][-1]["Id"]
    plant(lab, "while away")
    with lab.http() as session:
        assert next_event(listen(lab, session, **{"Last-Event-ID": known}))["Events"][0]["Message"] == "while away"


def test_a_quiet_stream_keeps_its_heart_beating(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_delivery, "HEARTBEAT_EVERY_S", 1)
    with lab.http() as session:
        assert next(line for line in listen(lab, session) if line).startswith(":")


def test_the_stream_is_for_those_who_take_event_streams(lab: Any) -> None:
    assert lab.ask("GET", STREAM, headers={"Accept": "application/json"}).status_code == 406
    assert lab.ask("HEAD", STREAM).status_code == 405


def test_a_listener_that_goes_away_leaves_nothing_behind(lab: Any) -> None:
    with lab.http() as session:
        lines = listen(lab, session)
        assert wait_for(lambda: count_streams(lab) == 1)
        del lines
    assert wait_for(lambda: count_streams(lab) == 0)


@pytest.fixture
def called() -> Iterator[tuple[str, Queue[dict[str, Any]]]]:
    """A subscriber's address, and what it was sent."""
    received: Queue[dict[str, Any]] = Queue()

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/events", received
        server.shutdown()


def test_a_subscriber_is_called_until_it_is_deleted(lab: Any, called: tuple[str, Queue[dict[str, Any]]]) -> None:
    address, received = called
    made = lab.ask("POST", SUBSCRIPTIONS, json={"Destination": address, "Protocol": "Redfish", "Context": "mine"})
    assert (made.status_code, made.json()["Destination"]) == (201, address)
    test = {"MessageId": "Base.1.18.Success", "Message": "hello"}
    assert lab.ask("POST", f"{ROOT}/EventService/Actions/EventService.SubmitTestEvent", json=test).status_code == 204
    event = received.get(timeout=60)
    assert (event["Context"], event["Events"][0]["Message"]) == ("mine", "hello")
    assert lab.ask("DELETE", made.headers["Location"]).status_code == 204
    plant(lab, "nobody listens")
    time.sleep(0.6)
    assert received.empty()


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


def test_a_dead_subscriber_does_not_stop_the_others(lab: Any, called: tuple[str, Queue[dict[str, Any]]]) -> None:
    for address in ("http://127.0.0.1:9/", called[0]):
        lab.ask("POST", SUBSCRIPTIONS, json={"Destination": address, "Protocol": "Redfish"})
    plant(lab, "first")
    plant(lab, "second")
    assert [called[1].get(timeout=60)["Events"][0]["Message"] for _ in range(2)] == ["first", "second"]


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
