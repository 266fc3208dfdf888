"""Server-sent events of the lab's BMCs: soon, in order, once, also after a line that broke; no longer than asked."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from assay.lab.faults.injection import inject_fault
from assay.model.errors import AssayError
from assay.redfish.event_stream import follow_event_stream, parse_server_sent_events

NODE = "n0017"


def test_an_event_comes_as_soon_as_it_is_logged_and_the_stream_ends_with_its_deadline(rehearsal: Any) -> None:
    fleet = rehearsal.fleet
    for seconds in (2.0, 20.0):
        timer = threading.Timer(seconds / 4, inject_fault, [rehearsal.world, "sel.entry", NODE, {"message": "now"}])
        timer.start()
        began = time.monotonic()
        seen = list(follow_event_stream(fleet.nodes[NODE], root=rehearsal.root, deadline_s=seconds))
        took = time.monotonic() - began
        timer.join()
        if seen:  # else the machine is too busy to be listening by then
            break
    assert [event["message"] for event in seen] == ["now"]
    assert seen[0]["severity"] == "Critical"
    assert 0.8 * seconds < took < 10 * seconds


def test_a_follower_goes_on_after_the_last_event_that_it_saw(rehearsal: Any) -> None:
    node = rehearsal.fleet.nodes[NODE]
    for word in ("one", "two", "three"):
        inject_fault(rehearsal.world, "sel.entry", NODE, {"message": word})
    log = rehearsal.world.load(NODE)["events"]
    after = next(event["id"] for event in log if event["message"] == "one")
    stream = follow_event_stream(node, root=rehearsal.root, deadline_s=20, after=after)
    assert [next(stream)["message"], next(stream)["message"]] == ["two", "three"]
    stream.close()


def test_no_session_and_no_stream_is_left_behind(rehearsal: Any) -> None:
    from assay.redfish.bmc import open_bmc

    node = rehearsal.fleet.nodes[NODE]
    inject_fault(rehearsal.world, "sel.entry", NODE, {"message": "x"})
    after = rehearsal.world.load(NODE)["events"][-2]["id"]
    stream = follow_event_stream(node, root=rehearsal.root, deadline_s=20, after=after)
    next(stream)
    stream.close()
    with open_bmc(node, root=rehearsal.root) as bmc:
        assert len(bmc.members(bmc.get("/redfish/v1/SessionService/Sessions"))) == 1


def test_a_bmc_without_a_stream_says_so(tiny: Any, ca_file: Any) -> None:
    with pytest.raises(AssayError, match="links to no EventService"):
        next(follow_event_stream(tiny.node(bmc_ca=str(ca_file)), deadline_s=3))
    tiny.tree["/redfish/v1"]["EventService"] = {"@odata.id": "/redfish/v1/EventService"}
    tiny.tree["/redfish/v1/EventService"] = {"@odata.id": "/redfish/v1/EventService", "Status": {}}
    with pytest.raises(AssayError, match="offers no server-sent events"):
        next(follow_event_stream(tiny.node(bmc_ca=str(ca_file)), deadline_s=3))


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        (["id: 7", "data: {", "data: }", ""], [("7", "{\n}")]),
        ([": ping", "", "data:x", ""], [("", "x")]),
        (["id: 7", "data: a", "", "data: b", ""], [("7", "a"), ("7", "b")]),
        (["event: e", "retry: 3", "data: cut off"], []),
        ([], []),
    ],
)
def test_a_stream_is_read_as_the_standard_has_it(lines: list[str], seen: list[tuple[str, str]]) -> None:
    assert list(parse_server_sent_events(lines)) == seen
