"""Ask the questions of each area in a process of its own, so that one that hangs or dies takes nothing else along.

A read that the kernel never answers (state D) cannot be interrupted, and a thread in it would keep the whole
process alive; a process in it is left behind, and a successor goes on with the next question. The successor gets
to where the other was by asking again what led to branches; what was answered it does not ask twice.

What a process that gives no answer is doing, as far as /proc tells.

Only files that the kernel answers whatever the process is stuck in: never its command line or its memory, for which
a process in state D may hold the lock.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from assay.model.reading import failed
from assay.probe.answer_journal import AnswerJournal, AnswerTree, LeafPath, walk_questions
from assay.probe.node_access import DEFAULT_QUESTION_S, TimedQuestion, Tree


def describe_process(pid: int) -> str:
    """Return `state D in nfs_wait_bit_killable, system call 257`; of the tool that it waits for where it runs one."""
    own = _describe_one(pid)
    if not own.startswith("state D"):
        for child in find_children(pid):
            return f"{_read_proc(child, 'comm')} in {_describe_one(child)}"
    return own


def is_starved(pid: int, lived_s: float) -> bool:
    """Say whether a process that has lived so long could go on, but gets less than half of a CPU to do it."""
    fields = _read_proc(pid, "stat").rpartition(")")[2].split()
    if fields[:1] != ["R"]:
        return any(_describe_one(child).startswith("state R") for child in find_children(pid))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") < lived_s / 2


def find_children(pid: int) -> Iterator[int]:
    """Yield the processes that `pid` has started and not yet taken leave of."""
    yield from map(int, _read_proc(pid, f"task/{pid}/children").split())


def _describe_one(pid: int) -> str:
    state = _read_proc(pid, "stat").rpartition(")")[2].split()[:1]
    where, call = _read_proc(pid, "wchan"), _read_proc(pid, "syscall").split()[:1]
    words = f"state {state[0] if state else '?'}"
    if where not in ("", "0"):
        words += f" in {where}"
    if call and call[0].isdecimal():
        words += f", system call {call[0]}"
    return words


def _read_proc(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123  # pathlib costs 10 ms to import
            return file.read().strip()
    except OSError:
        return ""


MAX_LOST_READERS = 3
"""Readers that one area may lose: where three questions hang, so would the rest, two seconds each."""

POLL_S = 0.1  # how often deadlines are looked at: the next question may have a nearer one than this
REAP_S = 0.05
STARVED_GRACE_S = 4.0
"""What a question may take longer while its process could run, but the node's jobs leave it no CPU: that is no hang."""


def gather_isolated(areas: Mapping[str, Callable[[], Any] | TimedQuestion], within_s: float) -> Tree:
    """Return each area's branch within about `within_s`, all areas at once. An area is a question itself.

    What hung, died or could not be asked any more is a failed leaf that says so.
    """
    ends_at = time.monotonic() + within_s
    readers = {area: AreaReader(read, ends_at) for area, read in areas.items()}
    with selectors.DefaultSelector() as pipes:
        for reader in readers.values():
            pipes.register(reader.start(), selectors.EVENT_READ, reader)
        while pipes.get_map():
            _poll_readers(pipes, ends_at)
    over = failed(f"not asked: the probe's {within_s:g} s were over")
    return {area: reader.answers.tree(reader.given_up or over) for area, reader in readers.items()}


def _poll_readers(pipes: selectors.BaseSelector, ends_at: float) -> None:
    """Wait for a reader to end or a deadline to pass, and let successors go on where time is left."""
    waiting: list[AreaReader] = [key.data for key in pipes.get_map().values()]
    now = time.monotonic()
    coming = [due for due in (ends_at, *(reader.journal.question_deadline for reader in waiting)) if due > now]
    patience = min([POLL_S, *(due - now for due in coming)])
    ended = [key.data for key, _ in pipes.select(patience)]
    now = time.monotonic()
    for reader in waiting:
        if reader not in ended and not reader.is_overdue(now):
            continue
        pipes.unregister(reader.pipe)
        reader.finish_process(hung=reader not in ended)
        if not reader.given_up and not reader.answers.is_complete(()) and now < ends_at:
            pipes.register(reader.start(), selectors.EVENT_READ, reader)


