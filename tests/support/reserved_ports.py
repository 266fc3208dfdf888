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
    return [_reserve(1) for _ in range(count)]


def reserve_neighbours() -> int:
    """Return such a port whose next one is this process's own too."""
    return _reserve(2)


def _reserve(count: int) -> int:
    first = random.SystemRandom().randrange(len(PORTS))
    for port in (*PORTS[first:], *PORTS[:first]):
        marks = [_mark(port + offset) for offset in range(count)]
        if all(marks):
            _MARKS.extend(mark for mark in marks if mark)
            return port
        for mark in filter(None, marks):
            mark.close()
    raise AssertionError(f"no port from {PORTS[0]} to {PORTS[-1]} is free")


def _mark(port: int) -> socket.socket | None:
    mark = socket.socket(socket.AF_UNIX)
    with suppress(OSError):
        mark.bind(f"\0assay-test-port-{port}")  # a name in the kernel, gone with the process
        socket.create_server(("", port)).close()
        return mark
    mark.close()
    return None
