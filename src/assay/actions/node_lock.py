"""One pair of hands on a node at a time, also when the hands' owner was killed: a file lock that dies with its holder.

ansible-runner killed with SIGKILL leaves its ansible-playbook behind, which finishes the task it is in. That task
holds the node's lock, so a second run waits for it and then reads what it did, instead of doing it again.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from assay.model.errors import AssayError

LOCK_POLL_S = 0.1


@contextmanager
def node_lock(home: Path, node: str, deadline_s: float) -> Iterator[None]:
    """Hold the lock of `node` under `home` (`.assay/`). Raises Trouble when it is not free within `deadline_s`."""
    folder = home / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / node).open("a") as file:
        end = time.monotonic() + deadline_s
        while not _try_lock(file):
            if time.monotonic() > end:
                raise AssayError(
                    f"another run has been working on it for more than {deadline_s:g} s",
                    where=node,
                    fix=f"`fuser {folder / node}` names the process; let it finish or end it",
                )
            time.sleep(LOCK_POLL_S)
        yield


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
