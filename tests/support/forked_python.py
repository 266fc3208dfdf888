"""Starts some `python -m MODULE` quickly: as a fork of a process that has imported what they need.

Imports are most of what a short process costs. A spawner is a child of the process that wants children: it has run
nothing, and forks them in its parent's name (CLONE_PARENT), so that they are waited for and killed as any child is.
`test_forked_python.py` holds them against new processes.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import json
import os
import platform
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from _pytest.assertion.rewrite import AssertionRewritingHook
from execnet.gateway_io import popen_bootstrapline

from assay.validate.runs.parent_process import PARENT_PID_VARIABLE

CLONE_PARENT = 0x8000  # linux/sched.h
SYS_CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine())
NODE_SHELL = "assay.lab.node.shell"
XDIST_WORKER = popen_bootstrapline
"""What a worker of xdist is started to run, given with `-u -c`."""
IMPORTED_ANEW = {
    "pytest": "assay.validate.plugin",
    XDIST_WORKER: "assay.validate.plugin",
    NODE_SHELL: NODE_SHELL,
}
"""What says so when it had been imported before it is run, but for imports by pytest itself."""
IMPORTER_VARIABLE = "ASSAY_TESTS_IMPORTER"
"""Says where the workers of one run find the process that has imported `assay`."""
PROGRAMS_OF_TESTS = "tests."
"""How the names of modules of tests begin. Such a program is started in the folder of the repository."""


class Spawner:
    """The process that forks, seen from its parent."""

    def __init__(self, line: socket.socket) -> None:
        self._line, self._lock = line, threading.Lock()

    def spawn(self, request: Mapping[str, object], streams: Sequence[int]) -> int:
        """Start a module with these three streams, and return its process id."""
        text = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._line, [len(text).to_bytes(8, "big")], list(streams))
            self._line.sendall(text)
            answer = self._line.recv(4, socket.MSG_WAITALL)
        assert answer, "the process that forks has ended: see stderr"
        return int.from_bytes(answer, "big")

    def end(self) -> None:
        """Let the process end."""
        self._line.close()


class ForkingPopen(subprocess.Popen[Any]):
    """`subprocess.Popen`, which starts what `is_forked` says as a fork, and everything else as ever."""

    find_spawner: ClassVar[Callable[[], Spawner | None]] = staticmethod(lambda: None)
    more_modules: ClassVar[tuple[str, ...]] = ()

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, *rest: Any):
        cwd, env, _, _, shell, *pipes = rest
        start_new_session, process_group = rest[-2:]
        own_ways = shell or executable or preexec_fn or pass_fds or not is_forked(args, env, self.more_modules)
        spawner = None if own_ways else self.find_spawner()
        if spawner is None:
            return super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, *rest)
        p2cread, _, _, c2pwrite, _, errwrite = pipes[:6]
        streams = [own if given == -1 else given for own, given in enumerate((p2cread, c2pwrite, errwrite))]
        place = {"-m": 2, "-u": 3}[args[1]]
        request = {
            "module": os.fsdecode(args[place]),
            "words": [os.fsdecode(word) for word in args[place + 1 :]],
            "cwd": os.fsdecode(cwd or os.getcwd()),  # noqa: PTH109 — the text, nothing more
            "env": dict(os.environ if env is None else env),
            "group": None if start_new_session else process_group,
            "session": start_new_session,
        }
        self.pid = spawner.spawn(request, streams)
        self._child_created = True
        self._close_pipe_fds(*pipes[:6])
        return None


def start_modules_by(find_spawner: Callable[[], Spawner | None]) -> None:
    """Let `subprocess` fork the modules in question from now on, by the spawner that is found when it is needed."""
    ForkingPopen.find_spawner = staticmethod(find_spawner)
    subprocess.Popen = ForkingPopen  # type: ignore[misc]


class ForkedAssay(ForkingPopen):
    """`subprocess.Popen`, which forks `python -m assay`, too."""

    more_modules = ("assay",)


def is_forked(args: Any, env: Mapping[str, str] | None, more_modules: Sequence[str] = ()) -> bool:
    """Whether a command is a shard, a virtual node's shell, one of the modules, a tests' program or xdist's worker."""
    if isinstance(args, str | bytes | os.PathLike) or len(args) < 2 or args[0] != sys.executable:
        return False
    match [os.fsdecode(word) for word in args[1:4]]:
        case ["-m", module, *_]:
            is_shard = module == "pytest" and PARENT_PID_VARIABLE in (env or {})
            return is_shard or module.startswith(PROGRAMS_OF_TESTS) or module in (NODE_SHELL, *more_modules)
        case ["-u", "-c", code]:
            return code == XDIST_WORKER and not {"PYTEST_XDIST_WORKER", IMPORTER_VARIABLE}.isdisjoint(os.environ)
    return False


