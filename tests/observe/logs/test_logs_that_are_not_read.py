"""What no reader here takes apart is never told as no fault: its messages count, or its first line is told."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from assay.cli.verbs.faults import classify_log
from assay.model.errors import AssayError
from assay.model.facts import to_json

XID = "NVRM: Xid (PCI:0000:9d:00): 79, pid=1, name=a, GPU has fallen off the bus."
STAMPED = f"[ 1001.500000] {XID}"
CALM = "[ 1001.500000] usb 1-1: new device"
LOST = "The power input for power supply 2 is lost."
AT = "2026-11-10T03:11:07.123456+00:00"


def mail(body: str, **how: str) -> str:
    made = EmailMessage()
    made["From"], made["Subject"] = "a@example.com", "node n1"
    made.set_content(body, **how)
    return made.as_string()


EVENT_LOGS = {
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
    "a table that begins with times": f"Timestamp,Level,Component,Description\n{AT},Warning,PSU,{LOST}\n",
    "a table with tabs": f"Date\tTime\tSeverity\tDescription\n2026-11-10\t03:11:07\tWarning\t{LOST}\n",
    "OpenBMC": f"{AT} OpenBMC.0.1.PowerSupplyFailed,PSU2\n{AT} OpenBMC.0.1.InventoryAdded,DIMM,1,2\n",
    "RIBCL": f'<EVENT_LOG>\n<EVENT\n SEVERITY="Caution"\n DESCRIPTION="{LOST}"\n/>\n</EVENT_LOG>\n',
    "hplog": f"0001 Caution        18:01  11/21/2026 18:01  11/21/2026 0001\nLOG: {LOST}\n",
}


@pytest.mark.parametrize("name", EVENT_LOGS)
def test_an_event_log_in_a_form_that_is_not_read_is_refused(name, tmp_path, catalog):
    (tmp_path / "log").write_text(EVENT_LOGS[name])
    with pytest.raises(AssayError, match="no log that I can read"):
        to_json(classify_log(str(tmp_path / "log"), catalog))


@pytest.mark.parametrize("name", sorted({*EVENT_LOGS} - {"OpenBMC", "hplog", "a table that begins with times"}))
def test_one_within_a_kernel_log_is_told(name, tell):
    document = tell(*[CALM] * 9, "", *EVENT_LOGS[name].splitlines(), *[CALM] * 9)
    assert document["faults"] == []
    assert document["uncounted"]


MAILS = {
    "base64": mail(f"{STAMPED}\n", cte="base64"),
    "quoted-printable": mail(f"{STAMPED} „\n", cte="quoted-printable"),
    "base64 below a log": mail("\n".join([CALM] * 300)) + mail(f"{STAMPED}\n", cte="base64"),
}


@pytest.mark.parametrize("name", MAILS)
def test_an_encoded_mail_is_never_no_fault(name, tmp_path, catalog):
    (tmp_path / "log").write_text(MAILS[name])
    try:
        document = to_json(classify_log(str(tmp_path / "log"), catalog))
    except AssayError:
        return
    assert document["uncounted"] or document["faults"]


def test_a_plain_mail_is_read_as_any_text(tell):
    (fault,) = tell(*mail(f"{STAMPED}\n").splitlines())["faults"]
    assert fault["fault"] == "gpu.xid.79"


FRAMES = [f"<3>1 2026-11-10T03:1{at}:07Z n{at} kernel - - - {XID}" for at in range(3)]
COUNTED = {
    "a table of a log service": f'"timestamp","host","message"\n"{AT}","n1","{XID}"\n',
    "a table with a level": f'timestamp,level,host,message\n{AT},err,n1,"{XID}"\n',
    "dates of numbers": f"11/10/2026 03:11:07 PM n1 kernel: {XID}\n",
    "counted octets": "".join(f"{len(frame)} {frame}" for frame in FRAMES),
    "headings in Markdown": f"### n1\n\n```\n{STAMPED}\n```\n",
    "grep": f"/var/log/hosts/n1/kern.log:12:{STAMPED}\n",
    "salt": f"n1:\n    {CALM}\n    {STAMPED}\n",
    "a prompt": f"root@n1:~# dmesg\n{STAMPED}\n",
    "HTML": f"<html><h2>n1</h2><pre>{STAMPED}\n</pre></html>\n",
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_message_counts_though_what_stands_around_it_is_not_read(name, tmp_path, catalog):
    (tmp_path / "log").write_text(COUNTED[name])
    document = to_json(classify_log(str(tmp_path / "log"), catalog))
    assert {(fault["fault"], fault["subject"]) for fault in document["faults"]} == {("gpu.xid.79", "0000:9d:00")}


RULE = "-" * 15
BLOCKS = {
    "clush -b": f"{RULE}\nn[01-02,4] (3)\n{RULE}\n{STAMPED}\n{RULE}\nn03\n{RULE}\n{CALM}\n",
    "dshbak": f"{RULE}\nn1\n{RULE}\n{CALM}\n",
    "tail": f"==> n1.log <==\n{STAMPED}\n\n==> n2.log <==\n{CALM}\n",
    "pssh -i": f"[1] 18:00:00 [SUCCESS] n1\n{STAMPED}\n[2] 18:00:01 [SUCCESS] n2\n{STAMPED}\n",
    "ansible": f"n1 | CHANGED | rc=0 >>\n{CALM}\nn2 | CHANGED | rc=0 >>\n{STAMPED}\n",
    "ansible in JSON": f'n1 | SUCCESS => {{\n "stdout": "{STAMPED}"\n}}\n',
    "playbook": f'ok: [n1] => {{\n "out": [\n "{STAMPED}"\n ]\n}}\n',
}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_logs_of_several_hosts_in_blocks_are_refused(name, tmp_path, catalog):
    (tmp_path / "log").write_text(BLOCKS[name])
    with pytest.raises(AssayError, match="holds the logs of several hosts or files in blocks"):
        to_json(classify_log(str(tmp_path / "log"), catalog))
