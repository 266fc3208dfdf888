"""Follows a reference to where its secret is: an environment variable, a file, a command, an Ansible vault."""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import signal
import subprocess
import time
from pathlib import Path

from assay.model.credentials import Credentials as Reference
from assay.model.errors import Trouble
from assay.model.secrets import remember
from assay.observe.once import Once
from assay.observe.vault import opened

COMMAND_S = 10.0
KEPT_S = 300.0
LONGEST = 64 * 1024
_printed: Once[str] = Once(KEPT_S)


def secret(reference: Reference, root: Path) -> str:
    """Return what a reference leads to, "" for a variable that is not set. Raises Trouble.

    Paths and commands start at `root`. Whoever started this process may have handed the secret over already.
    """
    text = os.environ.get(handed_name(reference)) or _followed(reference, root)
    remember(text)
    return text


def called(reference: Reference) -> str:
    """Return how to call the place that a reference leads to. Only a command's name is told, not its arguments."""
    if reference.env:
        return f"the environment variable {reference.env}"
    if reference.command:
        return f"the command {Path(reference.command[0]).name}"
    return reference.file or "the vault"


def handed_name(reference: Reference) -> str:
    """Return the environment variable in which a secret is handed over to a program that is to use it."""
    return f"ASSAY_SECRET_{hashlib.sha256(reference.model_dump_json().encode()).hexdigest()[:16]}"


def _followed(reference: Reference, root: Path) -> str:
    if reference.env:
        return os.environ.get(reference.env, "")
    if reference.file:
        return _first_line(root / reference.file)
    if reference.command:
        words = tuple(reference.command)
        return _printed((words, root), lambda: _run(words, root))
    return opened(reference.vault, root).partition("\n")[0].rstrip("\r")


def _first_line(path: Path) -> str:
    try:
        with path.open() as lines:
            return lines.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise Trouble(f"{path} cannot be read: {reason}") from None


def _run(words: tuple[str, ...], root: Path) -> str:
    """Return the first line that a command prints. What it says on standard error is never repeated."""
    name, by_hand = Path(words[0]).name, "run it by hand to see why"
    try:
        process = subprocess.Popen(
            words,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise Trouble(f"the command {name} cannot be started: {error.strerror}", fix="correct its path") from None
    try:
        printed = _printed_by(process, time.monotonic() + COMMAND_S)
        code = process.wait(1.0)
    except (TimeoutError, subprocess.TimeoutExpired):
        raise Trouble(f"the command {name} did not end within {COMMAND_S:g} s", fix=by_hand) from None
    finally:
        _end(process)
    if code:
        raise Trouble(f"the command {name} ended with exit status {code}", fix=by_hand)
    return printed.partition(b"\n")[0].rstrip(b"\r").decode(errors="replace")


def _printed_by(process: subprocess.Popen[bytes], ends_at: float) -> bytes:
    """Return what a process prints until it closes its output. Raises TimeoutError on the deadline."""
    assert process.stdout is not None
    printed = b""
    while len(printed) < LONGEST:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, ends_at - time.monotonic()))
        if not ready:
            raise TimeoutError
        piece = os.read(process.stdout.fileno(), LONGEST)
        if not piece:
            return printed
        printed += piece
    raise Trouble(f"a command printed more than {LONGEST >> 10} KiB", fix="let it print the secret and nothing else")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the command's process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)
    if process.stdout is not None:
        process.stdout.close()
