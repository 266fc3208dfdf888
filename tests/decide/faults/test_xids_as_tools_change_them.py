"""Tools change the blanks of a line, cut its head off, or put it into a table: the XID counts all the same."""

from __future__ import annotations

import pytest

XID = "NVRM: Xid (PCI:0000:3b:00): 48, pid=1, name=x"


@pytest.mark.parametrize(
    "line",
    [
        "[ 12.500000] NVRM:  Xid  (PCI:0000:3b:00):  48,  pid=1,  name=x",
        "[ 12.5] NVRM: Xid (PCI:0000:3b:00):   48, pid=1",
        "[ 12.5] Xid (PCI:0000:3b:00): 48, pid=1",
        "Mar 12 04:11:02 n1 kernel: nvrm:  xid (pci:0000:3b:00): 48, pid=1",
        " Xid (PCI:0000:3b:00): 48, pid=1",
        f"n1 login: [ 8123.1] {XID}",
    ],
)
def test_other_blanks_and_a_lost_head_hide_no_xid(line, tell):
    document = tell(line, "[ 13.0] eth0: up")
    assert [(one["fault"], one["subject"]) for one in document["faults"]] == [("gpu.xid.48", "0000:3b:00")]


def test_an_sxid_with_other_blanks_is_none_of_a_gpu(tell):
    document = tell("[ 12.5] nvidia-nvswitch3:  SXid  (PCI:0000:c4:00.0):  20034, Fatal, Link 27")
    assert [one["fault"] for one in document["faults"]] == ["nvswitch.sxid.20034"]


def test_a_prompt_of_a_serial_console_names_no_host(tell):
    lost = "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."
    document = tell(f"con1 login: [ 8123.1] {XID.replace('48', '79')}", f"[ 8124.0] {lost}")
    assert [(one["fault"], one.get("host", "")) for one in document["faults"]] == [("gpu.xid.79", "")]


def test_a_detail_of_a_corrected_error_is_no_cut_message(tell):
    document = tell("[ 912.1] mlx5_core 0000:65:00.0:    [12] Timeout", "[ 913.0] eth0: up")
    assert (document["faults"], document["uncounted"]) == ([], "")
