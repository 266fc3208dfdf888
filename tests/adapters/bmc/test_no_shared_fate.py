"""A resource that hangs costs its own branch, and a slow BMC is read whole; a silent one is left alone."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from assay.adapters.bmc import request_time
from assay.adapters.bmc.errors import BmcUnreachable
from assay.adapters.bmc.request_time import ANSWER_S, LONGEST_READ, READS_AT_ONCE, OneRead, ParallelReads, RequestTime
from assay.observe.evidence_collector import read_bmc_channel
from tests.support.bmc_rehearsal import answer_read

POWER = "/redfish/v1/Chassis/Box/PowerSubsystem/PowerSupplies"
FANS = "/redfish/v1/Chassis/Box/ThermalSubsystem/Fans"
LOG = "/redfish/v1/Systems/Host/LogServices/SEL/Entries"
FIRMWARE = "/redfish/v1/UpdateService/Firm"
SILENT_S = 20  # so long a tiny BMC says nothing, or for ever byte by byte


def read(tiny: Any, ca_file: Path, deadline_s: float) -> dict[str, Any]:
    return read_bmc_channel(tiny.node(bmc_ca=str(ca_file)), Path(), deadline_s)


def reasons(tree: Any) -> list[str]:
    """Return the reasons of all failed leaves."""
    if not isinstance(tree, dict):
        return []
    return [tree["failed"]] if "failed" in tree else [one for branch in tree.values() for one in reasons(branch)]


@pytest.mark.parametrize("manner", ["silence", "trickle"])
@pytest.mark.parametrize("path", [POWER, FANS, LOG, FIRMWARE])
def test_a_resource_that_hangs_costs_its_own_branch(tiny: Any, ca_file: Path, path: str, manner: str) -> None:
    whole = read(tiny, ca_file, 30.0)
    tiny.odd[path] = getattr(tiny, manner)
    began = time.monotonic()
    for seconds in (0.8, 6.0):  # the second for a machine so busy that other requests are late too
        tree = read(tiny, ca_file, seconds)
        lost = [one for one in reasons(tree) if one not in reasons(whole)]
        if 0 < len(lost) < 4:
            break
    assert all(reason.endswith(f"no answer within {seconds:g} s") for reason in lost), lost
    assert tree["system"] == whole["system"]
    assert time.monotonic() - began < SILENT_S
    kept = {name for name in whole if tree.get(name) == whole[name]}
    assert len(kept) >= len(whole) - 3


def test_a_bmc_that_falls_silent_in_the_middle_is_left_alone(tiny: Any, ca_file: Path) -> None:
    odd = {path: tiny.silence for path in tiny.tree if path.count("/") > 4}
    tiny.odd = odd
    began = time.monotonic()
    tree = read(tiny, ca_file, 1.0)
    assert time.monotonic() - began < SILENT_S
    assert tree["firmware"]["failed"].startswith("no answer within ")


def test_several_requests_run_at_once_and_never_more_than_the_budget(tiny: Any, ca_file: Path) -> None:
    now, most, lock = [0], [0], threading.Lock()

    def slow(call: BaseHTTPRequestHandler) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        tiny.closing.wait(0.1)
        path = call.path.partition("?")[0].rstrip("/")
        handler = tiny.odd.pop(path)
        answer_read(tiny, call)
        tiny.odd[path] = handler
        with lock:
            now[0] -= 1

    tiny.odd = dict.fromkeys([path for path in tiny.tree if path != "/redfish/v1"], slow)
    assert read(tiny, ca_file, 30.0)["psu"]["0"]["input_v"] == {"value": 230.5}
    assert 1 < most[0] <= READS_AT_ONCE


def test_the_time_of_a_bmc_grows_with_its_answers_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(request_time.time, "monotonic", lambda: clock[0])
    limits = RequestTime("n1 BMC")
    with limits.patience(10.0):
        for _ in range(481):
            clock[0] += 0.5 / READS_AT_ONCE
            assert limits.left(60.0) > 0
            limits.note_answer()
        for _ in range(100_000):
            limits.note_answer()
        clock[0] = 100.0 + 10.0 * LONGEST_READ + 1
        with pytest.raises(BmcUnreachable):
            limits.left(60.0)


def test_a_bmc_without_answers_gets_the_deadline_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(request_time.time, "monotonic", lambda: clock[0])
    limits = RequestTime("n1 BMC")
    with limits.patience(10.0):
        limits.note_answer()
        clock[0] += 10.0 + ANSWER_S + 0.01
        with pytest.raises(BmcUnreachable, match="no answer within"):
            limits.left(60.0)


@pytest.mark.parametrize(("answer_s", "answers"), [(2.5, 280), (12.0, 40)])
def test_a_slow_bmc_is_read_for_as_long_as_it_answers(
    monkeypatch: pytest.MonkeyPatch, answer_s: float, answers: int
) -> None:
    clock = [100.0]
    monkeypatch.setattr(request_time.time, "monotonic", lambda: clock[0])
    limits = RequestTime("n1 BMC")
    with limits.patience(15.0):
        for _ in range(answers):
            clock[0] += answer_s / READS_AT_ONCE
            assert limits.left(60.0) > 0
            limits.note_answer(answer_s)
        clock[0] = 100.0 + 15.0 * LONGEST_READ
        with pytest.raises(BmcUnreachable, match="no answer within 180 s"):
            limits.left(60.0)


def test_what_decisions_need_is_asked_for_first(tiny: Any, ca_file: Path) -> None:
    read(tiny, ca_file, 30.0)
    order = [
        next(place for place, path in enumerate(tiny.asked) if path.startswith(part)) for part in (LOG, POWER, FIRMWARE)
    ]
    assert order == sorted(order)


def test_silence_counts_only_without_an_answer_in_between() -> None:
    limits = RequestTime("n1 BMC")
    with limits.patience(10.0):
        for _ in range(READS_AT_ONCE - 1):
            limits.note_silence()
        limits.note_answer()
        limits.note_silence()
        assert limits.left(60.0) <= 10.0
        for _ in range(READS_AT_ONCE):
            limits.note_silence()
        with pytest.raises(BmcUnreachable, match="no answer within 10 s"):
            limits.left(60.0)


def test_reads_that_gather_reads_never_wait_for_each_other() -> None:
    with ParallelReads(2) as reads:
        shared = OneRead(lambda: sum(reads.gather([lambda: 1, lambda: 2, lambda: 3]))).result
        found = reads.gather([lambda: sum(reads.gather([shared] * 5)) for _ in range(20)])
    assert found == [30] * 20


def test_the_first_error_of_several_reads_is_raised_and_again_to_who_asks_later() -> None:
    broken = OneRead(lambda: next(iter(())))
    with ParallelReads(3) as reads, pytest.raises(StopIteration):
        reads.gather([lambda: 1, broken.result, lambda: 2])
    with pytest.raises(StopIteration):
        broken.result()
