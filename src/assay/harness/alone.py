"""One process at a time works on a run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.model.errors import Trouble


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Hold the lock of the run in `home`; it is let go when this process ends, however.

    Raises Trouble when another process holds it.
    """
    path = home / "lock"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = f"process {file.read().strip() or 'unknown'}"
            raise Trouble(f"{who} is judging run {home.name}", fix="wait for it, or end it and go on then") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
        path.unlink(missing_ok=True)
