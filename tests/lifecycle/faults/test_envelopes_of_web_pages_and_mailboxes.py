"""What mailboxes, web pages, terminals and log services wrap around a log: dates, columns, borders, headers."""

from __future__ import annotations

import json
from email.message import EmailMessage

import pytest

from assay.cli.surrounding_fleet import load_surrounding_catalog
from assay.cli.verbs.evidence.faults import classify_log
from assay.model.log_message import LineTally
from assay.observe.logs.broken_lines.counted_frames import write_frames
from assay.observe.logs.broken_lines.repeated_lines import (
    MOST_COPIES,
    MOST_COPIES_OF_A_LOG,
    write_repeated_lines,
)
from assay.observe.logs.dmesg_pieces import DmesgPieces
from assay.observe.logs.kernel_log_search import CHUNK_BYTES

XID = "NVRM: Xid (PCI:0000:9d:00): 79, pid=1, name=a, GPU has fallen off the bus."
LOST = "The power input for power supply 2 is lost."


@pytest.mark.parametrize(
    ("stamps", "first", "last"),
    [
        (("11/10/2026 03:11:07", "11/13/2026 03:11:07"), "2026-11-10T03:11:07", "2026-11-13T03:11:07"),
        (("11/10/2026 3:11:07 AM", "11/10/2026 3:11:09 PM"), "2026-11-10T03:11:07", "2026-11-10T15:11:09"),
        (("10/11/2026 03:11:07", "13/11/2026 03:11:07"), "2026-11-10T03:11:07", "2026-11-13T03:11:07"),
        (("10.11.2026 03:11:07", "13.11.2026, 03:11:07.5"), "2026-11-10T03:11:07", "2026-11-13T03:11:07.500000"),
        (("[11/10/2026, 03:11:07", "[11/13/2026, 03:11:07"), "2026-11-10T03:11:07", "2026-11-13T03:11:07"),
    ],
)
def test_a_date_of_numbers_alone_is_a_time(stamps, first, last, tell):
    (fault,) = tell(*(f"{stamp} n1 kernel: {XID}" for stamp in stamps))["faults"]
    assert (fault["host"], fault["count"], fault["first"], fault["last"]) == ("n1", 2, first, last)


def test_what_is_no_date_stays_as_it_is(tell):
    (fault,) = tell(f"31/31/2026 03:11:07 n1 kernel: {XID}")["faults"]
    assert fault["first"] is None


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


@pytest.mark.parametrize(("source", "host"), [("gpu-17", "gpu-17"), ("/var/log/kern.log", ""), ("kernel", "")])
def test_a_source_that_looks_like_a_host_is_one(source, host, tell):
    (fault,) = tell('"timestamp","source","message"', f'"2026-11-10T03:11:07Z","{source}","kernel: {XID}"')["faults"]
    assert fault["host"] == host


def test_the_time_of_a_table_from_kibana_is_read(tell):
    (fault,) = tell('"@timestamp","host.name","message"', f'"Nov 1, 2026 @ 03:11:07.123","n1","{XID}"')["faults"]
    assert (fault["host"], fault["first"]) == ("n1", "2026-11-01T03:11:07.123000")


def test_hard_blanks_of_a_web_page_are_blanks(tell):
    (fault,) = tell(f"Nov 10 03:11:07 n1 kernel: {XID}".replace(" ", "\u00a0"))["faults"]
    assert (fault["fault"], fault["host"]) == ("gpu.xid.79", "n1")


@pytest.mark.parametrize("head", ["", "x", "id"])
def test_a_log_that_begins_within_the_head_of_an_xid_is_told(head, tell):
    document = tell(f"{head}{XID.partition('Xid')[2]}", "[100.1] usb 1-1: ok", "[101.1] usb 1-1: ok")
    assert (document["faults"], "79" in document["uncounted"]) == ([], True)


@pytest.mark.parametrize("encodings", [("base64", "base64"), ("7bit", "base64"), ("quoted-printable", "7bit")])
def test_every_mail_of_a_mailbox_is_read(encodings, tmp_path, catalog):
    box = b""
    for number, encoding in enumerate(encodings):
        mail = EmailMessage()
        mail["From"], mail["Subject"] = "a@example.com", "a node"
        mail.set_content(f"Nov 10 03:11:07 n{number} kernel: {XID}\n", cte=encoding)
        box += b"From a@example.com Tue Nov 10 04:00:00 2026\n" + mail.as_bytes() + b"\n"
    (tmp_path / "box").write_bytes(box)
    assert [fault["host"] for fault in classify_log(str(tmp_path / "box"), catalog)["faults"]] == ["n0", "n1"]


