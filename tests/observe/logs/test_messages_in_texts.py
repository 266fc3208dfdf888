"""A message counts wherever it stands: in a ticket, a record, or a text that quotes it, in any case."""

from __future__ import annotations

import pytest
import yaml

from tests.support.places import ROOT

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=x, GPU has fallen off the bus."
STAMPED = f"[ 1040.501233] {XID}"

TEXTS = [
    f"If the log says `{XID}` reboot the node.",
    f'print("{XID}")',
    f"    line = '{XID}'",
    f'assert classify("{XID}") == "reboot"',
    f'The driver then says: "{XID}"',
    f'Look for lines such as these, "{XID}", and drain the node.',
    f'grep "{XID}" /var/log/syslog',
    f'echo hello; logger -t test "{XID}"',
    f'{{"rule": {{"description": "If you see `{XID}` call us"}}}}',
]
LOST = f"[ 1040.601233] {XID[:5]} GPU 0000:3b:00.0: GPU has fallen off the bus."
TEXTS += [
    f"When a GPU dies, the kernel says for example:\n\n    {XID}\n\nThen reboot the node.",
    f"# Runbook\n\nTypical output:\n\n```\n{STAMPED}\n{LOST}\n```",
    f"## Example\n\n{XID}",
    f"You would see something like\nthis in dmesg:\n\n    {STAMPED}",
    f"If the log says {XID} then reboot the node.",
    f"Here is a sample of\n> {STAMPED}",
    f'{{"time": "2026-11-21T18:00:00Z", "message": "Look for\\n\\n    {XID}"}}',
]
TEXTS += [
    f"    {XID}",
    f"The node crashed, such as it is.\n\nHere is its log:\n\n    {STAMPED}",
    f"[ 1040.4] app: for example\n{STAMPED}",
    "It looks like a lost GPU:\n\n" + "".join(f"    [ 104{at}.1] usb 1-{at}: new\n" for at in range(13)) + f"    {XID}",
    XID,
    f"> {XID}",
    f"> `{XID}`",
    f"- `{XID}`",
    f"1. `{XID}`",
    f"```\n{XID}\n```",
    f"The node is gone, see:\n\n    {STAMPED}\n",
    f"We saw `{STAMPED}` today.",
    f"Log: `{XID}`",
    f'level=error host=n1 msg="{XID}"',
    f'"n1","kernel","{XID}"',
    f"n1,kernel,'{XID}'",
    f'n1\tkernel\t"{XID}"',
    f'  "message": "{XID}",',
    f"{{'host': 'n1', 'message': '{XID}'}}",
    f'["usb 1-1: new", "{XID}"]',
    f'- message: "{XID}"',
    f'{{host: n1, message: "{XID}"}}',
    f"Warning  XidDetected  17m  kernel-monitor, n1  {XID}",
    f'{{"time": "2026-11-21T18:00:00Z", "log": "level=error msg=\\"{XID}\\""}}',
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_a_record_or_a_ticket_that_holds_a_message_is_read(text, tell):
    document = tell(text)
    assert {(fault["fault"], fault["subject"][:10]) for fault in document["faults"]} == {("gpu.xid.79", "0000:3b:00")}
    assert document["uncounted"] == ""


@pytest.mark.parametrize("change", [str.lower, str.upper])
@pytest.mark.parametrize("before", ["", "[  100.000000] ", "Nov 21 18:00:00 n1 kernel: ", "acme|warn|"])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        (XID, "gpu.xid.79"),
        ("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 33 egress", "nvswitch.sxid.12028"),
        (
            "NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            "gpu.xid.154.reset",
        ),
    ],
)
def test_xids_are_read_in_any_case_of_letters(change, before, text, name, tell):
    document = tell(*[f"{before}usb 1-1: new device"] * 3, before + change(text))
    assert [fault["fault"] for fault in document["faults"]] == [name]


def test_an_xid_in_lower_case_that_breaks_off_is_never_no_fault(tell):
    assert "xid (pci" in tell("[ 10.5] usb 1-1: new device", "[ 11.5] nvrm: xid (pci:0000:3d:00): ")["uncounted"]


LINES = yaml.safe_load((ROOT / "tests/data/one_line_each.yaml").read_text())


@pytest.mark.parametrize("name", LINES)
def test_every_message_of_the_kernel_is_read_in_lower_case(name, tell):
    document = tell("[ 10.5] usb 1-1: new device", f"[ 11.5] {LINES[name].lower()}", "[ 12.5] usb 1-1: gone")
    assert [fault["fault"] for fault in document["faults"]] == [name]


@pytest.mark.parametrize("name", LINES)
def test_every_message_is_read_in_lower_case_in_a_log_that_mixes_both(name, tell):
    document = tell("[ 10.5] usb 1-1: New Device", f"[ 11.5] {LINES[name].lower()}", "[ 12.5] EXT4-fs (sda1): Mounted")
    assert [fault["fault"] for fault in document["faults"]] == [name]
