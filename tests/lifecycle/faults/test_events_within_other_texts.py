"""Rows of a BMC's event log within a mail, a ticket or a kernel log; and severities as BMCs of all makes spell them."""

from __future__ import annotations

import json

import pytest

ROWS = {
    "ipmitool": "   1 | 11/13/2026 | 03:11:07 | Power Supply #0x51 | Failure detected | Asserted",
    "elist": "  1a | 11/13/2026 | 03:11:07 UTC | Power Supply PSU3 | Power Supply AC lost | Asserted",
    "unset": "   1 | Pre-Init  |0000000042| Power Supply PS1 | Failure detected | Asserted",
    "FreeIPMI": "1   | Nov-13-2026 | 03:11:07 | PS1 Status       | Power Supply  | Power Supply Failure detected",
}
USB = "[Tue Nov 10 03:11:07 2026] usb 1-1: new device"
XID = "[Tue Nov 10 03:11:07 2026] NVRM: Xid (PCI:0000:9d:00): 79, pid=1, name=a, GPU has fallen off the bus."
TEXTS = {
    "a kernel log": [*[USB] * 300, "", "{}"],
    "a mail": ["Hi,", "the SEL of n1 says:", "", "{}", "", "Best,", "Anna"],
    "Markdown": ["It broke:", "```", "{}", "```"],
    "a quoted mail": ["> {}", "We look into it."],
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_an_event_log_counts_wherever_it_stands(row, text, tell):
    document = tell(*(line.format(ROWS[row]) for line in TEXTS[text]))
    (fault,) = document["faults"]
    assert (fault["fault"], fault["action"], fault["lines"]) == ("bmc.event.power-supply", "ticket", 1)
    assert document["lines"] == sum(line != "" for line in TEXTS[text]) or document["lines"] == len(TEXTS[text])


def test_a_fault_of_the_kernel_beside_it_counts_too(tell):
    told = tell(XID, "", ROWS["ipmitool"], USB)["by"]
    assert set(told) == {("gpu.xid.79", "0000:9d:00"), ("bmc.event.power-supply", "Power Supply #0x51")}


def test_the_host_before_a_row_is_its_host(tell):
    (fault,) = tell(f"n1: {ROWS['ipmitool']}", *(f"n2: [ {at}.5] usb 1-1: ok" for at in range(4)))["faults"]
    assert (fault["fault"], fault["host"]) == ("bmc.event.power-supply", "n1")


@pytest.mark.parametrize(
    "entry",
    [
        "Record:      3\nSeverity:    Critical\nDescription: Multi-bit memory errors detected.",
        '{"Members": [{"Severity": "Critical", "Message": "Power supply 2 failed."}]}',
        "2026-11-10 03:11:07,Critical,Fan 3 failed,Fan",
        "2026-11-10 03:11:07;Critical;Fan 3 failed;Fan",
    ],
)
def test_a_critical_entry_of_another_form_in_a_kernel_log_is_told(entry, tell):
    document = tell(*[USB] * 9, *entry.split("\n"))
    assert (document["faults"], "Critical" in document["uncounted"]) == ([], True)


def test_other_tables_are_no_events(tell):
    document = tell(
        USB, USB, USB, "   1 | 11/13/2026 | n1 | Power Supply | Failure detected | x", "a | b | Failure detected"
    )
    assert document["faults"] == []


@pytest.mark.parametrize("severity", ["Critical", "CRITICAL", "critical", "Fatal", "NonRecoverable"])
@pytest.mark.parametrize("name", ["Severity", "MessageSeverity"])
def test_a_severity_counts_however_it_is_spelled(name, severity, tell):
    entry = {"@odata.type": "#LogEntry.v1_9_0.LogEntry", "Message": "Frobnicator asserted", "Severity": None}
    (fault,) = tell(json.dumps({**entry, name: severity}))["faults"]
    assert (fault["fault"], fault["action"]) == ("bmc.event.unknown", "ticket")


TIME = "2026-11-10 03:11:07"


@pytest.mark.parametrize("name", ["Severity", "Event Severity", "Level", "Sev", "Priority", "Type"])
@pytest.mark.parametrize("order", ["Timestamp,{},Description,Component", "{},Timestamp,Description,Component"])
def test_the_severity_of_a_table_counts_whatever_its_column_is_called(order, name, tell):
    rows = [("Critical", "Fan 3 failed"), ("OK", "Log cleared"), ("Critical", "Frobnicator asserted")]
    pairs = [((level, TIME) if order.startswith("{") else (TIME, level), text) for level, text in rows]
    cells = [f"{first},{second},{text},Fan" for (first, second), text in pairs]
    faults = {fault["fault"]: fault["count"] for fault in tell(order.format(name), *cells)["faults"]}
    assert faults == {"bmc.event.fan": 1, "bmc.event.unknown": 1}


def test_a_table_of_a_log_service_with_a_level_is_of_the_kernel(tell):
    line = "NVRM: Xid (PCI:0000:9d:00): 79, pid=1, name=a, GPU has fallen off the bus."
    (fault,) = tell("timestamp,level,component,host,message", f'2026-11-10T03:11:07Z,err,kernel,n1,"{line}"')["faults"]
    assert (fault["fault"], fault["host"]) == ("gpu.xid.79", "n1")


DELIMITERS = {"commas": ",", "semicolons": ";", "tabs": "\t"}
TABLE = [
    "Index,Severity,Date,Time,Sensor,Description",
    '1,Critical,2026-11-10,03:11:07,PS1,"Power supply, lost"',
    "2,OK,2026-11-10,03:11:09,PS1,Power supply is back",
    "3,Critical,2026-11-10,03:12:00,Fan 3,Fan 3 failed",
]
TOLD = {"bmc.event.power-supply": 1, "bmc.event.fan": 1}
AROUND = {
    "alone": ([], []),
    "a mail": (["Hi,", "the BMC of n1 says:", ""], ["", "Best,", "Anna"]),
    "the head of an export": (["Machine: SR675, S4CGR001", "sep=;"], []),
    "a kernel log": ([USB] * 9, ["", *[USB] * 9]),
    "a kernel log without a blank line": ([USB] * 9, [USB] * 9),
}


def table(delimiter: str, *lines: str) -> list[str]:
    """Return the lines with another delimiter. The comma within quotes stays."""
    return [line.replace(", ", "<>").replace(",", delimiter).replace("<>", ", ") for line in lines or TABLE]


def counts(document: dict) -> dict[str, int]:
    return {fault["fault"]: fault["count"] for fault in document["faults"]}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_a_table_of_events_counts_wherever_it_stands(delimiter, around, tell):
    before, after = AROUND[around]
    document = tell(*before, *table(DELIMITERS[delimiter]), *after)
    assert counts(document) == TOLD
    assert {fault["first"] for fault in document["faults"]} == {"2026-11-10T03:11:07", "2026-11-10T03:12:00"}


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_a_table_in_a_quoted_mail_counts(delimiter, tell):
    assert counts(tell(*(f"> {line}" for line in table(DELIMITERS[delimiter])), "We look into it.")) == TOLD


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_a_row_that_a_mail_broke_counts_or_is_told(delimiter, tell):
    broken = [*TABLE[:3], "3,Critical,2026-11-10,03:12:00,Fan", "3,Fan 3 failed"]
    assert counts(tell("Hi,", "", *table(DELIMITERS[delimiter], *broken), "", "Anna")) == TOLD
    lost = tell(
        "Hi,", "", *table(DELIMITERS[delimiter], *TABLE[:2], "3,Critical,2026-11-10,03:12:00,Fan 3"), "", "Anna"
    )
    assert counts(lost) == {"bmc.event.power-supply": 1}
    assert "Fan 3" in lost["uncounted"]


def test_a_fault_of_the_kernel_right_after_a_table_counts_too(tell):
    for delimiter in DELIMITERS.values():
        told = tell(*[USB] * 3, *table(delimiter), XID, *[USB] * 3)["by"]
        assert ("gpu.xid.79", "0000:9d:00") in told
        assert ("bmc.event.fan", "Fan 3") in told


def test_a_table_longer_than_a_piece_of_the_log_is_one(tell):
    rows = [f"{at},Critical,2026-11-10,03:12:00,Fan 3,Fan 3 failed {'again' * 9}" for at in range(9000)]
    (fault,) = tell("Hi,", "", TABLE[0], *rows, "", "Anna")["faults"]
    assert fault["lines"] == 9000
