"""Deadlines of requests: each cut comes once and not after it was met, and one thread waits for them all."""

from __future__ import annotations

import os
import threading
from threading import Event

from assay.adapters.bmc.tls import DEADLINES, DeadlineThread

PATIENCE_S = 60


def test_a_deadline_that_passes_cuts_also_when_a_later_one_was_there_first():
    thread, late, early = DeadlineThread(), Event(), Event()
    thread.start(600, late.set)
    thread.start(0.01, early.set)
    assert early.wait(PATIENCE_S)
    assert not late.is_set()


def test_one_that_was_met_never_cuts():
    thread, met, other = DeadlineThread(), Event(), Event()
    thread.start(0.05, met.set).meet()
    thread.start(0.1, other.set)
    assert other.wait(PATIENCE_S)
    assert not met.is_set()


def test_meeting_one_waits_for_its_cut_in_progress():
    thread, began, may_end, done = DeadlineThread(), Event(), Event(), []

    def cut():
        began.set()
        may_end.wait(PATIENCE_S)
        done.append("cut")

    deadline = thread.start(0, cut)
    assert began.wait(PATIENCE_S)
    threading.Timer(0.05, may_end.set).start()
    deadline.meet()
    assert done == ["cut"]


def test_a_thousand_requests_start_one_thread():
    before, thread = threading.active_count(), DeadlineThread()
    for _ in range(1000):
        thread.start(600, lambda: None).meet()
    assert threading.active_count() <= before + 1


def test_a_fork_has_a_thread_of_its_own():
    DEADLINES.start(600, lambda: None)
    child = os.fork()
    if child == 0:
        passed = Event()
        DEADLINES.start(0.01, passed.set)
        os._exit(0 if passed.wait(PATIENCE_S) else 1)
    assert os.waitpid(child, 0)[1] == 0
