"""The line to one BMC (under the redfish library) or other service: verified, shared trust, and cut on the deadline.

The library's own limits are not enough for a pass: by default it retries ten times with a pause (`max_retry`),
its timeout starts anew with every piece received, so a BMC that sends a byte a second outlives any of it, and
without a `cafile` it verifies nothing. It also logs session tokens at level DEBUG.

Whom we believe to be a node's BMC: the holder of a certificate of one authority, or of one very certificate.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event, Timer
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from assay.model.node import Node

logging.getLogger("redfish.rest.v1").addFilter(lambda _: False)  # `disabled` is undone by whoever configures logging


@lru_cache(maxsize=64)
def make_ca_context(ca: Path | None) -> ssl.SSLContext:
    """Return the TLS context that trusts `ca` alone, or the system's authorities where none is named.

    Raises OSError (`ssl.SSLError` among them) where the file holds no certificate.
    """
    return ssl.create_default_context(cafile=None if ca is None else str(ca))


@lru_cache(maxsize=1)
def make_pinned_context() -> ssl.SSLContext:
    """Return the TLS context of lines that accept one certificate by its fingerprint, whoever signed it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class DeadlineHttpAdapter(HTTPAdapter):
    """The connections of one client to one service; `cut` ends whatever they wait for, from any thread.

    `fingerprint` is the SHA-256 of the only certificate that they accept, where trust goes by that.
    """

    def __init__(self, context: ssl.SSLContext, fingerprint: str = "") -> None:
        self._context, self._fingerprint = context, fingerprint
        self._sockets: list[socket.socket] = []
        self.own_address = ""
        """Our own address as the far end of the newest connection sees it."""
        super().__init__(pool_connections=1, pool_maxsize=1, max_retries=0)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make connections that use our trust and can be found again."""
        super().init_poolmanager(*arguments, ssl_context=self._context, **options)
        self.poolmanager.pool_classes_by_scheme = _pools(self._connected)

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:  # noqa: ARG002 — the signature is requests'
        """Leave trust to our context: nothing is loaded beside it, and verifying cannot be turned off."""
        return super().build_connection_pool_key_attributes(request, True, cert)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:  # noqa: ARG002 — the signature is requests'
        """Require a certificate that our context accepts, or the one that is pinned."""
        conn.cert_reqs = "CERT_NONE" if self._fingerprint else "CERT_REQUIRED"
        conn.assert_fingerprint = self._fingerprint or None

    def cut(self) -> None:
        """Shut every connection; a thread that waits on one gets an error at once."""
        for line in self._sockets:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(line, socket.SHUT_RDWR)

    def _connected(self, line: socket.socket) -> None:
        self._sockets.append(line)
        self.own_address = str(line.getsockname()[0])

    @contextlib.contextmanager
    def cut_after(self, seconds: float) -> Iterator[Event]:
        """Cut the line when the block takes longer than `seconds`, and set what this yields before that.

        A broken line says by it whether it was cut: on a virtual machine a timer may end before a clock says so.
        """
        late = Event()

        def cut() -> None:
            late.set()
            self.cut()

        timer = Timer(min(max(seconds, 0.0), 86400.0), cut)
        timer.daemon = True
        timer.start()
        try:
            yield late
        finally:
            timer.cancel()
            timer.join()  # what has begun to cut would else cut the next request


def _pools(connected: Callable[[socket.socket], None]) -> dict[str, type[HTTPConnectionPool]]:
    """Return pools whose connections are told of. Plain HTTP is for services on this machine."""

    class Secure(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            connected(self.sock)

    class Plain(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            connected(self.sock)

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    return {"https": SecurePool, "http": PlainPool}


@dataclass(frozen=True)
class CertificateTrust:
    """`ca` is a file of authorities; `fingerprint` the SHA-256 of the one certificate that is accepted (64 digits).

    With neither, the system's authorities decide. A pin is checked right after the handshake, before a byte is sent.
    """

    ca: Path | None = None
    fingerprint: str = ""

    @property
    def description(self) -> str:
        """Who decides, in words."""
        if self.fingerprint:
            return "bmc_fingerprint"
        return f"bmc_ca {self.ca.name}" if self.ca else "the system's authorities"

    def context(self) -> ssl.SSLContext:
        """Return the TLS context. Raises OSError where the file of authorities cannot be used."""
        return make_pinned_context() if self.fingerprint else make_ca_context(self.ca)


def read_bmc_trust(node: Node, root: Path) -> CertificateTrust:
    """Return whom the inventory trusts to be the BMC of `node`; relative paths start at `root`."""
    if pin := node.settings.bmc_fingerprint:
        return CertificateTrust(fingerprint=pin.removeprefix("sha256:").replace(":", "").lower())
    ca = node.settings.bmc_ca
    return CertificateTrust(ca=root / ca if ca else None)