def fork_spawner() -> Spawner | None:
    """Fork a spawner of this process, which must have one thread only; None where the kernel is another."""
    if SYS_CLONE is None or threading.active_count() > 1:
        return None
    line, other = socket.socketpair()
    if not os.fork():
        line.close()
        serve(other)
        os._exit(0)
    other.close()
    return Spawner(line)


def serve(line: socket.socket) -> None:
    """Fork a module for each request, until nobody asks any more."""
    while True:
        size, streams, _, _ = socket.recv_fds(line, 8, 3)
        if not size:
            return
        request = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        if not fork_for_parent():
            _start(line, streams, **request)
        for stream in streams:
            os.close(stream)


def fork_for_parent() -> int:
    """Fork this process as a child of its parent; return 0 in the fork."""
    ctypes.pythonapi.PyOS_BeforeFork()  # locks imports: 3.13 refuses a fork that has no lock to let go
    child: int = ctypes.PyDLL(None).syscall(SYS_CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if child:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    return child


def _start(
    line: socket.socket, streams: list[int], group: int | None, session: bool, module: str, **rest: Any
) -> NoReturn:
    """Be the module, in a session or group of its own before anybody knows this process."""
    try:
        if session:
            os.setsid()
        elif group is not None and group >= 0:
            os.setpgid(0, group)
        line.sendall(os.getpid().to_bytes(4, "big"))
        line.close()
        # a spawner forks children of its own parent only, so that of the process that was forked is no use here
        spawner = fork_spawner() if module.startswith(PROGRAMS_OF_TESTS) or module == XDIST_WORKER else None
        start_modules_by(lambda: spawner)
        be_python(module, streams, **rest)
    except SystemExit as left:
        sys.stderr.write(f"{left.code}\n")
        leave(1)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        leave(1)
    leave(0)


def be_python(module: str, streams: Sequence[int], words: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
    """Be `python -m MODULE` with these words; the streams are the standard ones, or the last of them."""
    for number, stream in enumerate(streams, 3 - len(streams)):
        os.dup2(stream, number)
        os.close(stream)
    # of the new descriptors: the old objects remember whether their files could be read from another place
    sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc]  # as in a process of its own
    installed = [place for place in sys.path[1:] if place not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    tempfile.tempdir = None  # what was found with the environment of the tests
    sys.path[:] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep)), *installed]
    importlib.invalidate_caches()
    _forget(IMPORTED_ANEW.get(module, ""))
    sys.argv = [module, *words]
    try:
        _run(module)
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            leave(left.code or 0)
        raise


def _forget(module: str) -> None:
    """Let a module be imported anew, unless pytest has imported it as it wants to."""
    if module in sys.modules and not isinstance(sys.modules[module].__loader__, AssertionRewritingHook):
        del sys.modules[module]


def _run(module: str) -> None:
    if module == XDIST_WORKER:
        sys.argv = ["-c"]
        exec(module, {"__name__": "__main__"})
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def leave(code: int) -> NoReturn:
    """End as Python does, but for the clearing of every module: that would copy all that was imported."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)