ENTRY = {"MessageId": "IDRAC.2.8.PSU0003", "Severity": "Critical", "Message": LOST}
AT = "2026-11-10T03:11:07Z"
EVENT = json.dumps({"@odata.type": "#Event.v1_7_0.Event", "Events": [ENTRY | {"EventTimestamp": AT}]})
WEB = {
    "curl -i": f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{json.dumps({'Members': [ENTRY]})}",
    "a webhook": EVENT,
    "a stream": f"id: 1\ndata: {EVENT}\n\n",
    "iDRAC": '"Severity","Date and Time","Message ID","Summary"\n'
    f'"Critical","Tue Nov 10 2026 03:11:07","PSU0003","{LOST}"\n'
    '"OK","Tue Nov 10 2026 03:10:07","LOG001","Log cleared."\n',
    "iLO": '"ID","Severity","Class","Last Update","Initial Update","Count","Description"\n'
    '"14","Critical","Power","11/10/2026 03:11:07","11/10/2026 03:11:07","1","System Power Supply: General Failure"\n',
    "XCC": "Index,Severity,Source,Common ID,Message,Date\n"
    '1,Critical,Power,FQXSPPW0031J,"Power supply 2 has failed.",11/10/2026 03:11:07 AM\n',
    "Supermicro": "Index,Severity,Date,Time,Sensor,Description,Status\n"
    "1,Critical,2026/11/10,03:11:07,PS2 Status,Power Supply failure detected,Asserted\n"
    "2,Critical,2026/11/10,03:12:07,FAN1,Fan failed,Deasserted\n",
}


@pytest.mark.parametrize("form", WEB)
def test_events_as_a_bmc_sends_and_exports_them_are_read(form, tmp_path, catalog):
    (tmp_path / "log").write_text(WEB[form])
    (fault,) = classify_log(str(tmp_path / "log"), catalog)["faults"]
    assert (fault["fault"], fault["action"], fault["lines"]) == ("bmc.event.power-supply", "ticket", 1)
    assert fault["first"] is None or fault["first"].startswith("2026-11-10T03:11:07")


def test_a_table_of_events_that_breaks_off_is_not_told_as_no_fault(tmp_path, catalog):
    whole = WEB["XCC"].removesuffix("\n")
    for end in range(whole.index("\n") + 2, len(whole) - 1):
        (tmp_path / "log").write_text(whole[:end])
        document = classify_log(str(tmp_path / "log"), catalog)
        assert document["uncounted"] or document["faults"], whole[:end]


def test_a_kernel_log_with_a_severity_column_stays_one(tell):
    (fault,) = tell("severity,timestamp,hostname,message", f'ERROR,2026-11-10T03:11:07Z,n1,"{XID}"')["faults"]
    assert (fault["fault"], fault["host"]) == ("gpu.xid.79", "n1")


def test_openbmcs_own_log_is_read(tell):
    told = tell(
        "2026-11-10T03:11:07.123456+00:00 OpenBMC.0.1.PowerSupplyFailed,PSU2",
        "2026-11-10T03:12:07.123456+00:00 OpenBMC.0.1.SensorThresholdCriticalHighGoingHigh,CPU1_TEMP,101.0,95.0",
        "2026-11-10T03:13:07.123456+00:00 OpenBMC.0.1.InventoryAdded,DIMM,1,2",
    )["by"]
    assert ("bmc.event.power-supply", "PSU2") in told
    assert {part for _, part in told} == {"PSU2", "CPU1_TEMP"}


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


def test_the_form_of_a_file_is_found_by_more_than_its_first_bytes(tmp_path, catalog):
    """A file is read in pieces of which the first has 512 bytes; the order of day and month stands behind these."""
    days = [3] * 10 + [13]
    log = "".join(f"{day:02}/11/2026 03:11:07 n1 kernel: [{at}.5] {XID}\n" for at, day in enumerate(days, 300))
    (tmp_path / "log").write_text(log)
    (fault,) = classify_log(str(tmp_path / "log"), catalog)["faults"]
    assert (fault["first"], fault["last"]) == ("2026-11-03T03:11:07", "2026-11-13T03:11:07")


FRAMES = [f"<3>1 2026-11-10T03:1{at}:07Z n{at} kernel - - - {XID}" for at in range(3)]


@pytest.mark.parametrize("between", ["", "\n"])
def test_each_frame_of_a_stream_that_counts_octets_has_its_own_host_and_time(between, tell):
    faults = tell(between.join(f"{len(frame)} {frame}" for frame in FRAMES))["faults"]
    told = {(one["host"], one["first"][:16], one["lines"]) for one in faults}
    assert told == {(f"n{at}", f"2026-11-10T03:1{at}", 1) for at in range(3)}


@pytest.mark.parametrize("size", [1, 7, 200, 10_000])
def test_a_frame_may_stand_in_several_pieces_and_a_wrong_count_loses_nothing(size):
    stream = "".join(f"{len(frame)} {frame}" for frame in FRAMES).encode()
    for log, lines in ((stream, FRAMES), (stream + b"9 no frame", [*FRAMES[:2], ""])):
        pieces = [log[at : at + size] for at in range(0, len(log), size)]
        written = b"".join(write_frames(pieces)).decode()
        assert written.startswith("\n".join(lines)), written
        assert written.count(XID) == len(FRAMES)
        assert written.rstrip().endswith(log[-10:].decode())
