"""One controller at a time on a ledger, and one at a time who adds faults to its stories."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from assay.ledger.store import Ledger, find_ledger_file
from assay.model.errors import AssayError
from assay.model.secret_redaction import redact

OTHER_CONTROLLER_FIX = (
    "one that goes on answers what is new by itself; else wait for it, or end it: what it began is taken up again"
)
MAX_COMMAND_LENGTH = 120
"""As many letters of a command line tell which it is."""


@contextmanager
def hold_controller_lock(home: Path, ledger: Ledger | None = None, fix: str = OTHER_CONTROLLER_FIX) -> Iterator[None]:
    """Hold the controller's lock in `home` (`.assay/`), and beside a ledger file that lies elsewhere.

    It is let go when this process ends, however. Raises Trouble when another controller holds it, with who that is.
    """
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for path in _lock_paths(home, ledger):
            _acquire(stack.enter_context(path.open("a+")), path, fix)
        yield


def _lock_paths(home: Path, ledger: Ledger | None) -> list[Path]:
    file = find_ledger_file(ledger) if ledger else None
    elsewhere = [Path(f"{file}.controller.lock")] if file and file.parent.resolve() != home.resolve() else []
    return [home / "controller.lock", *elsewhere]


def _acquire(file: IO[str], path: Path, fix: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        raise AssayError(
            f"another controller {_describe_holder(file.read())} works on this ledger", where=str(path), fix=fix
        ) from None
    typed = redact(shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]))[:MAX_COMMAND_LENGTH]
    at = datetime.now(UTC).isoformat(timespec="seconds")
    file.truncate(0)
    file.write(json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": at, "typed": typed}))
    file.flush()


def _describe_holder(written: str) -> str:
    """Return who holds a lock, for people. It may not have written that down yet."""
    try:
        one = json.loads(written)
        since = one["since"][:16].replace("T", " ")
        return f"(process {one['process']} on {one['host']}, `{one['typed']}`, since {since} UTC)"
    except (ValueError, KeyError, TypeError):
        return "(process unknown)"


@contextmanager
def hold_fault_lock(home: Path) -> Iterator[None]:
    """Hold the lock of those who read a story and add faults to it, so that none counts what another has just told.

    It is held for a moment; whoever wants it waits.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / "faults.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
