"""Run each area of the probe in a process of its own, so that one that hangs or dies takes nothing else along.

A read that the kernel never answers (state D) cannot be interrupted, and a thread in it would keep the whole
process alive; a child in it is left behind.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from assay.model.reading import failed
from assay.probe.files import Tree

READ_SIZE = 65536


@dataclass
class Child:
    """A running area: its process, the pipe that its answer comes through, and until when it may take."""

    area: str
    pid: int
    pipe: int
    allowed_s: float
    deadline: float
    answer: bytearray = field(default_factory=bytearray)


def gather(areas: Mapping[str, tuple[Callable[[], Tree], float]]) -> Tree:
    """Return each area's branch. An area is a function and the seconds that it may take, all counted from now."""
    with selectors.DefaultSelector() as pipes:
        for area, (read, allowed_s) in areas.items():
            child = _start(area, read, allowed_s)
            pipes.register(child.pipe, selectors.EVENT_READ, child)
        branches = dict(_branches(pipes))
    return {area: branches[area] for area in areas}


def _branches(pipes: selectors.BaseSelector) -> Iterator[tuple[str, Tree]]:
    """Yield the branch of each area as it ends or runs out of time."""
    while waiting := [key.data for key in pipes.get_map().values()]:
        soonest = min(child.deadline for child in waiting)
        for key, _ in pipes.select(max(0.0, soonest - time.monotonic())):
            if not _take(key.data):
                pipes.unregister(key.data.pipe)
                yield key.data.area, _ended(key.data)
        for child in waiting:
            if child.deadline <= time.monotonic() and child.pipe in pipes.get_map():
                pipes.unregister(child.pipe)
                yield child.area, _given_up(child)


def _start(area: str, read: Callable[[], Tree], allowed_s: float) -> Child:
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        _answer(read, into, allowed_s)
    os.close(into)
    return Child(area, pid, out, allowed_s, time.monotonic() + allowed_s)


def _answer(read: Callable[[], Tree], into: int, allowed_s: float) -> None:
    """Be the child: read, write the branch, and end. Never returns.

    It lets go of the terminal's files, so that nobody waits for the end of output of a child left behind.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(allowed_s) + 2)  # the end of a child whose parent was killed
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    try:
        branch = read()
    except Exception as error:  # whatever went wrong is this area's answer
        branch = failed(f"{type(error).__name__}: {error}")
    with os.fdopen(into, "wb") as pipe:
        pipe.write(json.dumps(branch).encode())
    os._exit(0)


def _take(child: Child) -> bool:
    """Take what the pipe has; False at its end."""
    chunk = os.read(child.pipe, READ_SIZE)
    child.answer += chunk
    return bool(chunk)


def _ended(child: Child) -> Tree:
    os.close(child.pipe)
    _, status = os.waitpid(child.pid, 0)
    try:
        branch: Tree = json.loads(child.answer)
    except ValueError:
        return failed(f"the reader died ({_how(os.waitstatus_to_exitcode(status))})")
    return branch


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def _given_up(child: Child) -> Tree:
    os.close(child.pipe)
    os.kill(child.pid, signal.SIGKILL)
    return failed(f"no answer within {child.allowed_s:g} s")
