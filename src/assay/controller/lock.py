"""One controller at a time on a ledger, and one at a time who adds faults to its stories."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.model.errors import Trouble


@contextmanager
def only_controller(home: Path) -> Iterator[None]:
    """Hold the controller's lock in `home` (`.assay/`); it is let go when this process ends, however.

    Raises Trouble when another controller holds it.
    """
    home.mkdir(parents=True, exist_ok=True)
    path = home / "controller.lock"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Trouble(
                f"another controller (process {file.read().strip() or 'unknown'}) works on this ledger",
                where=str(path),
                fix="wait for it, or end it; what it began is taken up again",
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextmanager
def told_by_one(home: Path) -> Iterator[None]:
    """Hold the lock of those who read a story and add faults to it, so that none counts what another has just told.

    It is held for a moment; whoever wants it waits.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / "faults.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
