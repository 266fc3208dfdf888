"""Ports for servers of tests, which no other process of the tests gets, and no connection either.

A port that the kernel chose (port 0) is free only for a moment: a connection can get it before a server listens there,
and while the server restarts.
"""

from __future__ import annotations

import random
import socket
from contextlib import suppress

PORTS = range(20_000, 32_000)
"""Below 32768, where the ports begin that Linux chooses."""
_MARKS: list[socket.socket] = []


def reserve_ports(count: int) -> list[int]:
    """Return different ports that nobody listens on; they are this process's own until it ends."""
    return [_reserve_port() for _ in range(count)]


def _reserve_port() -> int:
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        mark = socket.socket(socket.AF_UNIX)
        with suppress(OSError):
            mark.bind(f"\0assay-test-port-{port}")  # a name in the kernel, gone with the process
            socket.create_server(("", port)).close()
            _MARKS.append(mark)
            return port
        mark.close()
    raise AssertionError(f"no port from {PORTS[0]} to {PORTS[-1]} is free")
