"""Runs `assay` as a process that starts quickly: a fork of one that has imported `assay` already.

Imports are most of what a short command costs. Each worker of the tests keeps one process that has imported all of
`assay` and has run none of it. Each command is a fork of that process, with its own words, environment, working folder
and exit code. `test_forked_assay.py` holds it against `python -m assay`.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

LOADS_PLUGINS = (".__main__", ".specs.ticket_route")
"""The ends of modules that run a command or load plug-ins as soon as they are imported: each command has its own."""
_ONE_AT_A_TIME = threading.Lock()


def run_assay(
    *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `assay` with these words, by default here and with this environment, and wait until it ends."""
    command = [str(word) for word in words]
    request = {"words": command, "cwd": str(cwd or Path.cwd()), "env": dict(os.environ if env is None else env)}
    with _ONE_AT_A_TIME, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        exit_code = _start_importer().run(request, out, err)
        return subprocess.CompletedProcess(["assay", *command], exit_code, _read(out), _read(err))


def end_importer() -> None:
    """End the process that commands are forked from, if there is one."""
    if _start_importer.cache_info().currsize:
        _start_importer().end()
        _start_importer.cache_clear()


class _Importer:
    """The process that has imported `assay`, seen from the tests."""

    def __init__(self) -> None:
        self._line, other = socket.socketpair()
        with other:
            command = [sys.executable, __file__, str(other.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL)

    def run(self, request: Mapping[str, object], out: IO[bytes], err: IO[bytes]) -> int:
        """Run one command that prints to `out` and `err`; return its exit code, or minus the signal that killed it."""
        text = json.dumps(request).encode()
        try:
            socket.send_fds(self._line, [len(text).to_bytes(8, "big")], [out.fileno(), err.fileno()])
            self._line.sendall(text)
            answer = self._line.recv(4, socket.MSG_WAITALL)
        except ConnectionError:
            answer = b""
        assert answer, "assay cannot be imported, or the process that had imported it was ended: see stderr"
        return int.from_bytes(answer, "big", signed=True)

    def end(self) -> None:
        self._line.close()
        self._process.wait()


_start_importer = cache(_Importer)


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


def _fork_commands(line: socket.socket) -> None:
    """Fork a command for each request, until nobody asks any more. Return in the fork too, once it has run."""
    while True:
        size, streams, _, _ = socket.recv_fds(line, 8, 2)
        if not size:
            return
        request = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        if not (command := os.fork()):
            line.close()
            _run_command(streams, **request)
            return
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(command, 0)
        line.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


def _run_command(streams: list[int], words: list[str], cwd: str, env: dict[str, str]) -> None:
    """Be `python -m assay` with these words."""
    import importlib
    import runpy
    import time

    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
        os.close(stream)
    installed = [place for place in sys.path[1:] if place not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    tempfile.tempdir = None  # what was found with the environment of the tests
    sys.path[:] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep)), *installed]
    importlib.invalidate_caches()
    sys.argv = ["assay", *words]
    try:
        runpy.run_module("assay", run_name="__main__", alter_sys=True)
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            _leave(left.code or 0)
        raise


def _leave(code: int) -> NoReturn:
    """End as Python does, but for the clearing of every module: that would copy all that was imported."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def _import_assay() -> None:
    """Import the modules of `assay`, and keep what is there out of the forks' garbage collection."""
    import gc
    import importlib
    import pkgutil

    import assay

    for module in pkgutil.walk_packages(assay.__path__, "assay."):
        if not module.name.endswith(LOADS_PLUGINS):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _import_assay()
    _fork_commands(socket.socket(fileno=int(sys.argv[1])))
