"""What web pages, terminals and log services wrap around a log: borders, fields, headers, repeated lines."""

from __future__ import annotations

import json

import pytest

from assay.cli.verbs.faults import classify_log
from assay.cli.workspace import load_surrounding_catalog
from assay.model.facts import to_json
from assay.model.log_message import LineTally
from assay.observe.logs.broken_lines import MOST_COPIES, MOST_COPIES_OF_A_LOG, write_repeated_lines
from assay.observe.logs.kernel_log_search import CHUNK_BYTES
from assay.observe.logs.log_form import DmesgPieces

XID = "NVRM: Xid (PCI:0000:9d:00): 79, pid=1, name=a, GPU has fallen off the bus."
LOST = "The power input for power supply 2 is lost."


@pytest.mark.parametrize(
    "form",
    [
        'ts={time} level=error host={host} component=kmsg msg="{xid}"',
        'time="{time}" node={host} msg="{xid}"',
        "│{time} {host} kernel: {xid}          │",
        "┃ {time} {host} kernel: {xid} ┃",
    ],
)
def test_fields_and_borders_hide_no_host(form, tell):
    lines = [form.format(time="2026-11-10T03:11:07Z", host=f"n{number}", xid=XID) for number in (1, 2)]
    assert [(fault["host"], fault["first"]) for fault in tell(*lines)["faults"]] == [
        ("n1", "2026-11-10T03:11:07+00:00"),
        ("n2", "2026-11-10T03:11:07+00:00"),
    ]


def test_hard_blanks_of_a_web_page_are_blanks(tell):
    (fault,) = tell(f"Nov 10 03:11:07 n1 kernel: {XID}".replace(" ", "\u00a0"))["faults"]
    assert (fault["fault"], fault["host"]) == ("gpu.xid.79", "n1")


@pytest.mark.parametrize("head", ["", "x", "id"])
def test_a_log_that_begins_within_the_head_of_an_xid_is_told(head, tell):
    document = tell(f"{head}{XID.partition('Xid')[2]}", "[100.1] usb 1-1: ok", "[101.1] usb 1-1: ok")
    assert (document["faults"], "79" in document["uncounted"]) == ([], True)


ENTRY = {"MessageId": "IDRAC.2.8.PSU0003", "Severity": "Critical", "Message": LOST}
AT = "2026-11-10T03:11:07Z"
EVENT = json.dumps({"@odata.type": "#Event.v1_7_0.Event", "Events": [ENTRY | {"EventTimestamp": AT}]})
WEB = {
    "curl -i": f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{json.dumps({'Members': [ENTRY]})}",
    "a webhook": EVENT,
    "a stream": f"id: 1\ndata: {EVENT}\n\n",
}


@pytest.mark.parametrize("form", WEB)
def test_events_as_a_bmc_sends_and_exports_them_are_read(form, tmp_path, catalog):
    (tmp_path / "log").write_text(WEB[form])
    (fault,) = to_json(classify_log(str(tmp_path / "log"), catalog))["faults"]
    assert (fault["fault"], fault["action"], fault["lines"]) == ("bmc.event.power-supply", "ticket", 1)
    assert fault["first"] is None or fault["first"].startswith("2026-11-10T03:11:07")


LINK = "NVRM: Xid (PCI:0000:cb:00): 74, pid=1, name=a, NVLink: fatal error detected on link 9(0x0, 0x0)"
DISK = "blk_update_request: I/O error, dev sdb, sector 81 op 0x0:(READ)"


@pytest.mark.parametrize("stamp", ["Nov 10 03:12:37", "2026-11-10T03:12:37+00:00"])
@pytest.mark.parametrize("words", ["last message repeated 4 times", f"kernel: message repeated 4 times: [ {LINK}]"])
def test_a_message_that_a_syslog_only_says_was_repeated_counts_as_often(words, stamp, tell):
    document = tell(f"{stamp.replace('12:37', '11:07')} n1 kernel: {LINK}", f"{stamp} n1 {words}")
    (fault,) = document["faults"]
    assert (fault["host"], fault["count"], fault["lines"], fault["action"]) == ("n1", 5, 5, "reset")
    assert (fault["first"][11:19], fault["last"][11:19], document["lines"]) == ("03:11:07", "03:12:37", 2)


