"""Reads areas in processes of their own, so that a read that hangs or dies takes nothing else along.

A read that the kernel never answers (state D) cannot be interrupted, and a thread in it would keep the whole process
alive. Such a process is left behind, and a successor goes on with the next question. The successor asks again the
questions that lead to branches; answered leaves are not asked twice.

The child walks an area's tree: it records each question, then its answer, in a journal that outlives it. The parent
reads the journal and builds the tree. The journal is a memfd and a shared page, not a pipe: a write wakes nobody, and
the parent can read it after a hang.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import selectors
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from assay.model.reading import ReadingTree, failed, is_reading
from assay.node.probe.node_access import DEFAULT_QUESTION_S, TimedQuestion

LeafPath = tuple[str, ...]
Record = tuple[Sequence[str], str, Any]
"""A path; `asked`, `names` or `leaf`; and the seconds, the names or the leaf."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
MAX_AREA_BYTES = 8 * 2**20
"""Limit on the answers of one area. A full kernel log is 1 MB."""
Question = Callable[[], Any] | TimedQuestion
Area = Question | ReadingTree
"""A question, or a leaf that is known already."""
MAX_LOST_READERS = 3
"""Readers that one area may lose. Where three questions hang, the rest would hang too, two seconds each."""
POLL_S = 0.1  # how often deadlines are checked: the next question may have a nearer one than this
REAP_S = 0.05
STARVED_GRACE_S = 4.0
"""Extra time for a question whose process could run but gets no CPU because of the node's jobs: that is no hang."""


class AnswerTree:
    """The answers so far: leaves by path, and the names below each branch, answered or not.

    A path may hold a leaf as well as a branch. The leaf then stands for everything below that has no answer.
    """

    def __init__(self) -> None:
        self.leaves: dict[LeafPath, ReadingTree] = {}
        self.names: dict[LeafPath, Sequence[str]] = {}

    def is_complete(self, path: LeafPath) -> bool:
        """Return whether everything at and below `path` is answered."""
        if path in self.leaves:
            return True
        return path in self.names and all(self.is_complete((*path, name)) for name in self.names[path])

    def tree(self, otherwise: ReadingTree, path: LeafPath = ()) -> ReadingTree:
        """Return the tree at `path`; `otherwise` is the leaf for unanswered questions."""
        leaf = self.leaves.get(path, otherwise)
        if path in self.names:
            return {name: self.tree(leaf, (*path, name)) for name in self.names[path]}
        return leaf

    def add(self, path: LeafPath, kind: str, content: Any) -> None:
        """Add a record of a journal: the `names` below a branch, or a `leaf`."""
        (self.names if kind == "names" else self.leaves)[path] = content


class AnswerJournal:
    """The journal of one reader. The parent opens it before the fork; the child writes and the parent reads."""

    def __init__(self, allowed_s: float) -> None:
        self.file = os.memfd_create("assay-probe")
        self._deadline = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")
        self._deadline[0] = time.monotonic() + allowed_s
        self._unwritten: list[Record] = []
        self._bytes = 0

    @property
    def question_deadline(self) -> float:
        """The time limit of the present question, by the monotonic clock."""
        return self._deadline[0]

    def record_question(self, path: Sequence[str], seconds: float) -> None:
        """Record that the question at `path` comes next and may take `seconds`."""
        self._unwritten.append((path, "asked", seconds))
        self.flush()
        self._deadline[0] = time.monotonic() + seconds

    def record_names(self, path: Sequence[str], names: Sequence[str]) -> None:
        """Record the names below a branch."""
        self._unwritten.append((path, "names", names))

    def record_leaf(self, path: Sequence[str], leaf: ReadingTree) -> None:
        """Record a leaf. A leaf that JSON cannot hold, or that is too large, becomes failed."""
        self._unwritten.append((path, "leaf", leaf))

    def flush(self) -> None:
        """Write all records to the memfd, which outlives this process."""
        text = memoryview(self._encode())
        self._unwritten.clear()
        while text:
            text = text[os.write(self.file, text) :]

    def _encode(self) -> bytes:
        """Return the records as one line, which is cheap, or each as a line where one of them cannot be kept."""
        try:
            line = _line(self._unwritten)
        except (TypeError, ValueError, RecursionError):
            return b"".join(map(self._encode_alone, self._unwritten))
        if self._bytes + len(line) > MAX_AREA_BYTES:
            return b"".join(map(self._encode_alone, self._unwritten))
        self._bytes += len(line)
        return line

    def _encode_alone(self, record: Record) -> bytes:
        try:
            line = _line([record])
        except (TypeError, ValueError, RecursionError) as error:
            line = _line([(record[0], "leaf", failed(f"no JSON: {type(error).__name__}"))])
        if self._bytes + len(line) > MAX_AREA_BYTES and record[1] == "leaf":
            reason = f"more than this area's {MAX_AREA_BYTES >> 20} MiB of answers"
            line = _line([(record[0], "leaf", failed(reason))])
        self._bytes += len(line)
        return line

    def records(self) -> Iterator[list[Any]]:
        """Yield `[path, kind, content]` of every whole record; `kind` is asked, names or leaf."""
        size = os.fstat(self.file).st_size
        for line in os.pread(self.file, size, 0).splitlines():
            with contextlib.suppress(ValueError):
                yield from json.loads(line)

    def close(self) -> None:
        """Close the journal in this process; a child that hangs keeps its own descriptor."""
        os.close(self.file)


