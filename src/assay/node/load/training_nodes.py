"""Which nodes train together, and which of them this one is."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from assay.node.load.engine import LoadError

PORT = 29_400
"""Where the first node listens if nobody says another port."""


@dataclass(frozen=True)
class TrainingNodes:
    """Several nodes that train together. `coordinator`: HOST:PORT of the first; `node`: which one this is, from 0."""

    coordinator: str = ""
    nodes: int = 1
    node: int = 0


ALONE = TrainingNodes()


def join_hosts(hosts: Sequence[str], coordinator: str, own: str) -> TrainingNodes:
    """Return the place of the host `own` among all. Raises LoadError if it is none of them, or a name comes twice.

    Names count up to their first dot. Without a coordinator, the first host listens on `PORT`.
    """
    names = [_shorten(host) for host in hosts]
    if len(set(names)) != len(names):
        raise LoadError(f"--hosts {','.join(hosts)} names a host twice")
    if _shorten(own) not in names:
        raise LoadError(f"--hosts {','.join(hosts)} does not name this host, {own}")
    return TrainingNodes(coordinator or f"{hosts[0]}:{PORT}", len(hosts), names.index(_shorten(own)))


def name_this_host() -> str:
    """Return the name of this host: Slurm's, in a job of Slurm."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def _shorten(host: str) -> str:
    return host.partition(".")[0]
