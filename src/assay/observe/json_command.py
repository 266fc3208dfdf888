"""Runs a command that prints one JSON document, within a deadline.

The command is a process group of its own; on the deadline the whole group gets SIGTERM, then SIGKILL. Its exit code is
ignored: what counts is one JSON document on its standard output.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO, Any, NoReturn

from assay.model.evidence import encode_canonical_json
from assay.model.reading import failed

MAX_OUTPUT_BYTES = 16 * 2**20
"""Limit on one answer. A probe's is about 60 kB, a full kernel log 1 MB."""

TERMINATE_GRACE_S = 0.3  # lets srun cancel its job


class RunningCommands:
    """The commands that run for one pass, which can end them all and start no more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._over = False

    def start(self, command: Sequence[str], stdin: bytes) -> Any:
        """Start a command with pipes, in a session of its own. Raises OSError, also after `end_all`."""
        with self._lock:
            if self._over:
                raise InterruptedError(0, "the pass is over")
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._processes.add(process)
        return process

    def remove(self, process: subprocess.Popen[bytes]) -> None:
        """Remove a command that has ended."""
        with self._lock:
            self._processes.discard(process)

    def end_all(self) -> None:
        """End all commands, and refuse to start more."""
        with self._lock:
            self._over = True
            left = list(self._processes)
        for process in left:
            _signal(process, signal.SIGTERM)
        until = time.monotonic() + TERMINATE_GRACE_S
        while time.monotonic() < until and any(process.poll() is None for process in left):
            time.sleep(0.01)
        for process in left:
            _signal(process, signal.SIGKILL)


def run_json_command(
    command: Sequence[str], deadline_s: float, stdin: bytes = b"", running: RunningCommands | None = None
) -> dict[str, Any]:
    """Run `command` with `stdin`, and return the JSON object that it prints, or a `failed` leaf."""
    ends_at = time.monotonic() + deadline_s
    running = running or RunningCommands()
    try:
        process = running.start(command, stdin)
    except OSError as error:
        return failed(f"{command[0]} cannot be started: {error.strerror}")
    try:
        out, err = _exchange(process, stdin, ends_at)
        process.wait(max(0.0, ends_at - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired):
        return failed(f"no answer within {deadline_s:g} s")
    except OverflowError:
        return failed(f"an answer of more than {MAX_OUTPUT_BYTES >> 20} MiB was cut off")
    finally:
        _end(process)
        running.remove(process)
    return parse_json_output(out, err, process.returncode)


def _exchange(process: subprocess.Popen[bytes], stdin: bytes, ends_at: float) -> tuple[bytes, bytes]:
    """Write the standard input and read both outputs to their end.

    Raises TimeoutError on the deadline, OverflowError for more than `MAX_OUTPUT_BYTES`.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    outputs: dict[IO[bytes], bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    left = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        for pipe in outputs:
            selector.register(pipe, selectors.EVENT_READ)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            if time.monotonic() >= ends_at:
                raise TimeoutError
            for key, _ in selector.select(ends_at - time.monotonic()):
                if key.fileobj is process.stdin:
                    left = _write_input(process.stdin, left)
                    more = bool(left)
                else:
                    more = _read_output(key.fd, outputs[key.fileobj])  # type: ignore[index]
                if not more:
                    selector.unregister(key.fileobj)
    return bytes(outputs[process.stdout]), bytes(outputs[process.stderr])


def _write_input(pipe: IO[bytes], left: memoryview) -> memoryview:
    """Write what the pipe takes and return the rest; close the pipe after the last byte, or if nobody reads it."""
    try:
        left = left[os.write(pipe.fileno(), left) :]
    except BlockingIOError:
        return left
    except OSError:  # the command has ended; its output is the answer
        left = left[:0]
    if not left:
        with contextlib.suppress(OSError):
            pipe.close()
    return left


def _read_output(descriptor: int, output: bytearray) -> bool:
    """Append what there is to `output`; return False at the end."""
    piece = os.read(descriptor, 65536)
    output += piece
    if len(output) > MAX_OUTPUT_BYTES:
        raise OverflowError
    return bool(piece)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process group. A process that is stuck in the kernel (state D) is left behind, not waited for."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERMINATE_GRACE_S)
    _signal(process, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def parse_json_output(out: bytes, err: bytes, code: int | None) -> dict[str, Any]:
    """Return the JSON object that a command printed, or a `failed` leaf with the first line of its output or errors."""
    if not out.strip():
        return failed(_first_line(err) or f"the probe printed nothing and ended with exit code {code}")
    try:
        tree = json.loads(out, parse_constant=_refuse_constant, parse_float=_parse_finite)
        if b"\\ud" in out.lower():
            encode_canonical_json(tree)  # JSON can hold half a surrogate pair, which cannot be stored
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        return failed(_first_line(err) or f"not a JSON document: {_first_line(out)}")
    return tree


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _parse_finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


def _first_line(raw: bytes) -> str:
    """Return the first line with a letter or digit, else the first that is not blank; printable, 200 characters."""
    stripped = (line.strip() for line in raw[:4096].decode(errors="replace").splitlines())
    lines = [line for line in stripped if line]
    line = next((line for line in lines if any(map(str.isalnum, line))), lines[0] if lines else "")
    return "".join(character if character.isprintable() else "·" for character in line)[:200]
