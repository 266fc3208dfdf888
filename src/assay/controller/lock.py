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

from assay.ledger.store import Ledger
from assay.ledger.url import file_of
from assay.model.errors import Trouble
from assay.model.secrets import hidden

FIX = "one that goes on answers what is new by itself; else wait for it, or end it: what it began is taken up again"
LONGEST = 120
"""As many letters of a command line tell which it is."""


@contextmanager
def only_controller(home: Path, ledger: Ledger | None = None, fix: str = FIX) -> Iterator[None]:
    """Hold the controller's lock in `home` (`.assay/`), and beside a ledger file that lies elsewhere.

    It is let go when this process ends, however. Raises Trouble when another controller holds it, with who that is.
    """
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for path in _places(home, ledger):
            _take(stack.enter_context(path.open("a+")), path, fix)
        yield


def _places(home: Path, ledger: Ledger | None) -> list[Path]:
    file = file_of(ledger) if ledger else None
    elsewhere = [Path(f"{file}.controller.lock")] if file and file.parent.resolve() != home.resolve() else []
    return [home / "controller.lock", *elsewhere]


def _take(file: IO[str], path: Path, fix: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        raise Trouble(
            f"another controller {_told(file.read())} works on this ledger", where=str(path), fix=fix
        ) from None
    typed = hidden(shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]))[:LONGEST]
    at = datetime.now(UTC).isoformat(timespec="seconds")
    file.truncate(0)
    file.write(json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": at, "typed": typed}))
    file.flush()


def _told(written: str) -> str:
    """Return who holds a lock, for people. It may not have written that down yet."""
    try:
        one = json.loads(written)
        since = one["since"][:16].replace("T", " ")
        return f"(process {one['process']} on {one['host']}, `{one['typed']}`, since {since} UTC)"
    except (ValueError, KeyError, TypeError):
        return "(process unknown)"


@contextmanager
def told_by_one(home: Path) -> Iterator[None]:
    """Hold the lock of those who read a story and add faults to it, so that none counts what another has just told.

    It is held for a moment; whoever wants it waits.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / "faults.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
