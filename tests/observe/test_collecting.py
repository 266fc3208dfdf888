"""Collecting from many nodes at once: everyone gets a document, on time, whatever one of them does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from assay.lab.faults.injection import inject_fault
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.faults.sightings import find_kernel_sightings
from assay.observe import evidence_collector
from assay.observe.evidence_collector import BMC_PATIENCE, NodeQuery, collect_evidence, run_queries
from assay.observe.evidence_contents import find_unanswered_branches, iterate_leaves

NODES = ["n0001", "n0002", "n0003", "n0017"]


@contextmanager
def broken(rehearsal: Any, node: str, **fails: bool) -> Iterator[None]:
    with rehearsal.world.change(node) as state:
        before, state["fails"] = state["fails"], {**state["fails"], **fails}
    try:
        yield
    finally:
        with rehearsal.world.change(node) as state:
            state["fails"] = before


def test_every_node_brings_both_channels_and_its_time(rehearsal: Any) -> None:
    clock = rehearsal.world.clock()
    begin = clock.now()
    found = collect_evidence(rehearsal.fleet, [*NODES, NODES[0]], clock=clock, deadline_s=20)
    assert list(found) == NODES
    for name, evidence in found.items():
        assert evidence.read("probe", "host", "hostname").value == name
        assert evidence.read("bmc", "system", "serial").value == rehearsal.fleet.nodes[name].serial
        assert begin <= evidence.at <= clock.now()


def test_what_the_lab_reads_is_what_its_state_says(rehearsal: Any) -> None:
    state = rehearsal.world.load("n0001")
    tree = collect_evidence(rehearsal.fleet, ["n0001"], clock=rehearsal.world.clock(), deadline_s=20)["n0001"]
    assert {name: leaf["value"] for name, leaf in tree.channels["bmc"]["firmware"].items()} == state["firmware"]
    assert set(tree.channels["probe"]["gpu"]["devices"]) == {gpu["pci"] for gpu in state["gpus"]}
    assert [tree.read("bmc", "fan", str(n), "rpm").value for n in range(2)] == [fan["rpm"] for fan in state["fans"][:2]]


def test_a_hung_probe_and_a_silent_bmc_delay_nobody_and_are_said_plainly(rehearsal: Any) -> None:
    with broken(rehearsal, "n0002", probe_hangs=True, bmc_silent=True):
        for seconds in (3, 30):
            begin = time.monotonic()
            found = collect_evidence(rehearsal.fleet, NODES, clock=rehearsal.world.clock(), deadline_s=seconds)
            assert time.monotonic() - begin < 3 * seconds
            if all(not find_unanswered_branches(found[name].channels["probe"]) for name in NODES if name != "n0002"):
                break  # else the machine is too busy for those who do answer
    silent = {"failed": f"no answer within {seconds} s"}
    silent_bmc = {"failed": f"no answer within {BMC_PATIENCE * seconds:g} s"}
    assert found["n0002"].channels == {"probe": silent, "bmc": silent_bmc}
    assert found["n0002"].read("probe", "gpu", "count").kind == "failed"
    assert all(not find_unanswered_branches(found[name].channels["probe"]) for name in NODES if name != "n0002")


@pytest.mark.slow
def test_active_parts_run_where_they_are_asked_for_and_carry_their_start(rehearsal: Any) -> None:
    clock = rehearsal.world.clock()
    begin = clock.now()
    found = collect_evidence(rehearsal.fleet, NODES[:2], clock=clock, active={"n0001": ["memory"]}, deadline_s=20)
    assert found["n0001"].read("active", "memory", "errors").value == 0
    assert found["n0001"].read("active", "memory", "started_at").value >= begin.isoformat()
    assert found["n0001"].read("probe", "gpu", "count").value == 8
    assert "active" not in found["n0002"].channels


@pytest.mark.slow
def test_what_a_load_provokes_is_read_after_it_and_dated_within_it(rehearsal: Any) -> None:
    clock = rehearsal.world.clock()
    inject_fault(rehearsal.world, "load.provokes", "n0001", {"gpu": 2, "xid": 119})
    begin = clock.now()
    active = {"n0001": ["all_reduce", "gpu_burn"]}
    evidence = collect_evidence(rehearsal.fleet, ["n0001"], clock=clock, active=active, deadline_s=20)["n0001"]
    end = clock.now()
    (raised,) = find_kernel_sightings(rehearsal.fleet.fault_catalog, evidence, {})
    assert raised.fault_class == "gpu.xid.119"
    assert begin <= datetime.fromisoformat(raised.at) <= end
    assert evidence.read("before", "kernel_log", "cursor").value < int(raised.mark.rpartition(":")[2])
    assert evidence.read("before", "host", "boot_id") == evidence.read("probe", "host", "boot_id")
    assert evidence.read("bmc", "manager", "health").value == "OK"


def test_a_load_that_takes_all_its_time_leaves_the_readings(rehearsal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = evidence_collector.run_remote_probe

    def hang(node: Any, arguments: Any, limit_s: float, transports: Any) -> Any:
        if "--active" in arguments:
            return {name: {"failed": "no answer within 600 s"} for name in ("before", "active", "probe")}
        return ask(node, arguments, limit_s, transports)

    monkeypatch.setattr(evidence_collector, "run_remote_probe", hang)
    clock, active = rehearsal.world.clock(), {"n0001": ["memory"]}
    evidence = collect_evidence(rehearsal.fleet, ["n0001"], clock=clock, active=active, deadline_s=20)["n0001"]
    assert evidence.channels["active"] == {"failed": "no answer within 600 s"}
    assert evidence.read("probe", "gpu", "count").value == 8


def test_the_kernel_log_is_read_on_from_its_cursor(rehearsal: Any) -> None:
    clock = rehearsal.world.clock()
    with rehearsal.world.change("n0001") as state:
        state["kernel_log"] = [{"at": clock.now().isoformat(), "text": f"line {n}"} for n in range(3)]
    first = collect_evidence(rehearsal.fleet, ["n0001"], clock=clock, deadline_s=20)["n0001"]
    lines = first.read("probe", "kernel_log", "lines").value
    mark = f"{lines[-2]['seq']}@{first.read('probe', 'host', 'boot_id').value}"
    then = collect_evidence(rehearsal.fleet, ["n0001"], clock=clock, since={"n0001": mark}, deadline_s=20)["n0001"]
    assert [line["text"] for line in then.read("probe", "kernel_log", "lines").value] == ["line 2"]


def test_a_name_that_the_fleet_does_not_have_is_refused_before_anything_is_asked(rehearsal: Any) -> None:
    with pytest.raises(AssayError, match="the inventory has no node n9999"):
        collect_evidence(rehearsal.fleet, ["n0001", "n9999"], clock=SystemClock())


def question(key: str, ask: Any, limit_s: float = 5.0) -> NodeQuery:
    return NodeQuery((key, "probe"), ask, limit_s)


def test_answers_come_once_each_and_never_more_questions_at_once_than_workers() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def ask() -> int:
        nonlocal running, most
        with lock:
            running, most = running + 1, max(most, running + 1)
        time.sleep(0.01)
        with lock:
            running -= 1
        return 1

    answers = list(run_queries([question(str(n), ask) for n in range(20)], workers=4))
    assert sorted(one.key[0] for one, _ in answers) == sorted(str(n) for n in range(20))
    assert 1 < most <= 4


def test_a_question_that_breaks_answers_with_what_was_raised() -> None:
    def breaks() -> None:
        raise KeyError("x")

    answers = {one.key[0]: answer for one, answer in run_queries([question("a", breaks), question("b", lambda: 7)])}
    assert isinstance(answers["a"], KeyError)
    assert answers["b"] == 7


def test_a_question_stuck_in_the_kernel_is_left_behind_and_its_place_given_on() -> None:
    release = threading.Event()
    questions = [question("stuck", release.wait, 0.1), question("next", lambda: 7, 60)]
    answers = {one.key[0]: answer for one, answer in run_queries(questions, workers=1)}
    assert isinstance(answers["stuck"], TimeoutError)
    assert answers["next"] == 7
    release.set()


def test_a_collector_that_breaks_fails_its_channel_without_quoting_what_it_held(
    rehearsal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError("password hunter2")

    monkeypatch.setattr("assay.observe.evidence_collector.read_bmc_channel", breaks)
    found = collect_evidence(rehearsal.fleet, ["n0001"], clock=SystemClock(), deadline_s=20)["n0001"]
    assert found.channels["bmc"] == {"failed": "the collector broke: RuntimeError"}
    assert found.read("probe", "gpu", "count").value == 8


def test_leaves_are_walked_with_their_paths() -> None:
    tree = {"a": {"b": {"value": 1}, "c": {"failed": "x"}}, "d": {"absent": "y"}, "e": {}}
    walked = {".".join(path): reading.kind for path, reading in iterate_leaves(tree)}
    assert walked == {"a.b": "value", "a.c": "failed", "d": "absent", "e": "value"}


def test_only_a_channel_or_its_branches_count_as_unanswered() -> None:
    lost = {"gpu": {"devices": {"0000:1b:00.0": {"failed": "GPU is lost"}}}, "nic": {"absent": "none"}}
    assert find_unanswered_branches(lost) == {}
    assert find_unanswered_branches({**lost, "host": {"failed": "slow"}}) == {"host": "slow"}
    assert find_unanswered_branches({"failed": "silent"}) == {"": "silent"}
    assert find_unanswered_branches({"absent": "no BMC"}) == {}
