"""The open connections of the server: how many there may be, how long each may wait, and which give way.

A connection is a stranger's until it shows a good token. So connections without a token take no place from agents.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from assay.model.specs.intake_limits import ConnectionLimits
from assay.web.tokens_and_rate_limits import RateLimiter

ConnectionSet = OrderedDict["Connection", None]
"""Connections, the oldest first."""
FAIR_SEARCH = 64


@dataclass(eq=False, slots=True)
class Connection:
    """One connection. `owner` is whose token it has shown, "" for a stranger; `deadline` is by time.monotonic().

    `is_stuck`: the peer has not read what waits for it.
    """

    sock: socket.socket
    address: str
    deadline: float
    owner: str = ""
    is_busy: bool = False
    is_stuck: bool = False
    late: str = ""


class ConnectionTable:
    """Every open connection. `limits` returns the limits now; `on_refusal` gets address and reason of what is closed.

    Works on the event loop's thread only.
    """

    def __init__(
        self, limits: Callable[[], ConnectionLimits], on_refusal: Callable[[str, str], None], files: int
    ) -> None:
        self._limits, self._on_refusal, self._files = limits, on_refusal, files
        self._open: dict[int, Connection] = {}
        self._strangers: ConnectionSet = OrderedDict()
        self._by_address: dict[str, ConnectionSet] = {}
        self._by_owner: dict[str, ConnectionSet] = {}
        self._rates: tuple[ConnectionLimits, RateLimiter] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, host: str) -> bool:
        """Whether an address may open one more connection now."""
        limits, address = self._limits(), group_address(host)
        if self._rates is None or self._rates[0] is not limits:
            self._rates = (limits, RateLimiter(limits.new_at_once, limits.new_per_second))
        if self._rates[1].wait_s(address):
            self._on_refusal(address, f"more than {limits.new_per_second:g} new connections a second")
            return False
        return True

    def add(self, sock: socket.socket, host: str) -> Connection:
        """Add a new connection, which is a stranger's. Older ones give way to it where there are too many."""
        limits, now = self._limits(), time.monotonic()
        late = f"no good token within {limits.token_seconds:g} s"
        connection = Connection(sock, group_address(host), now + limits.token_seconds, late=late)
        self._open[sock.fileno()] = connection
        self._add_stranger(connection)
        if len(self._by_address[connection.address]) > limits.strangers_per_address:
            reason = f"more than {limits.strangers_per_address} connections without a token from this address"
            self._refuse(next(iter(self._by_address[connection.address])), reason)
        if len(self._strangers) > limits.strangers:
            self._refuse(self._choose_stranger(), f"more than {limits.strangers} connections without a token")
        if len(self._open) > min(limits.total, self._files):
            self._refuse(self._choose_any(connection), f"more than {min(limits.total, self._files)} connections")
        return connection

    def find(self, fileno: int) -> Connection | None:
        """Return the open connection of a socket."""
        return self._open.get(fileno)

    def remove(self, fileno: int) -> None:
        """Forget a connection whose socket is closed."""
        if connection := self._open.pop(fileno, None):
            self._release(connection)

    def note_request(self, connection: Connection, *, is_busy: bool) -> None:
        """Note that bytes came or a response went; `is_busy`: a request is being answered."""
        was_busy, connection.is_busy = connection.is_busy, is_busy
        if not connection.owner or connection.is_stuck:
            return
        limits, now = self._limits(), time.monotonic()
        if is_busy:
            connection.deadline = math.inf
        elif was_busy:
            connection.deadline, connection.late = now + limits.idle_seconds, ""
        elif now + limits.header_seconds < connection.deadline:
            connection.deadline = now + limits.header_seconds
            connection.late = f"a request without an end of its header within {limits.header_seconds:g} s"

    def note_reading(self, connection: Connection, *, is_stuck: bool) -> None:
        """Note that more waits for the peer than it may leave unread, or that it has read most of that."""
        connection.is_stuck = is_stuck
        if not connection.owner:
            return
        limit = self._limits().idle_seconds
        may_wait = connection.is_busy and not is_stuck
        connection.deadline = math.inf if may_wait else time.monotonic() + limit
        connection.late = f"did not read its answer within {limit:g} s" if is_stuck else ""

    def prove(self, connection: Connection, owner: str) -> None:
        """Note whose token a connection has shown. Idle ones of the same owner give way where there are too many."""
        if connection.owner == owner:
            return
        self._release(connection)
        connection.owner, connection.deadline = owner, math.inf
        same = self._by_owner.setdefault(owner, OrderedDict())
        same[connection] = None
        if len(same) > self._limits().per_token:
            oldest = next((one for one in same if not one.is_busy), next(iter(same)))
            self._refuse(oldest, f"more than {self._limits().per_token} connections with the token of {owner}")

    def doubt(self, connection: Connection) -> None:
        """Note that a connection has shown a token that is not good: it is a stranger's again."""
        if connection.owner:
            self._release(connection)
            limits = self._limits()
            connection.owner, connection.deadline = "", time.monotonic() + limits.token_seconds
            connection.late = f"no good token within {limits.token_seconds:g} s"
            self._add_stranger(connection)

    def close_overdue(self) -> None:
        """Close every connection whose deadline has passed."""
        now = time.monotonic()
        for connection in [one for one in self._open.values() if one.deadline < now]:
            if connection.late:
                self._refuse(connection, connection.late)
            else:
                self._close(connection)

    def _add_stranger(self, connection: Connection) -> None:
        self._strangers[connection] = None
        self._by_address.setdefault(connection.address, OrderedDict())[connection] = None

    def _choose_stranger(self) -> Connection:
        """Return the oldest stranger whose address has more than one; else the oldest."""
        oldest = islice(self._strangers, FAIR_SEARCH)
        return next((one for one in oldest if len(self._by_address[one.address]) > 1), next(iter(self._strangers)))

    def _choose_any(self, newest: Connection) -> Connection:
        """Return who gives way where all places are taken: a stranger, else an idle agent, else the newest."""
        strangers = (one for one in self._strangers if one is not newest)
        idle = (one for one in self._open.values() if one.owner and not one.is_busy and one.deadline < math.inf)
        return next(strangers, next(idle, newest))

    def _refuse(self, connection: Connection, reason: str) -> None:
        self._on_refusal(connection.address, reason)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        """End a connection at once. Its socket is closed, and removed here, when the event loop sees the end."""
        self._release(connection)
        connection.deadline = math.inf
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)

    def _release(self, connection: Connection) -> None:
        """Take a connection out of those that count against a limit of strangers or of a token."""
        self._strangers.pop(connection, None)
        for groups, name in ((self._by_address, connection.address), (self._by_owner, connection.owner)):
            if (group := groups.get(name)) is not None:
                group.pop(connection, None)
                if not group:
                    del groups[name]


def group_address(host: str) -> str:
    """Return the address that limits count: an IPv4 address, or the /64 network of an IPv6 address."""
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    return str(address.ipv4_mapped or ipaddress.IPv6Network((address, 64), strict=False))
