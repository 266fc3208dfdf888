"""A log that breaks off is never told as something harmless: what is left of its last message counts or is shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
import yaml

from assay.cli.verbs.faults import classify_log
from assay.model.facts import to_json
from assay.model.specs.log_patterns import compile_beginning
from assay.observe.logs.records import MessageSearch
from tests.support.places import ROOT

BEFORE = "[ 5000.000000] usb 1-1: reset"
XID = "[ 5210.700051] NVRM: Xid (PCI:0000:3d:00): "
SXID = "[ 5210.700051] nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): "


@pytest.mark.parametrize("end", ["", "\n", "\r\n", '"\n', "`\n"])
@pytest.mark.parametrize(
    "line", [*(XID + number for number in ("7", "1", "11", "15", "14", "9", "17")), SXID + "2003", SXID + "120"]
)
def test_a_number_with_which_another_begins_is_not_counted_where_it_ends_the_message(line, end, tell, tmp_path):
    for text in (f"{BEFORE}\n{line}{end}", f"{line}{end or chr(10)}{BEFORE}\n"):
        document = tell(text.removesuffix("\n"))
        assert document["faults"] == []
        assert document["uncounted"] == line.partition("] ")[2] + end.strip()
        assert document["unread"] == 1


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (XID + "79", "gpu.xid.79"),
        (XID + "31", "gpu.xid.31"),
        (XID + "46", "gpu.xid.46"),
        (XID + "998", "gpu.xid.unknown"),
        (SXID + "20034", "nvswitch.sxid.20034"),
        (XID + "7, pid=1", "gpu.xid.7"),
        ("NVRM: Xid (0000:03:00): 13, 0001 00000000 00005039 00000328 00000000 00000100", "gpu.xid.13"),
    ],
)
def test_a_number_that_can_be_no_other_is_counted(line, name, tell):
    document = tell(line, BEFORE)
    assert ([one["fault"] for one in document["faults"]], document["uncounted"]) == ([name], "")


EACH = yaml.safe_load((ROOT / "tests/data/one_line_each.yaml").read_text())
CARRIERS = ["[ 5210.700051] {}", "Nov 21 18:00:00 n1 kernel: {}", "n1: [12.5] {}", '{{"host": "n1", "log": "{}']
WORDS = "new high-speed USB device found on the second bus of this host, by its first controller"
CLIPPED = [f"[ 52{at}.70] usb 1-{at}: {WORDS[at - 10 :]}" for at in range(10, 40)]


ANY_WORDS = {
    "gpu.bus.lost": ["h", "ha", "has"],
    "gpu.peermem": ["n", "nv"],
    "hca.command.timeout": [*("MANAGE_PAGES"[:end] for end in range(2, 13)), "MANAGE_PAGES(0x108)"],
    "host.task.hung": [*("python3:1"[:end] for end in range(1, 10) if end != 8)],
    "nvme.timeout": ["I/O 8", "I/O 8 Q", "I/O 8 QI", "I/O 8 QID", "I/O 8 QID 4"],
    "nic.link.flap": ["eth0: NI", "eth0: NIC"],
    "gpu.ras.uncorrected": [
        *("socket"[:end] for end in range(2, 7)),
        *(f"socket: 0{more}" for more in ("", ", d", ", di", ", die", ", die: 0")),
    ],
    "gpu.ras.deferred": [
        *("{", *("{3}socket"[:end] for end in range(5, 10))),
        *(f"{{3}}socket: 2{more}" for more in (", d", ", di", ", die")),
    ],
    "gpu.queue.stuck": ["kfd", "am"],
    "gpu.firmware": ["[amdgpu]]", "*", *("*ERROR*"[:end] for end in range(3, 8))],
}
"""Where any words may stand in a message: most lines that end so are whole."""
WHOLE = [
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024",
    "mlx5_core 0000:01:00.0: Port module event: module 0, Cable plugged",
    "mlx5_core 0000:01:00.0: firmware version: 28.39.1002",
    "mlx5_core 0000:01:00.0 ib0: Link up",
    "XFS (nvme0n1p1): Ending clean mount",
    "pcieport 0000:00:1c.0: PME: Signaling with IRQ 122",
    "nvme nvme0: pci function 0000:01:00.0",
]


@pytest.mark.parametrize("name", EACH)
def test_every_message_that_breaks_off_is_told_or_counted(name, catalog):
    matcher, text = catalog.kernel_log_matcher, EACH[name]
    search = MessageSearch(matcher, datetime.now(UTC))
    for begun in (text[:length] for length in range(4, len(text))):
        assert matcher.find_faults(begun) or matcher.may_begin_fault(begun), begun
        is_whole = begun.strip().endswith(tuple(f" {words}" for words in ANY_WORDS.get(name, ())))
        assert bool(matcher.find_faults(begun) or search.find_cut_message(f"[ 12.5] {begun}")) is not is_whole, begun


@pytest.mark.parametrize("text", ["EDAC MC0: 1 U", "mce: [Hardware Error]: Mach"])
def test_a_message_cut_in_the_middle_of_a_log_is_told(text, tell):
    document = tell(f"[ 12.5] {text}", "[ 13.0] usb 1-1: reset")
    assert (document["faults"], document["uncounted"]) == ([], text)


@pytest.mark.parametrize("text", WHOLE)
def test_a_harmless_line_in_the_middle_of_a_log_is_no_fault(text, tell):
    document = tell(f"[ 12.5] {text}", "[ 13.0] usb 1-1: reset")
    assert (document["faults"], document["uncounted"]) == ([], "")


@pytest.mark.parametrize("text", WHOLE)
def test_a_harmless_last_line_without_its_end_is_no_fault(text, tmp_path, catalog):
    (tmp_path / "log").write_text(f"[ 12.0] usb 1-1: reset\n[ 12.5] {text}")
    document = to_json(classify_log(str(tmp_path / "log"), catalog))
    assert (document["faults"], document["uncounted"], document["unread"]) == ([], "", 0)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("text", ["EDAC M", "Kernel panic - not", "mlx5_core 0000:18:00.0 ibp24s0: Link", "NVRM: Xi"])
def test_a_log_that_breaks_off_within_a_message_is_never_no_fault(carrier, text, tell, tmp_path, catalog):
    calm = carrier.format("usb 1-1: reset") + ('"}' if carrier.startswith("{") else "")
    (tmp_path / "log").write_text(f"{calm}\n{carrier.format(text)}")
    document = to_json(classify_log(str(tmp_path / "log"), catalog))
    assert (document["faults"], document["uncounted"]) == ([], text)


@pytest.mark.parametrize(
    "text",
    [
        "usb 1-1: reset",
        "EXT4-fs (sda1): mounted filesystem",
        "nvme nvme0: 8/0/0 default/read/poll queues",
        "pci 0000:1b:00.0: BAR 0: assigned",
        "EDAC MC0: Giving out device",
        "nvidia-nvswitch2: open (major=510)",
    ],
)
def test_a_last_line_without_its_end_that_begins_no_fault_is_none(text, tmp_path, catalog):
    (tmp_path / "log").write_text(f"{BEFORE}\n[ 5210.700051] {text}")
    assert to_json(classify_log(str(tmp_path / "log"), catalog))["uncounted"] == ""


@pytest.mark.parametrize("width", [40, 50])
def test_a_log_clipped_at_a_width_is_told(width, tell):
    line = "[ 5211.70] mlx5_core 0000:18:00.0 ibp24s0: Link down"
    assert tell(*(one[:width] for one in [*CLIPPED, line, *CLIPPED]))["uncounted"] == line[11:width]
    assert tell(*CLIPPED, line.replace("down", "up"), *CLIPPED)["uncounted"] == ""


@pytest.mark.parametrize("mark", ["…", "...", ">"])
def test_a_line_whose_end_a_tool_left_out_is_told(mark, tell):
    line = f"[ 5211.70] mlx5_core 0000:18:00.0 ibp24s0: Li{mark}"
    assert tell(BEFORE, line, BEFORE)["uncounted"] == line[11:]


def test_records_whose_messages_were_clipped_are_told(tell):
    texts = [line[11:51] for line in CLIPPED]
    texts.insert(3, "mlx5_core 0000:18:00.0 ibp24s0: Link down and more"[:40])
    document = tell(*(json.dumps({"host": "n1", "message": text, "n": at}) for at, text in enumerate(texts)))
    assert document["uncounted"] == texts[3]


@pytest.mark.parametrize(
    ("pattern", "begun", "not_begun"),
    [
        ("^ab(?:cd|ef)+g", ["a", "abc", "abcdef", "abcde"], ["b", "abd", "abcdefg", "abcdx"]),
        (r"^x\d{2,3}[^a-c]\b", ["x", "x1", "x12", "x123"], ["xa", "x12a", "x1234a"]),
        (r"^(?:a|^b)(?=c)\w*?\s[.]", ["a", "bcc", "ac "], ["c", "ac x"]),
        ("anywhere", ["", "x"], []),
    ],
)
def test_beginnings_of_patterns(pattern, begun, not_begun):
    regex = compile_beginning(pattern)
    assert [text for text in begun if not regex.match(text)] == []
    assert [text for text in not_begun if regex.match(text)] == []


SEL = "   1 | 03/11/2025 | 08:29:22 | Power Supply #0x70 | Presence detected | Asserted\n"
ROW = "   2 | 03/11/2025 | 08:29:23 | Memory #0x53 | Uncorrectable ECC | Asserted"
FREEIPMI = (
    "ID | Date | Time | Name | Type | Event\n1 | Mar-11-2025 | 08:29:22 | OS Boot | OS Boot | C: boot completed\n",
    "2 | Mar-11-2025 | 08:29:23 | DIMM A1 | Memory | Uncorrectable memory error",
)
VERBOSE = "\n".join(
    [
        "SEL Record ID          : {}",
        " Record Type           : 02",
        " Timestamp             : 03/11/2025 08:29:22",
        " Sensor Type           : Memory",
        " Sensor Number         : 53",
        " Event Type            : Sensor-specific Discrete",
        " Event Direction       : Assertion Event",
        " Event Data            : 01ffff",
        " Description           : {}\n",
    ]
)


@pytest.mark.parametrize(
    ("before", "last", "begun"),
    [
        (SEL, ROW, 1),
        (SEL.replace("|", ","), ROW.replace("|", ","), 1),
        (*FREEIPMI, 2),
        (VERBOSE.format("0001", "Presence detected"), VERBOSE.format("0002", "Uncorrectable ECC"), 24),
    ],
    ids=["sel list", "sel list -c", "ipmi-sel", "ipmitool -v"],
)
def test_an_event_log_that_breaks_off_anywhere_is_not_told_as_no_fault(before, last, begun, tell, tmp_path, catalog):
    log = tmp_path / "log"
    for length in range(begun + 3, len(last)):
        log.write_text(before + last[:length])
        document = to_json(classify_log(str(log), catalog))
        assert document["faults"] or document["uncounted"], last[:length]
    log.write_text(before + last)
    assert [one["fault"] for one in to_json(classify_log(str(log), catalog))["faults"]] == [
        "bmc.event.memory.uncorrectable"
    ]
    log.write_text(before + before.replace("   1 |", "   3 |"))
    assert to_json(classify_log(str(log), catalog))["uncounted"] == ""


@pytest.mark.parametrize("event", ["OS Boot | C: boot completed", "Button | Power Button pressed", "OEM | Own words"])
def test_an_event_log_whose_last_line_end_was_stripped_is_read(event, tmp_path, catalog):
    row = f"Mar-11-2025 | 08:29:23 | Sensor 7 | {event}"
    rows = f"3 | {row}\n4 | {row}" if "Own words" in event else f"3 | {row}"
    (tmp_path / "log").write_text(FREEIPMI[0] + rows)
    document = to_json(classify_log(str(tmp_path / "log"), catalog))
    assert (document["uncounted"], document["faults"]) == ("", [])
    (tmp_path / "log").write_text((FREEIPMI[0] + rows)[:-3])
    assert to_json(classify_log(str(tmp_path / "log"), catalog))["uncounted"]
