"""XID 154 names the driver's recovery action: its text decides, and overrides the XIDs before it on that GPU."""

from __future__ import annotations

import pytest

GPU, OTHER = "0000:1b:00", "0000:3b:00"
CODES = {"None": 0, "GPU Reset Required": 1, "PF FLR": 1, "Node Reboot Required": 2, "OS Reboot": 2, "Drain P2P": 3}
CODES |= {"Drain and Reset": 4}
ASKS = {"None": "none", "GPU Reset Required": "reset", "PF FLR": "reset", "Node Reboot Required": "reboot"}
ASKS |= {"OS Reboot": "reboot", "Drain P2P": "reset", "Drain and Reset": "reset"}


def xid(at: float, number: int, text: str = "pid=7, name=python3", gpu: str = GPU) -> str:
    return f"[{at:12.6f}] NVRM: Xid (PCI:{gpu}): {number}, {text}"


def recovery(at: float, word: str, gpu: str = GPU) -> str:
    return xid(at, 154, f"GPU recovery action changed from 0x0 (None) to {CODES[word]:#x} ({word})", gpu)


def actions(document: dict) -> dict[str, str]:
    return {fault["fault"]: fault["action"] for fault in document["faults"]}


@pytest.mark.parametrize("word", ASKS)
def test_it_stands_alone(word, tell):
    (fault,) = tell(recovery(100, word))["faults"]
    assert fault["action"] == ASKS[word]


@pytest.mark.parametrize("word", ASKS)
@pytest.mark.parametrize("before", [48, 64, 74, 79, 119])
def test_it_overrides_the_xid_before_it_whatever_that_asks_for(before, word, tell):
    document = tell(xid(100, before), recovery(100.2, word))
    assert sorted(actions(document).values()) == sorted(["none", ASKS[word]])
    overridden = document["by"][f"gpu.xid.{before}", GPU]
    assert overridden["action"] == "none"
    assert "the driver's recovery action, gpu.xid.154." in overridden["because"]


@pytest.mark.parametrize("number", range(144, 151))
@pytest.mark.parametrize("fatal", ["Fatal", "Nonfatal"])
def test_it_decides_after_the_xids_of_nvlink_also_where_they_did_not_count(number, fatal, tell):
    line = xid(100, number, f"RLW_REMAP {fatal} XC0 i0 Link 02 (0x00000004 0x08000000 0x0)")
    assert set(actions(tell(line, recovery(100.2, "Node Reboot Required"))).values()) == {"none", "reboot"}


def test_none_clears_an_earlier_one_too(tell):
    document = tell(xid(100, 79), recovery(100.2, "GPU Reset Required"), recovery(160, "None"))
    assert set(actions(document).values()) == {"none"}


def test_a_later_xid_is_a_new_one(tell):
    assert actions(tell(recovery(100, "None"), xid(101, 79)))["gpu.xid.79"] == "reboot"
    assert actions(tell(xid(99, 79), recovery(100, "None"), xid(111, 79)))["gpu.xid.79"] == "reboot"


def test_an_xid_of_another_gpu_or_of_long_ago_stays(tell):
    asked = actions(tell(xid(100, 48, gpu=OTHER), xid(200, 79), recovery(1000, "None")))
    assert (asked["gpu.xid.48"], asked["gpu.xid.79"]) == ("reset", "reboot")


@pytest.mark.parametrize(
    "text",
    [
        "GPU recovery action changed from 0x0 (None) to 0x7 (Drain the pond)",
        "GPU recovery action changed from 0x0 (None) to 0x2 (GPU Reset Required)",
        "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x",
        "GPU recovery action changed",
        "reported by NVML",
    ],
)
def test_a_malformed_one_asks_a_person(text, tell):
    (fault,) = tell(xid(100, 154, text))["faults"]
    assert (fault["fault"], fault["action"]) == ("gpu.xid.154", "ticket")


def test_the_number_alone_that_nvml_gives_beside_the_line_adds_nothing(tell):
    document = tell(recovery(100, "None"), xid(100.1, 154, "reported by NVML"))
    assert actions(document) == {"gpu.xid.154.none": "none"}


@pytest.mark.parametrize("gpu", [f"{GPU} GPU-I:05", f"{GPU} GPU-I:01 GPU-CI:00"])
def test_a_part_of_a_gpu_is_of_that_gpu(gpu, tell):
    (fault,) = tell(xid(100, 94, gpu=gpu), xid(200, 94))["faults"]
    assert (fault["subject"], fault["count"]) == (GPU, 2)


