"""Tells the service manager that a service is up, alive, reads again or stops (sd_notify(3)): for `Type=notify`."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress

READY = "READY=1"
ALIVE = "WATCHDOG=1"
STOPPING = "STOPPING=1"


def notify_reloading() -> None:
    """Say that a reload begins; `READY` ends it. With the time, as `Type=notify-reload` of systemd 253 wants it."""
    notify_service_manager("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


def notify_service_manager(*states: str) -> None:
    """Send states to the socket that `$NOTIFY_SOCKET` names. Without one, or if nobody listens, nothing happens."""
    named = os.environ.get("NOTIFY_SOCKET", "")
    if not named.startswith(("/", "@")):
        return
    address = "\0" + named[1:] if named.startswith("@") else named
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line, suppress(OSError):
        line.sendto("\n".join(states).encode(), address)
