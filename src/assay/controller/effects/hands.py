"""One pair of hands on a node at a time over all controllers, also when the hands' owner was killed.

Whoever does something long to a node holds the lease `hands/NODE` until the deed's deadline. What a dead controller
began (an orphaned ansible-playbook) goes on without it: on the same machine it is found by the locks that die with
their holders, and awaited; on another machine nothing can be proved, so its deadline is waited for.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from assay.actions.action import Context
from assay.actions.node_lock import node_lock
from assay.model.errors import Trouble

LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Hands:
    """Who holds a node: a process, and where its locks lie: `home`, as a place of one boot of one machine."""

    host: str
    pid: int
    home: str
    place: str

    @classmethod
    def ours(cls, home: Path) -> Hands:
        """Return the hands of this process."""
        return cls(socket.gethostname(), os.getpid(), str(home.absolute()), _place(home))

    @classmethod
    def named(cls, holder: str) -> Hands:
        """Return the hands that a lease names."""
        return cls(**json.loads(holder))

    @property
    def locks(self) -> Path | None:
        """The folder whose locks say whether they are still at work, None where it cannot be seen from here."""
        home = Path(self.home)
        return home if _place(home) == self.place else None

    @property
    def holder(self) -> str:
        """The text under which they hold a lease."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@contextmanager
def hands_on(ctx: Context, node: str, deadline_s: float) -> Iterator[None]:
    """Hold the node for a deed that is over after `deadline_s` real seconds at the latest.

    Waits as long as somebody else's deed there may go on, and says so. Raises Trouble where one on this machine goes
    on for longer than `deadline_s`.
    """
    lease, us = f"hands/{node}", Hands.ours(ctx.home)
    with _alone_here(ctx.home, node):
        _claim(ctx, node, us, deadline_s)
        try:
            yield
        finally:
            with suppress(Trouble):  # it ends by itself at the deadline
                ctx.ledger.let_go(lease, us.holder)


def _claim(ctx: Context, node: str, us: Hands, deadline_s: float) -> None:
    lease, told = f"hands/{node}", ""
    while not ctx.ledger.claim(lease, us.holder, deadline_s):
        held = ctx.ledger.holders().get(lease)
        if held is None:
            continue
        them = Hands.named(held.holder)
        if locks := them.locks:
            _await_their_end(locks, node, us, deadline_s)
            ctx.ledger.let_go(lease, held.holder)
            continue
        if held.holder != told:
            until = time.strftime("%H:%M:%S UTC", time.gmtime(held.until_s))
            ctx.tell(f"{node}: {them} may still be at work on it: waits until {until}, when that must be over")
            told = held.holder
        time.sleep(LOOK_S)


def _await_their_end(locks: Path, node: str, us: Hands, deadline_s: float) -> None:
    """Wait for the process itself, then for what it may have left behind, which holds the node's own lock."""
    with ExitStack() as stack:
        if locks != Path(us.home):  # ours we hold already
            stack.enter_context(_alone_here(locks, node))
        stack.enter_context(node_lock(locks, node, deadline_s))


def _place(home: Path) -> str:
    """Return what no other folder is: boot, device and inode; another kernel's or container's folder differs."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    try:
        at = home.stat()
    except OSError:
        return ""
    return f"{boot}/{at.st_dev}/{at.st_ino}"


@contextmanager
def _alone_here(home: Path, node: str) -> Iterator[None]:
    """Hold this machine's lock of those who work on the node; it ends with its process."""
    folder = home / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{node}.hands").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
