"""Runs `assay` as a process that starts quickly: a fork of one that has imported `assay` already.

Imports are most of what a short command costs. Each worker of the tests keeps one process that has imported all of
`assay` and has run none of it. Each command is a fork of that process, with its own words, environment, working folder
and exit code. `test_forked_assay.py` holds it against `python -m assay`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO

from pydantic import BaseModel

from tests.support.forked_python import (
    IMPORTER_VARIABLE,
    SYS_CLONE,
    Spawner,
    be_python,
    fork_for_parent,
    fork_spawner,
    serve,
    start_modules_by,
)
from tests.support.judged_answers import judge_answer
from tests.support.places import ROOT

LOADS_PLUGINS = (".__main__", ".specs.ticket_route")
"""The ends of modules that run a command or load plug-ins as soon as they are imported: each command has its own."""
STARTS_PYTHON = ("lab", "observe", "reconcile", "rejudge", "schedules", "suites", "validate")
"""Verbs that start shards or ask virtual nodes."""
LONGEST_S = 900
"""A command that takes longer hangs, on however busy a machine."""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Keeps numpy from starting threads when it is imported: a fork may wait for ever for a thread that it has not got."""
_ONE_AT_A_TIME = threading.Lock()


def run_assay(
    *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, longest_s: float = LONGEST_S
) -> subprocess.CompletedProcess[str]:
    """Run `assay` with these words, by default here and with this environment, and wait until it ends.

    It is killed after `longest_s`.
    """
    command = [str(word) for word in words]
    request = {"words": command, "cwd": str(cwd or Path.cwd()), "env": dict(os.environ if env is None else env)}
    request["longest_s"] = longest_s
    with _ONE_AT_A_TIME, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        exit_code = _start_importer().run(request, out, err)
        judge_answer(command, answer := _read(out))
        return subprocess.CompletedProcess(["assay", *command], exit_code, answer, _read(err))


def assay(home: Path, *words: str, codes: tuple[int, ...] = (0, 1)) -> str:
    """Return what a verb says of the fleet at `home`; the test fails where it ends with another exit code."""
    done = run_assay(*words, "--fleet", home, cwd=home)
    assert done.returncode in codes, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def lend_spawner() -> Spawner | None:
    """Return what forks the children of this process that `ForkingPopen` starts."""
    return _start_importer().spawner


def share_importer() -> bool:
    """Let the workers of this run have forks of this process's importer; return whether this kernel can fork so."""
    importer = _start_importer()
    if importer.spawner:
        os.environ[IMPORTER_VARIABLE] = importer.listen()
    return importer.spawner is not None