def _line(records: Sequence[Record]) -> bytes:
    """Return one line of strict UTF-8. Raises TypeError, ValueError for what JSON or UTF-8 cannot hold."""
    return _ENCODER.encode(records).encode() + b"\n"


def walk_questions(branch: Any, known: AnswerTree, journal: AnswerJournal, path: LeafPath = ()) -> None:
    """Answer what is not `known` at and below `path`. Questions that lead to a branch are asked again."""
    if known.is_complete(path):
        return
    while callable(branch):
        journal.record_question(path, branch.seconds if isinstance(branch, TimedQuestion) else DEFAULT_QUESTION_S)
        branch = _answer_question(branch)
    if is_reading(branch):
        journal.record_leaf(path, branch)
    elif not isinstance(branch, Mapping):
        journal.record_leaf(path, failed(f"the reader answered with {type(branch).__name__}, which is no reading"))
    else:
        journal.record_names(path, list(branch))
        for name, below in branch.items():
            walk_questions(below, known, journal, (*path, name))


def _answer_question(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception as error:  # any error of a reader is an answer: a failed leaf
        return failed(f"{type(error).__name__}: {error}")


def gather_isolated(areas: Mapping[str, Area], within_s: float, together: Collection[str] = ()) -> ReadingTree:
    """Read all areas at once and return each area's branch, within about `within_s`. An area is itself a question.

    A question that hung, killed its reader or came too late is a failed leaf with the reason. An area that is a leaf
    needs no process; the areas in `together` share one until it is lost. A process costs a node 5 ms.
    """
    ends_at = time.monotonic() + within_s
    answers = AnswerTree()
    answers.leaves.update({(name,): area for name, area in areas.items() if not callable(area)})
    asked = {name: area for name, area in areas.items() if callable(area)}
    shared = {name: area for name, area in asked.items() if name in together}
    apart = [{name: area} for name, area in asked.items() if name not in together]
    with selectors.DefaultSelector() as pipes:
        for group in filter(None, (shared, *apart)):
            _start_reader(pipes, AreaReader(group, answers, ends_at))
        while pipes.get_map():
            _poll_readers(pipes, ends_at)
    over = failed(f"not asked: the probe's {within_s:g} s were over")
    return {name: answers.tree(over, (name,)) for name in areas}


def _start_reader(pipes: selectors.BaseSelector, reader: AreaReader) -> None:
    pipes.register(reader.start(), selectors.EVENT_READ, reader)


def _poll_readers(pipes: selectors.BaseSelector, ends_at: float) -> None:
    """Wait until a reader ends or a deadline passes; start successors where time is left."""
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
        for successor in reader.finish_process(hung=reader not in ended):
            if now < ends_at:
                _start_reader(pipes, successor)


class AreaReader:
    """Reads areas one after the other: its present process, and how many it has lost. All readers share `answers`."""

    def __init__(self, areas: Mapping[str, Question], answers: AnswerTree, ends_at: float, lost: int = 0) -> None:
        self.areas = areas
        self.answers = answers
        self.ends_at = ends_at
        self.lost = lost

    def start(self) -> int:
        """Start a process that asks what is not answered yet; return the pipe that closes when it ends."""
        self.journal = AnswerJournal(DEFAULT_QUESTION_S)
        self.started_at = time.monotonic()
        self.pipe, into = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _run_child(self.areas, self.answers, self.journal, int(self.ends_at - time.monotonic()) + 2)
        os.close(into)
        return self.pipe

    def is_overdue(self, now: float) -> bool:
        """Return whether the present question, or the area as a whole, has run out of time."""
        if now >= self.ends_at:
            return True
        late_s = now - self.journal.question_deadline
        return late_s >= 0 and not (late_s < STARVED_GRACE_S and is_starved(self.pid, now - self.started_at))

    def finish_process(self, *, hung: bool) -> list[AreaReader]:
        """Take over the answers of the process and let go of it. Return the readers of what is not yet answered.

        Each area then has its own: the others must not wait for more hangs of one.
        """
        state = describe_process(self.pid) if hung else ""
        exit_text = _kill(self.pid) if hung else _describe_exit(self.pid)
        unanswered = self._take_answers()
        os.close(self.pipe)
        self.journal.close()
        open_areas = self._list_open()
        if not open_areas:
            return []
        path, seconds = unanswered or ((open_areas[0],), DEFAULT_QUESTION_S)
        self._record_loss(path, seconds, state, exit_text)
        lost = {path[0]: self.lost + 1}
        return [
            AreaReader({name: self.areas[name]}, self.answers, self.ends_at, lost.get(name, 0))
            for name in self._list_open()
        ]

    def _list_open(self) -> list[str]:
        """Return the areas that are not yet answered."""
        return [name for name in self.areas if not self.answers.is_complete((name,))]

    def _take_answers(self) -> tuple[LeafPath, float] | None:
        """Take over the journal; return its unanswered question, if any, with that question's limit in seconds."""
        unanswered: tuple[LeafPath, float] | None = None
        for path, kind, content in self.journal.records():
            if kind == "asked":
                unanswered = (tuple(path), content)
            else:
                unanswered = None
                self.answers.add(tuple(path), kind, content)
        return unanswered

    def _record_loss(self, path: LeafPath, seconds: float, state: str, exit_text: str) -> None:
        """Give the unanswered question a failed leaf; give its area up after `MAX_LOST_READERS` lost readers."""
        patience = (
            f"within {seconds:g} s"
            if self.journal.question_deadline < self.ends_at
            else "before the probe's time was over"
        )
        reason = f"no answer {patience} ({state})" if state else f"the reader died ({exit_text})"
        self.answers.leaves.setdefault(path, failed(reason))
        if self.lost + 1 == MAX_LOST_READERS:
            given_up = failed(f"not asked: {MAX_LOST_READERS} readings of this area hung or killed their reader")
            self.answers.leaves.setdefault(path[:1], given_up)


def _run_child(areas: Mapping[str, Question], known: AnswerTree, journal: AnswerJournal, alarm_s: int) -> NoReturn:
    """Run the child: ask, record the answers, and exit.

    It closes the standard files, so that nobody waits for the end of output of a child that is left behind.
    """
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(alarm_s)  # ends a child whose parent was killed
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        for name, read in areas.items():
            walk_questions(read, known, journal, (name,))
        journal.flush()
        os._exit(0)
    finally:
        os._exit(1)


def _kill(pid: int) -> str:
    """Kill a reader and the tools that it runs. A process in state D is left behind, not waited for."""
    kill_tree(pid)
    _reap(pid)
    return "killed"


def kill_tree(pid: int) -> None:
    """Kill a process, then all that it started: it would go on once they end."""
    started = list(find_children(pid))
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    for child in started:
        kill_tree(child)


def _describe_exit(pid: int) -> str:
    """Return how a reader with a closed pipe ended, `SIGBUS` or `exit 1`; kill it if it still lives."""
    status = _reap(pid)
    if status is None:
        return _kill(pid)
    code = os.waitstatus_to_exitcode(status)
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def _reap(pid: int) -> int | None:
    """Return the wait status of a process, None where it does not end within `REAP_S`."""
    until = time.monotonic() + REAP_S
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.001)
    return None


