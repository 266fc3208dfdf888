"""Locks of files: they work on one machine and end with their process.

This module imports no database, so that a playbook's task starts quickly.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.model.errors import AssayError

LOCK_POLL_S = 0.1


@contextmanager
def hold_file_lock(
    path: Path,
    patience_s: float = float("inf"),
    refuse: Callable[[str], AssayError] = AssayError,
    note: str = "",
    poll_s: float = LOCK_POLL_S,
) -> Iterator[None]:
    """Hold an exclusive lock on a file, made if it is missing, and write `note` into it.

    After `patience_s` seconds without the lock, raises `refuse(NOTE)`, where NOTE is the text that its holder wrote.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + patience_s
    with path.open("a+") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if patience_s == float("inf") else fcntl.LOCK_NB))
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    file.seek(0)
                    raise refuse(file.read().strip()) from None
                time.sleep(poll_s)
        if note:
            file.truncate(0)
            file.write(note)
            file.flush()
        yield


@contextmanager
def hold_node_lock(home: Path, node: str, deadline_s: float) -> Iterator[None]:
    """Hold this machine's lock of a node under `home` (`.assay/`) while an effect works on the node.

    An ansible-playbook that outlives its controller holds the lock until its task ends. Raises AssayError if the lock
    is not free within `deadline_s` seconds.
    """
    path = home / "locks" / node
    refusal = AssayError(
        f"another run has been working on it for more than {deadline_s:g} s",
        where=node,
        fix=f"`fuser {path}` names the process; let it finish or end it",
    )
    with hold_file_lock(path, deadline_s, lambda _: refusal):
        yield
