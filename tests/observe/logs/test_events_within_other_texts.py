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