@pytest.mark.parametrize(("times", "action"), [(1, "none"), (2, "ticket")])
def test_a_threshold_is_reached_by_what_was_repeated(times, action, tell):
    repeated = f"Nov 11 00:01:10 n1 last message repeated {times} times"
    (fault,) = tell(f"Nov 10 23:59:10 n1 kernel: {DISK}", repeated)["faults"]
    assert (fault["count"], fault["action"], fault["last"][5:19]) == (times + 1, action, "11-11T00:01:10")


def test_what_was_repeated_and_repeated_again_counts_on(tell):
    again = [f"Nov 10 03:1{at}:07 n1 last message repeated 2 times" for at in (2, 3)]
    (fault,) = tell(f"Nov 10 03:11:07 n1 kernel: {LINK}", *again)["faults"]
    assert (fault["count"], fault["lines"]) == (5, 5)


REPEATING = [
    f"Nov 10 03:11:07 n1 kernel: {LINK}",
    "Nov 10 03:12:07 n1 last message repeated 2 times",
    "Nov 10 03:13:07 n1 last message repeated 2 times",
    "Nov 10 03:14:07 n2 kernel: usb 1-1: new device",
    "Nov 10 03:15:07 n1 last message repeated 3 times",
    f"Nov 10 03:16:07 n1 kernel: message repeated 2 times: [ {LINK}]",
    "Nov 10 03:17:07 n1 last message repeated 2 times",
]


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_what_was_repeated_may_stand_in_the_piece_before(size):
    lines, tally = [f"{line}\n".encode() for line in REPEATING], LineTally()
    pieces = [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]
    dmesg = DmesgPieces(load_surrounding_catalog(None).kernel_log_matcher)
    written = b"".join(write_repeated_lines(pieces, tally, dmesg))
    assert written.count(b"NVLink") == 1 + 2 + 2 + 2 + 2
    assert written.count(b"usb 1-1") == 1, "n2 said that, and n1 repeated another message"
    assert written.count(b"\n") + tally.lines == len(lines)


def test_what_was_repeated_at_the_end_of_a_long_piece_counts(tell):
    calm = [f"Nov 10 03:{at // 60 % 60:02}:{at % 60:02} n1 kernel: usb 1-1: reset {'again' * 9}" for at in range(7000)]
    place = CHUNK_BYTES // (len(calm[0]) + 1)
    for end in range(place - 1, place + 2):
        log = [*calm[:end], f"Nov 10 04:11:07 n1 kernel: {LINK}", "Nov 10 04:12:37 n1 last message repeated 4 times"]
        (fault,) = tell(*log, *calm[end:])["faults"]
        assert fault["lines"] == 5


def test_a_mad_count_does_no_harm():
    tally = LineTally()
    mad = [f"Nov 10 04:{at:02}:37 n1 last message repeated 999999999 times" for at in range(40)]
    log = "\n".join([f"Nov 10 03:11:07 n1 kernel: {LINK}", *mad]).encode()
    (written,) = write_repeated_lines([log], tally, DmesgPieces(load_surrounding_catalog(None).kernel_log_matcher))
    assert written.count(b"NVLink") == 1 + MOST_COPIES_OF_A_LOG + 40 - MOST_COPIES_OF_A_LOG // MOST_COPIES
    assert written.count(b"\n") + tally.lines == log.count(b"\n")


def test_another_hosts_message_was_not_repeated(tell):
    lines = f"Nov 10 03:11:07 n1 kernel: {XID}", "Nov 10 03:12:37 n2 last message repeated 4 times"
    assert [(fault["host"], fault["lines"]) for fault in tell(*lines)["faults"]] == [("n1", 1)]
