"""Puts uvicorn's connections into the table that bounds them: from before the TLS handshake to the end.

uvicorn has no deadline for a handshake, a header or a first request, and no limit per address; so has no other ASGI
server (docs/design.md). The rest of HTTP stays uvicorn's.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from asyncio.sslproto import SSLProtocol
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from assay.web.connection_table import Connection, ConnectionTable

ACCEPTED_AT_ONCE = 64
"""Connections that are accepted before agents that are already connected have their turn again."""
SPARE_FILES = 256
"""Files that the rest of the server needs."""
SSLProtocol.max_size = 16 * 1024  # asyncio's 256 KiB for each connection is 2.5 GB for 10,000 agents


class BoundedListener(socket.socket):
    """A listening socket that enters each connection into a table, and takes no more than the table admits."""

    table: ConnectionTable | None = None
    _accepted = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection that the table admits. Raises BlockingIOError where there is none for now."""
        assert self.table is not None
        while self._accepted < ACCEPTED_AT_ONCE:
            try:
                plain, address = super().accept()
            except OSError:
                self._accepted = 0
                raise
            self._accepted += 1
            host = str(address[0])
            if not self.table.admit(host):
                plain.close()
                continue
            sock = BoundedSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
            sock.table = self.table
            self.table.add(sock, host)
            return sock, address
        self._accepted = 0
        raise BlockingIOError


class BoundedSocket(socket.socket):
    """The socket of an accepted connection: its end removes it from the table."""

    table: ConnectionTable | None = None

    def close(self) -> None:
        """Close the socket."""
        if self.table is not None:
            self.table.remove(self.fileno())
        super().close()


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which tells the table when a request begins and ends, and when nobody reads.

    `state.connection` of a request is its connection.
    """

    _bounded: Connection | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Find the connection in the table, where it is since it was accepted."""
        super().connection_made(transport)
        self._table: ConnectionTable = self.app_state["connections"]
        self._bounded = self._table.find(transport.get_extra_info("socket").fileno())
        self.app_state = {**self.app_state, "connection": self._bounded}

    def data_received(self, data: bytes) -> None:
        """Handle bytes of the peer."""
        super().data_received(data)
        self._note_request()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._note_request()

    def pause_writing(self) -> None:
        """Wait until the peer reads; the table says for how long."""
        super().pause_writing()
        self._note_reading(is_stuck=True)

    def resume_writing(self) -> None:
        """Go on: the peer has read."""
        super().resume_writing()
        self._note_reading(is_stuck=False)

    def _note_reading(self, *, is_stuck: bool) -> None:
        if self._bounded is not None:
            self._table.note_reading(self._bounded, is_stuck=is_stuck)

    def _note_request(self) -> None:
        if self._bounded is not None:
            is_busy = self.cycle is not None and not self.cycle.response_complete
            self._table.note_request(self._bounded, is_busy=is_busy)


def raise_file_limit(connections: int) -> int:
    """Let this process have a file for each connection where it may; return how many connections it can have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(16, min(connections, soft - SPARE_FILES))
