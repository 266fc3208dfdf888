"""Runs the probe on a node, through whatever reaches it, and never waits longer than the deadline.

The far end is a process group of its own: on the deadline all of it is killed. Its exit code is never believed;
what counts is one JSON document on its standard output.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from assay.model.evidence import canonical
from assay.model.fleet import Node
from assay.model.reading import as_reading, failed

ANSWER_LIMIT = 16 * 2**20
"""Bytes of one answer; a probe's is about 30 kB, a full kernel ring buffer 1 MB."""

_VIRTUAL = ("ASSAY_ROOT", "ASSAY_AT", "NVML_STUB")


def probe(node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
    """Return the channels that the probe on `node` prints: `probe`, and `active` where the arguments ask for it.

    A channel that did not come is a `failed` leaf with the reason.
    """
    default = ["ssh", "-o", "BatchMode=yes", node.name]
    prefix = [str(word) for word in node.variables.get("reach") or default]
    return _channels(ask([*prefix, "python3", "-m", "assay.probe", *arguments], deadline_s), arguments)


def probe_here(arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
    """Return what the probe reads on this machine itself, even where the caller lives in a lab's environment."""
    environment = {name: text for name, text in os.environ.items() if name not in _VIRTUAL}
    return _channels(ask([sys.executable, "-m", "assay.probe", *arguments], deadline_s, environment), arguments)


def _channels(answer: dict[str, Any], arguments: Sequence[str]) -> dict[str, Any]:
    wanted = ["probe", "active"] if "--active" in arguments else ["probe"]
    if as_reading(answer) is not None:
        return dict.fromkeys(wanted, answer)
    return {name: _tree(answer, name) for name in wanted}


def _tree(answer: dict[str, Any], name: str) -> dict[str, Any]:
    tree = answer.get(name)
    return tree if isinstance(tree, dict) else failed(f"the answer holds no {name}")


def ask(command: Sequence[str], deadline_s: float, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run `command` and return the JSON object that it prints, or a `failed` leaf."""
    ends_at = time.monotonic() + deadline_s
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        return failed(f"{command[0]} cannot be started: {error.strerror}")
    try:
        out, err = _listen(process, ends_at)
        process.wait(max(0.0, ends_at - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired):
        return failed(f"no answer within {deadline_s:g} s")
    except OverflowError:
        return failed(f"an answer of more than {ANSWER_LIMIT >> 20} MiB was cut off")
    finally:
        _end(process)
    return _document(out, err, process.returncode)


def _listen(process: subprocess.Popen[bytes], ends_at: float) -> tuple[bytes, bytes]:
    """Collect both outputs to their end. Raises TimeoutError on the deadline, OverflowError on a flood."""
    assert process.stdout is not None
    assert process.stderr is not None
    heard = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in heard:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            if time.monotonic() >= ends_at:
                raise TimeoutError
            for key, _ in selector.select(ends_at - time.monotonic()):
                piece = os.read(key.fd, 65536)
                heard[key.fileobj] += piece  # type: ignore[index]
                if not piece:
                    selector.unregister(key.fileobj)
                if len(heard[key.fileobj]) > ANSWER_LIMIT:  # type: ignore[index]
                    raise OverflowError
    return bytes(heard[process.stdout]), bytes(heard[process.stderr])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the group. A process stuck in the kernel (state D) is left behind, not waited for."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _document(out: bytes, err: bytes, code: int | None) -> dict[str, Any]:
    if not out.strip():
        return failed(_first_line(err) or f"the probe printed nothing and ended with exit code {code}")
    try:
        tree = json.loads(out, parse_constant=_no_such_number)
        canonical(tree)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        return failed(_first_line(err) or f"not a JSON document: {_first_line(out)}")
    return tree


def _no_such_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _first_line(raw: bytes) -> str:
    """Return the first line that says something, printable and short enough for a table."""
    lines = (line.strip() for line in raw[:4096].decode(errors="replace").splitlines())
    line = next((line for line in lines if line), "")
    return "".join(sign if sign.isprintable() else "·" for sign in line)[:200]