def test_numbers_that_no_table_knows_are_never_silent(tell):
    assert actions(tell(xid(100, 173), xid(100, 99999))) == {"gpu.xid.unknown": "ticket"}
    switch = "[  100.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 31999, {}, Link 03 x"
    assert actions(tell(switch.format("Fatal"))) == {"nvswitch.sxid.unknown.fatal": "ticket"}
    assert actions(tell("[  100.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 31999, SOE x")) == {
        "nvswitch.sxid.unknown.fatal": "ticket"
    }
    for mild in ("Non-fatal", "Severity 0 Engine instance 01", "Data {0x0}"):
        assert actions(tell(switch.format(mild))) == {"nvswitch.sxid.unknown": "none"}


def change(before: str, after: str, gpu: str = GPU) -> str:
    return f"NVRM: Xid (PCI:{gpu}): 154, GPU recovery action changed from 0x9 ({before}) to {CODES[after]:#x} ({after})"


def without_times(*lines: str) -> list[str]:
    return [line.partition("] ")[2] or line for line in lines]


RESET, REBOOT = "GPU Reset Required", "Node Reboot Required"


@pytest.mark.parametrize(
    "stamp", ["[{:12.6f}]", "Nov 21 18:{:02}:00 n1 kernel:", "2026-11-21T18:{:02}:00+00:00 n1 kernel:"]
)
def test_an_action_that_came_before_the_xid_decides_nothing_though_it_stands_below_it(stamp, tell):
    lines = [xid(0, 79), recovery(0, "None")]
    backwards = [f"{stamp.format(at)} {line}" for at, line in zip((42, 40), without_times(*lines), strict=True)]
    assert actions(tell(*backwards)) == {"gpu.xid.79": "reboot", "gpu.xid.154.none": "none"}
    in_order = [f"{stamp.format(at)} {line}" for at, line in zip((40, 42), without_times(*lines), strict=True)]
    assert set(actions(tell(*in_order)).values()) == {"none"}


def test_without_times_changes_that_follow_the_other_way_show_that_the_lines_run_backwards(tell):
    happened = [change("None", RESET), change(RESET, REBOOT), *without_times(xid(0, 79))]
    assert actions(tell(*happened)) == {
        "gpu.xid.154.reset": "none",
        "gpu.xid.154.reboot": "reboot",
        "gpu.xid.79": "reboot",
    }
    document = tell(*happened[::-1])
    assert actions(document) == {
        "gpu.xid.154.reset": "ticket",
        "gpu.xid.154.reboot": "ticket",
        "gpu.xid.79": "reboot",
    }
    assert "its lines run backwards" in document["by"]["gpu.xid.154.reset", GPU]["because"]


def test_changes_of_two_gpus_or_of_a_log_that_lost_one_in_order_show_nothing(tell):
    lines = [change("None", RESET), change("None", REBOOT, OTHER), change(RESET, "None"), change("None", REBOOT)]
    asked = {(one["subject"], one["fault"]): one["action"] for one in tell(*lines)["faults"]}
    assert asked[GPU, "gpu.xid.154.reset"] == "none"
    assert asked[GPU, "gpu.xid.154.reboot"] == asked[OTHER, "gpu.xid.154.reboot"] == "reboot"


LOST = (
    "NVRM: The NVIDIA GPU 0000:4b:00.0",
    "NVRM: (PCI ID: 10de:2330) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)


@pytest.mark.parametrize(
    "lines",
    [
        [f"[  600.5] {line}" for line in LOST],
        ["[  600.5] " + LOST[0], *(f"            {line}" for line in LOST[1:])],
        ["[  600.5] " + "\\x0a".join(LOST)],
        [f"Nov 21 18:00:00 n1 kernel: {line}" for line in LOST],
        [f"- `[  600.5] {line}`" for line in LOST],
    ],
)
def test_a_gpu_that_is_lost_is_named_though_several_lines_say_it(lines, tell):
    (fault,) = tell(*lines)["faults"]
    assert (fault["fault"], fault["subject"], fault["action"]) == ("gpu.bus.lost", "0000:4b:00.0", "reboot")
    assert fault["first"]


def test_another_message_that_begins_alike_is_no_lost_gpu(tell):
    document = tell(
        f"[  600.5] {LOST[0]}", "[  600.5] NVRM: installed in this system is not supported.", "[ 700.5] x: y"
    )
    assert document["faults"] == []


@pytest.mark.parametrize(
    ("line", "name", "action"),
    [
        (
            "mlx5_core 0000:5c:00.0: print_health:9:(pid 0): synd 0x8: unrecoverable hardware error",
            "hca.health",
            "reboot",
        ),
        (
            "NVRM: nvGpuOps: uvm encountered global fatal error 0x2a, requiring os reboot to recover.",
            "gpu.uvm.fatal",
            "reboot",
        ),
    ],
)
def test_failures_without_a_number(line, name, action, tell):
    assert actions(tell(f"[  100.5] {line}")) == {name: action}