def measure_importer_s() -> float:
    """Return the CPU time of the process that commands are forked from, and of those that have ended; 0 without it."""
    if not _start_importer.cache_info().currsize:
        return 0.0
    fields = Path(f"/proc/{_start_importer().pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def end_importer() -> None:
    """End the process that commands are forked from, if there is one."""
    if _start_importer.cache_info().currsize:
        _start_importer().end()
        _start_importer.cache_clear()


class _Importer:
    """The process that has imported `assay`, seen from the tests."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if shared := os.environ.get(IMPORTER_VARIABLE):
            self._line = socket.socket(socket.AF_UNIX)
            self._line.connect(shared)
        else:
            self._line, other = socket.socketpair()
            with other:
                command = [sys.executable, "-m", __name__, str(other.fileno())]
                self._process = subprocess.Popen(
                    command,
                    pass_fds=[other.fileno()],
                    stdin=subprocess.DEVNULL,
                    cwd=ROOT,
                    env=os.environ | ONE_THREAD,
                )
        self.spawner = self._ask_for_spawner()
        self.pid = self._ask({"pid": True}, [])

    def listen(self) -> str:
        """Let other processes of this run connect, each to a fork of its own; return where."""
        self._folder = tempfile.TemporaryDirectory(prefix="assay-tests-")
        place = f"{self._folder.name}/importer"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place)
            listener.listen()
            self._ask({"listen": True}, [listener.fileno()])
        return place

    def run(self, request: Mapping[str, object], out: IO[bytes], err: IO[bytes]) -> int:
        """Run one command that prints to `out` and `err`; return its exit code, or minus the signal that killed it."""
        return self._ask(request, [out.fileno(), err.fileno()])

    def end(self) -> None:
        if self.spawner:
            self.spawner.end()
        self._line.close()
        if self._process:
            self._process.wait()
        if self._folder:
            self._folder.cleanup()

    def _ask_for_spawner(self) -> Spawner | None:
        line, other = socket.socketpair()
        with other:
            return Spawner(line) if self._ask({}, [other.fileno()]) == 0 else None

    def _ask(self, request: Mapping[str, object], descriptors: list[int]) -> int:
        text = json.dumps(request).encode()
        try:
            socket.send_fds(self._line, [len(text).to_bytes(8, "big")], descriptors)
            self._line.sendall(text)
            answer = self._line.recv(4, socket.MSG_WAITALL)
        except ConnectionError:
            answer = b""
        assert answer, "assay cannot be imported, or the process that had imported it was ended: see stderr"
        return int.from_bytes(answer, "big", signed=True)


_start_importer = cache(_Importer)


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


def _fork_commands(line: socket.socket) -> None:
    """Fork a command for each request, until nobody asks any more. Return in the fork too, once it has run."""
    listener: socket.socket | None = None
    while True:
        if listener and line not in select.select([line, listener], [], [])[0]:
            other, _ = listener.accept()
            with other:
                if os.fork():
                    continue
                listener.close()
                line.close()
                line, listener = other.dup(), None
        size, streams, _, _ = socket.recv_fds(line, 8, 2)
        if not size:
            return _wait_for_forks()
        request = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        longest_s = request.pop("longest_s", LONGEST_S)
        if not request:
            code = _fork_spawner_of_the_parent(line, streams[0])
        elif "pid" in request:
            code = os.getpid()
        elif "listen" in request:
            listener, code = socket.socket(fileno=os.dup(streams[0])), 0
        elif not (command := os.fork()):
            line.close()
            return _run_command(streams, **request)
        else:
            code = _wait_for(command, longest_s, streams[1])
        for stream in streams:
            os.close(stream)
        line.sendall(code.to_bytes(4, "big", signed=True))


def _wait_for_forks() -> None:
    """Wait for the forks that others of this run have, so that their CPU time counts as this process's."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _wait_for(command: int, longest_s: float, err: int) -> int:
    """Return the exit code of a command, which is killed if it hangs."""
    ended = os.pidfd_open(command)
    if not select.select([ended], [], [], longest_s)[0]:
        os.write(err, b"the tests killed this command: it had run for %d s\n" % longest_s)
        os.kill(command, signal.SIGKILL)
    os.close(ended)
    return os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])


def _fork_spawner_of_the_parent(line: socket.socket, descriptor: int) -> int:
    """Fork a spawner for the tests; return 0 where the kernel can."""
    if SYS_CLONE is None:
        return 1
    if not fork_for_parent():
        line.close()
        serve(socket.socket(fileno=descriptor))
        os._exit(0)
    return 0


def _run_command(streams: list[int], words: list[str], cwd: str, env: dict[str, str]) -> None:
    """Be `python -m assay` with these words."""
    if words[:1] and words[0] in STARTS_PYTHON:
        spawner = fork_spawner()
        start_modules_by(lambda: spawner)
    be_python("assay", streams, words, cwd, env)


def _import_assay() -> None:
    """Import the modules of `assay` and of pytest, and keep what is there out of the forks' garbage collection."""
    import gc
    import importlib
    import pkgutil

    from _pytest.config import default_plugins

    import assay
    from assay.declare.repository.tree import WorkingFolder
    from assay.declare.spec_values_read_by_checks import read_check_inputs

    for module in pkgutil.walk_packages(assay.__path__, "assay."):
        if not module.name.endswith(LOADS_PLUGINS):
            importlib.import_module(module.name)
    for name in default_plugins:
        importlib.import_module(f"_pytest.{name}")
    _build_models(BaseModel)
    read_check_inputs(WorkingFolder(ROOT))  # what is pure and remembered by content
    gc.collect()
    gc.freeze()


def _build_models(base: type[BaseModel]) -> None:
    """Build the validators that a command would build when it needs them."""
    for model in base.__subclasses__():
        model.model_rebuild()
        _build_models(model)


if __name__ == "__main__":
    _import_assay()
    _fork_commands(socket.socket(fileno=int(sys.argv[1])))