def describe_process(pid: int) -> str:
    """Describe what a process without an answer does: `state D in nfs_wait_bit_killable, system call 257`.

    Where it waits for a tool, the text is about the tool. Reads only files of /proc that the kernel always answers: for
    a command line or a memory map it may need a lock that the process in state D holds.
    """
    own = _describe_state(pid)
    if not own.startswith("state D"):
        for child in find_children(pid):
            return f"{_read_proc(child, 'comm')} in {_describe_state(child)}"
    return own


def is_starved(pid: int, lived_s: float) -> bool:
    """Return whether a process (or its tool) is runnable but got less than half a CPU in its `lived_s` seconds."""
    fields = _read_proc(pid, "stat").rpartition(")")[2].split()
    if fields[:1] != ["R"]:
        return any(_describe_state(child).startswith("state R") for child in find_children(pid))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") < lived_s / 2


def find_children(pid: int) -> Iterator[int]:
    """Yield the children of `pid` that it has not yet waited for."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  # as in _read_proc; a child belongs to one thread
    except OSError:
        return
    for thread in threads:
        yield from map(int, _read_proc(pid, f"task/{thread}/children").split())


def _describe_state(pid: int) -> str:
    state = _read_proc(pid, "stat").rpartition(")")[2].split()[:1]
    where = _read_proc(pid, "wchan")
    call = _read_proc(pid, "syscall").split()[:1]
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
