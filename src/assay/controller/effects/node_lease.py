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

from assay.actions.action import ActionContext
from assay.actions.node_lock import node_lock
from assay.model.errors import AssayError

LEASE_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class NodeLeaseHolder:
    """Who holds a node: a process, and where its locks lie: `home`, as a place of one boot of one machine."""

    host: str
    pid: int
    home: str
    home_identity: str

    @classmethod
    def of_this_process(cls, home: Path) -> NodeLeaseHolder:
        """Return the hands of this process."""
        return cls(socket.gethostname(), os.getpid(), str(home.absolute()), _identify_folder(home))

    @classmethod
    def parse(cls, holder: str) -> NodeLeaseHolder:
        """Return the hands that a lease names."""
        return cls(**json.loads(holder))

    @property
    def visible_lock_folder(self) -> Path | None:
        """The folder whose locks say whether they are still at work, None where it cannot be seen from here."""
        home = Path(self.home)
        return home if _identify_folder(home) == self.home_identity else None

    @property
    def lease_text(self) -> str:
        """The text under which they hold a lease."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@contextmanager
def hold_node_lease(ctx: ActionContext, node: str, deadline_s: float) -> Iterator[None]:
    """Hold the node for a deed that is over after `deadline_s` real seconds at the latest.

    Waits as long as somebody else's deed there may go on, and says so. Raises Trouble where one on this machine goes
    on for longer than `deadline_s`.
    """
    lease, us = f"hands/{node}", NodeLeaseHolder.of_this_process(ctx.home)
    with _hold_host_lock(ctx.home, node):
        _claim_lease(ctx, node, us, deadline_s)
        try:
            yield
        finally:
            with suppress(AssayError):  # it ends by itself at the deadline
                ctx.ledger.release(lease, us.lease_text)


def _claim_lease(ctx: ActionContext, node: str, us: NodeLeaseHolder, deadline_s: float) -> None:
    lease, told = f"hands/{node}", ""
    while not ctx.ledger.claim_lease(lease, us.lease_text, deadline_s):
        held = ctx.ledger.leases().get(lease)
        if held is None:
            continue
        them = NodeLeaseHolder.parse(held.holder)
        if locks := them.visible_lock_folder:
            _wait_for_holder(locks, node, us, deadline_s)
            ctx.ledger.release(lease, held.holder)
            continue
        if held.holder != told:
            until = time.strftime("%H:%M:%S UTC", time.gmtime(held.until_s))
            ctx.progress(f"{node}: {them} may still be at work on it: waits until {until}, when that must be over")
            told = held.holder
        time.sleep(LEASE_POLL_S)


def _wait_for_holder(locks: Path, node: str, us: NodeLeaseHolder, deadline_s: float) -> None:
    """Wait for the process itself, then for what it may have left behind, which holds the node's own lock."""
    with ExitStack() as stack:
        if locks != Path(us.home):  # ours we hold already
            stack.enter_context(_hold_host_lock(locks, node))
        stack.enter_context(node_lock(locks, node, deadline_s))


def _identify_folder(home: Path) -> str:
    """Return what no other folder is: boot, device and inode; another kernel's or container's folder differs."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    try:
        at = home.stat()
    except OSError:
        return ""
    return f"{boot}/{at.st_dev}/{at.st_ino}"


@contextmanager
def _hold_host_lock(home: Path, node: str) -> Iterator[None]:
    """Hold this machine's lock of those who work on the node; it ends with its process."""
    folder = home / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{node}.hands").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
