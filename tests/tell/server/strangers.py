"""Connections of strangers to a site's server, and of whoever has a token."""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import socket
import ssl
import time
from collections.abc import Iterable

from tests.support.site_of_agents import PATIENCE_S, TOKENS, Site, batch


def open_connections(site: Site, count: int, addresses: int = 1) -> list[socket.socket]:
    """Return idle TCP connections from so many addresses of this machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < (wanted := min(hard, count + 500)):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return [connect(site, f"127.0.0.{1 + number % addresses}") for number in range(min(count, wanted - 300))]


def connect(site: Site, address: str = "127.0.0.1") -> socket.socket:
    """Return a TCP connection from an address of this machine."""
    return socket.create_connection(("127.0.0.1", site.port), PATIENCE_S, (address, 0))


def trust(site: Site) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(site.home / "ca.pem"))


def shake_hands(site: Site, address: str = "127.0.0.1") -> ssl.SSLSocket:
    """Return a connection whose TLS handshake is finished."""
    return trust(site).wrap_socket(connect(site, address), server_hostname="127.0.0.1")


def is_closed(line: socket.socket) -> bool:
    """Whether the other side has closed a connection. What it still said is dropped."""
    line.setblocking(False)
    try:
        while line.recv(4096):
            pass
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True
    return True


def read_to_the_end(line: socket.socket) -> bytes:
    """Return what the other side says until it closes the connection, in whatever way."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := line.recv(4096):
            said += piece
    return said


def count_open(lines: Iterable[socket.socket]) -> int:
    return sum(not is_closed(line) for line in lines)


class Caller:
    """One connection of a node's agent, that stays open from one batch to the next."""

    def __init__(self, site: Site, name: str = "n0003", token: str | None = None) -> None:
        self.name, self.token = name, TOKENS[name] if token is None else token
        if site.scheme == "https":
            self.line: http.client.HTTPConnection = http.client.HTTPSConnection(
                "127.0.0.1", site.port, timeout=PATIENCE_S, context=trust(site)
            )
        else:
            self.line = http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE_S)
        self.line.connect()
        self.line.auto_open = 0  # a connection that was closed is not opened again

    def post(self, **changed) -> int:
        """Return the status of a batch."""
        body = json.dumps(batch(self.name, **changed))
        self.line.request(
            "POST", f"/agent/v1/nodes/{self.name}/batches", body, {"Authorization": f"Bearer {self.token}"}
        )
        answer = self.line.getresponse()
        answer.read()
        return answer.status

    @property
    def sock(self) -> socket.socket:
        return self.line.sock


def resident_mib(site: Site) -> float:
    """Return the memory of the site's server, in MiB."""
    assert site.server is not None
    with open(f"/proc/{site.server.pid}/status") as status:  # noqa: PTH123 — no file of a folder
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) / 1024


def wait_until(site: Site, what, said: str) -> float:
    """Wait until something is so; return how many seconds that took."""
    begun = time.monotonic()
    site.wait_for(what, said)
    return time.monotonic() - begun
