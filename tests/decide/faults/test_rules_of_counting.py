"""Rules of faults: what is one, what is counted, what is an echo; in logs, and for any times."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.decide.faults.log_file_faults import LogFaultCollector
from assay.model.faults.counting import FaultCorrelator, FaultCounter
from assay.model.log_message import LogMessage

XID = "[{:>12.6f}] NVRM: Xid (PCI:0000:{}:00): {}, pid=1, name=python3, something"
TIMES = st.lists(st.floats(0, 1e6), max_size=60).map(sorted)


@given(TIMES, st.integers(1, 5), st.floats(1, 1e5))
def test_counts_are_bursts_and_never_more_than_sightings(times, needed, window):
    counting = FaultCounter(needed, window, 5)
    for at in times:
        counting.add(at)
    assert (counting.count > 0) == bool(times)
    assert counting.count <= len(times)
    assert len(counting.recent) <= needed
    assert all(later - sooner > 5 for sooner, later in pairwise(counting.recent))


@given(TIMES, st.integers(1, 5), st.floats(10, 1e5))
def test_the_threshold_is_reached_when_so_many_bursts_lie_within_the_window(times, needed, window):
    counting, bursts = FaultCounter(needed, window, 5), []
    for at in times:
        counting.add(at)
        if not bursts or at - bursts[-1] > 5:
            bursts.append(at)
    last = bursts[-needed:]
    assert counting.is_threshold_reached == (len(last) == needed and last[-1] - last[0] <= window)


@given(TIMES, st.lists(st.booleans(), min_size=60, max_size=60))
def test_what_does_not_count_never_makes_a_fault(times, weights):
    counting = FaultCounter(1, 3600, 5)
    for at, counts in zip(times, weights, strict=False):
        counting.add(at, counts)
    assert counting.is_threshold_reached == any(weights[: len(times)])


@given(st.lists(st.tuples(st.sampled_from(["gpu.xid.48", "gpu.xid.45", "gpu.xid.13"]), st.integers(0, 3)), max_size=40))
def test_a_cause_is_always_another_fault_that_came_before(catalog, told):
    echoes, heard = FaultCorrelator(catalog), set()
    for at, (name, part) in enumerate(told):
        cause = echoes.find_primary(name, f"gpu{part}", at)
        assert cause is None or (tuple(cause) in heard and cause.name != name)
        if cause is None:
            echoes.record(name, f"gpu{part}", at)
            heard.add((name, f"gpu{part}"))


def test_identical_lines_within_five_seconds_are_one(tell):
    lines = [XID.format(at, "1b", 79) for at in (100, 101, 104.9, 110, 111)]
    (fault,) = tell(*lines)["faults"]
    assert (fault["count"], fault["lines"]) == (2, 5)
    assert (fault["first"], fault["last"]) == ("boot+100.000000s", "boot+111.000000s")


def test_another_gpu_or_another_code_is_another_fault(tell):
    document = tell(XID.format(100, "1b", 79), XID.format(100, "3b", 79), XID.format(100, "1b", 48))
    assert len(document["faults"]) == 3


def test_a_gpu_is_one_however_its_pci_place_is_spelled(tell):
    spelled = ("0000:9b:00", "9b:00", "0000:9B:00.0", "00000000:9b:00")
    lines = [f"[{at * 100:.6f}] NVRM: Xid (PCI:{place}): 79, something" for at, place in enumerate(spelled, start=1)]
    (fault,) = tell(*lines)["faults"]
    assert (fault["subject"], fault["count"]) == ("0000:9b:00", 4)
    assert len(tell(*lines, "[900.000000] NVRM: Xid (PCI:0001:9b:00): 79, something")["faults"]) == 2


def test_what_is_told_again_after_a_boot_is_counted_again(tell):
    boot = "[    0.000000] Linux version 6.1.0-37-amd64"
    (fault,) = tell(XID.format(1000, "1b", 79), boot, XID.format(900, "1b", 79), XID.format(896, "1b", 79))["faults"]
    assert (fault["count"], fault["first"], fault["last"]) == (2, "boot+1000.000000s", "boot+896.000000s")


def test_a_xid_that_follows_its_cause_is_attributed_to_it_and_not_counted(tell):
    document = tell(XID.format(100, "1b", 48), XID.format(100.2, "1b", 45), XID.format(101, "3b", 45))
    (fault,) = document["faults"]
    assert fault["fault"] == "gpu.xid.48"
    assert "gpu.xid.45 ×2 followed from it and is not counted" in fault["because"]


def test_the_same_xid_long_after_stands_for_itself_and_asks_for_nothing(tell):
    document = tell(XID.format(100, "1b", 48), XID.format(500, "1b", 45))
    later = document["by"]["gpu.xid.45", "0000:1b:00"]
    assert (later["class"], later["action"], later["count"]) == ("application", "none", 1)


def test_a_cause_that_comes_after_the_event_is_none(tell):
    assert len(tell(XID.format(100, "1b", 45), XID.format(102.5, "1b", 48))["faults"]) == 2


def test_peers_of_a_lost_gpu_and_a_wave_after_a_reset_are_echoes(tell):
    (fault,) = tell(XID.format(100, "1b", 79), XID.format(101, "3b", 74), XID.format(102, "5d", 45))["faults"]
    assert fault["fault"] == "gpu.xid.79"
    wave = [XID.format(101 + place / 10, f"{place:02x}", 45) for place in range(8)]
    (reset,) = tell("[  100.000000] GPU reset executed: GPU-11111111-2222, success: true", *wave)["faults"]
    assert (reset["fault"], reset["action"]) == ("gpu.reset", "none")


def test_links_that_go_down_while_the_node_boots_are_no_flap(tell):
    down = "[{:>12.6f}] igb 0000:45:00.0 eno1: igb: eno1 NIC Link is Down"
    (booting,) = tell(*(down.format(at) for at in (10, 100, 200, 290)))["faults"]
    assert (booting["action"], booting["severity"]) == ("none", "informational")
    assert "4 of them within 300 s after the boot" in booting["because"]
    (flapping,) = tell(*(down.format(at) for at in (310, 400, 500)))["faults"]
    assert (flapping["action"], flapping["severity"]) == ("ticket", "degraded")


def test_a_threshold_counts_within_its_window_only(tell):
    down = "[{:>12.6f}] mlx5_core 0000:18:00.0 ibp24s0: Link down"
    assert tell(*(down.format(at * 3000) for at in range(1, 9)))["faults"][0]["action"] == "none"
    assert tell(*(down.format(at * 1000) for at in range(1, 9)))["faults"][0]["action"] == "triage"


@pytest.mark.slow
def test_a_storm_of_170000_is_one_fault_with_a_count_in_flat_memory(catalog):
    few, many = _peak(catalog, 1_000), _peak(catalog, 170_000)
    assert many < few * 1.5 + 50_000


def _peak(catalog, times):
    stream = LogFaultCollector(catalog)
    tracemalloc.start()
    for number in range(times):
        message = LogMessage("Xid 45", number * 6.0, f"boot+{number * 6}s", number * 6.0)
        stream.add("gpu.xid.45", "0000:1b:00", message)
    (fault,) = stream.faults()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fault.count == times
    return peak