class AreaReader:
    """Reads one area: its present process, what is known so far, and why it was given up, where it was."""

    def __init__(self, read: Callable[[], Any] | TimedQuestion, ends_at: float) -> None:
        self.read = read
        self.ends_at = ends_at
        self.answers = AnswerTree()
        self.given_up: Tree | None = None
        self.lost = 0

    def start(self) -> int:
        """Start a process that goes on from here; return the pipe that closes when it ends."""
        self.journal = AnswerJournal(DEFAULT_QUESTION_S)
        self.begun = time.monotonic()
        self.pipe, into = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _run_child(self.read, self.answers, self.journal, int(self.ends_at - time.monotonic()) + 2)
        os.close(into)
        return self.pipe

    def is_overdue(self, now: float) -> bool:
        """Say whether the present question has taken too long, or all have."""
        if now >= self.ends_at:
            return True
        late_s = now - self.journal.question_deadline
        return late_s >= 0 and not (late_s < STARVED_GRACE_S and is_starved(self.pid, now - self.begun))

    def finish_process(self, *, hung: bool) -> None:
        """Take what the process has said, note what became of its last question, and let go of it."""
        state = describe_process(self.pid) if hung else ""
        ended = _kill(self.pid) if hung else _how_ended(self.pid)
        asked = self._take()
        if not self.answers.is_complete(()):
            self._record_loss(asked, state, ended)
        os.close(self.pipe)
        self.journal.close()

    def _take(self) -> tuple[LeafPath, float] | None:
        """Take the journal; return the question that has no answer in it, and the seconds that it was given."""
        asked: tuple[LeafPath, float] | None = None
        for path, kind, content in self.journal.records():
            if kind == "asked":
                asked = (tuple(path), content)
            else:
                asked = None
                self.answers.add(tuple(path), kind, content)
        return asked

    def _record_loss(self, asked: tuple[LeafPath, float] | None, state: str, ended: str) -> None:
        """Note what became of the question that the process ended in, and whether the area is given up."""
        self.lost += 1
        path, seconds = asked or ((), DEFAULT_QUESTION_S)
        patience = (
            f"within {seconds:g} s"
            if self.journal.question_deadline < self.ends_at
            else "before the probe's time was over"
        )
        reason = f"no answer {patience} ({state})" if state else f"the reader died ({ended})"
        self.answers.leaves.setdefault(path, failed(reason))
        if self.lost == MAX_LOST_READERS:
            self.given_up = failed(f"not asked: {MAX_LOST_READERS} readings of this area hung or killed their reader")


def _run_child(
    read: Callable[[], Any] | TimedQuestion, known: AnswerTree, journal: AnswerJournal, alarm_s: int
) -> NoReturn:
    """Be the child: ask, write the answers down, and end.

    It lets go of the terminal's files, so that nobody waits for the end of output of a child left behind.
    """
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(alarm_s)  # the end of a child whose parent was killed
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        walk_questions(read, known, journal)
        journal.flush()
        os._exit(0)
    finally:
        os._exit(1)


def _kill(pid: int) -> str:
    """Kill a reader with the tools that it runs; one in state D is left behind, not waited for."""
    for one in [pid, *find_children(pid)]:  # it first: with the end of its tool it would go on
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one, signal.SIGKILL)
    _reaped(pid)
    return "killed"


def _how_ended(pid: int) -> str:
    """Say how a reader ended whose pipe is closed; one that lives on without it is killed."""
    status = _reaped(pid)
    if status is None:
        return _kill(pid)
    code = os.waitstatus_to_exitcode(status)
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def _reaped(pid: int) -> int | None:
    until = time.monotonic() + REAP_S
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.001)
    return None
