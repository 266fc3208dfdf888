"""Who is asked first, and that one who is slow delays nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.node import Node
from assay.observe import evidence_collector
from assay.observe.evidence_collector import NodeQuery, order_by_overdue, run_queries

POOLS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 5)), max_size=30)


def node(number: int, pool: str) -> Node:
    return Node(f"n{number}", pool, "s", "r01", 1, "x", "spec", "managed")


@given(POOLS)
def test_everyone_is_asked_once_the_longest_waiting_first_and_the_pools_in_turn(drawn: list[tuple[str, int]]) -> None:
    nodes = [node(number, pool) for number, (pool, _) in enumerate(drawn)]
    seen = {f"n{number}": float(at) for number, (_, at) in enumerate(drawn)}
    order = order_by_overdue(nodes, seen.__getitem__)
    assert sorted(order, key=lambda one: one.name) == sorted(nodes, key=lambda one: one.name)
    sizes = Counter(one.pool for one in nodes)
    for pool in sizes:
        times = [seen[one.name] for one in order if one.pool == pool]
        assert times == sorted(times)
    for end in range(len(order) + 1):
        had = Counter(one.pool for one in order[:end])
        hungry = [had[pool] for pool in sizes if had[pool] < sizes[pool]]
        assert not hungry or max(had.values(), default=0) - min(hungry) <= 1


def test_among_those_never_seen_the_inventory_s_order_stays() -> None:
    nodes = [node(number, "a") for number in (3, 1, 2)]
    assert order_by_overdue(nodes, lambda _: 0.0) == nodes


def test_a_rack_that_is_dead_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_collector, "is_host_overloaded", lambda: False)
    release = threading.Event()
    dead = [NodeQuery((f"dead{n}", "probe"), lambda: release.wait(60), 30.0) for n in range(20)]
    well = [NodeQuery((f"well{n}", "probe"), lambda: 7, 30.0) for n in range(50)]
    came: list[str] = []
    for question, _ in run_queries([*dead, *well], workers=4, patience_s=0.1):
        came.append(question.key[0])
        if len(came) == len(well):
            release.set()
    assert all(name.startswith("well") for name in came[: len(well)])
    assert len(came) == len(dead) + len(well)


def test_a_crowded_machine_starts_no_more_than_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_collector, "is_host_overloaded", lambda: True)
    running, most, lock = 0, 0, threading.Lock()

    def ask() -> None:
        nonlocal running, most
        with lock:
            running, most = running + 1, max(most, running + 1)
        time.sleep(0.05)
        with lock:
            running -= 1

    questions = [NodeQuery((str(n), "probe"), ask, 30.0) for n in range(12)]
    assert len(list(run_queries(questions, workers=3, patience_s=0.01))) == 12
    assert most <= 3


def test_how_many_wait_aside_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_collector, "is_host_overloaded", lambda: False)
    monkeypatch.setattr(evidence_collector, "MAX_PARKED_PER_WORKER", 2)
    release, lock, started = threading.Event(), threading.Lock(), []

    def ask() -> None:
        with lock:
            started.append(1)
            if len(started) > 4:
                release.set()
        release.wait(1.5)

    questions = [NodeQuery((str(n), "probe"), ask, 30.0) for n in range(5)]
    begun = time.monotonic()
    assert len(list(run_queries(questions, workers=2, patience_s=0.01))) == 5
    assert time.monotonic() - begun >= 1.5  # the fifth waited for the first to come back


def test_ctrl_c_ends_what_runs_and_leaves_no_orphan(tmp_path: Path) -> None:
    sleep = f"import os, time; open({str(tmp_path)!r} + f'/{{os.getpid()}}', 'w'); time.sleep(300)"
    reach = {"reach": [sys.executable, "-S", "-c", sleep]}
    script = f"""
from pathlib import Path
from assay.model.clock import SystemClock
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.observe.evidence_collector import collect_evidence
from assay.model.specs.node_settings import make_node_settings
names = [f"n{{number}}" for number in range(6)]
nodes = {{name: Node(name, "p", "s", "r", 1, "x", "sp", "m", settings=make_node_settings({reach!r})) for name in names}}
collect_evidence(Fleet(Path("/"), nodes), list(nodes), clock=SystemClock(), deadline_s=120)
"""
    asking = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    until(lambda: len(list(tmp_path.iterdir())) == 6)
    asking.send_signal(signal.SIGINT)
    asking.communicate(timeout=120)
    assert asking.returncode != 0
    until(lambda: not any(alive(int(path.name)) for path in tmp_path.iterdir()))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(true: Any, limit_s: float = 120.0) -> None:
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
