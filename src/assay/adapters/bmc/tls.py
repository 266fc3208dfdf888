"""HTTPS connections to BMCs and other services: verified by a CA or a pinned certificate, and cut on a deadline.

They replace those of the redfish library. That retries ten times by default, its timeout restarts with each piece
received, it verifies nothing without a `cafile`, and it logs session tokens at level DEBUG.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import logging
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from threading import Condition, Event, Lock, Thread, get_ident
from typing import Any, cast

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from assay.model.node import Node

LONGEST_S = 86400.0


class RequestDeadline:
    """One deadline: `cut` is called when it passes, unless it was met before."""

    def __init__(self, cut: Callable[[], None]) -> None:
        self._lock = Lock()
        self._cut = cut
        self.is_over = False

    def meet(self) -> None:
        """End it. Afterwards no cut is in progress, nor will one come."""
        with self._lock:
            self.is_over = True
            self._cut = lambda: None  # it may stay in the queue: let go of the connection

    def pass_by(self) -> None:
        """Cut, unless it is over."""
        with self._lock:
            if not self.is_over:
                self.is_over = True
                self._cut()


class DeadlineThread:
    """The one thread that cuts what takes too long, instead of a timer's thread for each request.

    It starts with the first deadline, and lives as long as the process. A deadline that was met stays in the queue
    until it would have passed, so meeting it wakes nobody.
    """

    def __init__(self) -> None:
        self._changed, self._numbers = Condition(Lock()), count()
        self._queue: list[tuple[float, int, RequestDeadline]] = []
        self._is_started = False

    def start(self, seconds: float, cut: Callable[[], None]) -> RequestDeadline:
        """Return a deadline that passes in so many seconds, a day at the most."""
        deadline, due = RequestDeadline(cut), time.monotonic() + min(max(seconds, 0.0), LONGEST_S)
        with self._changed:
            heapq.heappush(self._queue, (due, next(self._numbers), deadline))
            if not self._is_started:
                self._is_started = True
                Thread(target=self._run, name="request deadlines", daemon=True).start()
            elif self._queue[0][2] is deadline:
                self._changed.notify()
        return deadline

    def _run(self) -> None:
        while True:
            self._take_next().pass_by()

    def _take_next(self) -> RequestDeadline:
        """Wait for the next deadline that passes."""
        with self._changed:
            while True:
                while self._queue and self._queue[0][2].is_over:
                    heapq.heappop(self._queue)
                left = self._queue[0][0] - time.monotonic() if self._queue else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._queue)[2]
                self._changed.wait(left)


DEADLINES = DeadlineThread()
os.register_at_fork(after_in_child=DEADLINES.__init__)  # type: ignore[misc] # no thread of the parent lives in the child


logging.getLogger("redfish.rest.v1").addFilter(lambda _: False)  # a filter: configuring logging would reset `disabled`


@lru_cache(maxsize=64)
def make_ca_context(ca: Path | None) -> ssl.SSLContext:
    """Return the TLS context that trusts the CA certificates in the file `ca`, or the system's for None.

    Raises OSError where the file cannot be read, ssl.SSLError (an OSError) where it holds no certificate.
    """
    return ssl.create_default_context(cafile=None if ca is None else str(ca))


@lru_cache(maxsize=1)
def make_pinned_context() -> ssl.SSLContext:
    """Return the TLS context for a pinned certificate: the connection then checks the fingerprint, not the signer."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def format_url_host(address: str) -> str:
    """Return an IP address or host name as a URL writes it: an IPv6 address in brackets."""
    return f"[{address}]" if ":" in address else address


class CertificateNotPinned(ssl.SSLError):
    """The service shows another certificate than the pinned one; `shown` is its SHA-256."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"the pinned certificate is another one than {shown}")
        self.shown = shown


def require_pinned(certificate: bytes, fingerprint: str) -> None:
    """Raise CertificateNotPinned unless a certificate (DER) or its public key has this SHA-256.

    Who pins the key accepts each certificate that is renewed for it: only who has the private key can show one.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from cryptography.x509 import load_der_x509_certificate

    shown = hashlib.sha256(certificate).hexdigest()
    if shown == fingerprint:
        return
    key = load_der_x509_certificate(certificate).public_key()
    if hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest() != fingerprint:
        raise CertificateNotPinned(f"sha256:{shown}")


class DeadlineHttpAdapter(HTTPAdapter):
    """The connections of one client to one service, for `at_once` threads. A request that takes too long is cut.

    `fingerprint` is the SHA-256 of the only certificate to accept, or of its key; "" where the context decides.
    """

    def __init__(self, context: ssl.SSLContext, fingerprint: str = "", at_once: int = 1) -> None:
        self._context, self._fingerprint = context, fingerprint
        self._sockets: dict[int, socket.socket] = {}
        self._limits: dict[int, float] = {}
        self.own_address = ""
        """This machine's address on the newest connection."""
        self.shown: tuple[str, bytes] = ("", b"")
        """The version of TLS on the newest connection, and the certificate that the service showed (DER)."""
        super().__init__(pool_connections=1, pool_maxsize=at_once, max_retries=0)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make pools whose connections use our TLS context and are recorded."""
        super().init_poolmanager(*arguments, ssl_context=self._context, **options)
        self.poolmanager.pool_classes_by_scheme = _make_pools(self._record_use, self._fingerprint)

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:  # noqa: ARG002 — the signature is requests'
        """Use our TLS context only: requests loads no CAs of its own, and cannot turn verification off."""
        return super().build_connection_pool_key_attributes(request, True, cert)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:  # noqa: ARG002 — the signature is requests'
        """Require a certificate that our context accepts, or the pinned one."""
        conn.cert_reqs = "CERT_NONE" if self._fingerprint else "CERT_REQUIRED"

    def send(self, request: Any, stream: bool = False, timeout: Any = None, *arguments: Any, **options: Any) -> Any:
        """Send a request. It connects within the seconds of `cut_after`: redfish names no limit for a login."""
        limit = timeout if timeout is not None else self._limits.get(get_ident())
        return super().send(request, stream, limit, *arguments, **options)

    def cut(self, thread: int) -> None:
        """Shut the connection that a thread uses; it gets an error at once if it waits there."""
        if thread in self._sockets:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._sockets[thread], socket.SHUT_RDWR)

    @property
    def has_sent(self) -> bool:
        """Whether this thread's request had a connection, so that the service may have read it."""
        return get_ident() in self._sockets

    def _record_use(self, used: socket.socket) -> None:
        self._sockets[get_ident()] = used
        self.own_address = str(used.getsockname()[0])
        if isinstance(used, ssl.SSLSocket):
            self.shown = (used.version() or "", used.getpeercert(binary_form=True) or b"")

    @contextlib.contextmanager
    def cut_after(self, seconds: float) -> Iterator[Event]:
        """Cut this thread's request when the block takes longer than `seconds`; yield an event that is set before.

        The event tells a cut from other errors. Clocks cannot: on a virtual machine a wait may end before they say so.
        """
        late, thread = Event(), get_ident()
        self._sockets.pop(thread, None)  # another thread may use it now
        self._limits[thread] = seconds

        def cut() -> None:
            late.set()
            self.cut(thread)

        deadline = DEADLINES.start(seconds, cut)
        try:
            yield late
        finally:
            deadline.meet()  # waits for a cut in progress, which would otherwise hit the next request
            self._limits.pop(thread, None)


def _make_pools(on_use: Callable[[socket.socket], None], fingerprint: str) -> dict[str, type[HTTPConnectionPool]]:
    """Return pool classes whose connections call `on_use` in the thread that uses them. HTTP is for this machine."""

    class Secure(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            if fingerprint:
                require_pinned(cast(ssl.SSLSocket, self.sock).getpeercert(binary_form=True) or b"", fingerprint)
                self.is_verified = True

        def request(self, *arguments: Any, **options: Any) -> None:
            on_use(_connect(self))
            super().request(*arguments, **options)

    class Plain(HTTPConnection):
        def request(self, *arguments: Any, **options: Any) -> None:
            on_use(_connect(self))
            super().request(*arguments, **options)

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    return {"https": SecurePool, "http": PlainPool}


def _connect(connection: HTTPConnection) -> socket.socket:
    """Return the socket of a connection, which is opened if it is not."""
    if connection.sock is None:
        connection.connect()
    return connection.sock


def normalize_fingerprint(text: str) -> str:
    """Turn `sha256:AB:CD:…` into the 64 lower-case digits of `CertificateTrust.fingerprint`."""
    return text.removeprefix("sha256:").replace(":", "").lower()


@dataclass(frozen=True)
class CertificateTrust:
    """How a service proves who it is: `ca` is a PEM file, `fingerprint` the SHA-256 of its certificate or its key.

    With neither, the system's CAs decide. A fingerprint has 64 hexadecimal digits and is checked right after the
    handshake, before a request is sent.
    """

    ca: Path | None = None
    fingerprint: str = ""

    @property
    def description(self) -> str:
        """What decides on the certificate, in words."""
        if self.fingerprint:
            return "bmc_fingerprint"
        return f"bmc_ca {self.ca.name}" if self.ca else "the system's authorities"

    def context(self) -> ssl.SSLContext:
        """Return the TLS context. Raises OSError where the PEM file cannot be used."""
        return make_pinned_context() if self.fingerprint else make_ca_context(self.ca)


def read_bmc_trust(node: Node, root: Path) -> CertificateTrust:
    """Return the trust that the inventory declares for the BMC of `node`; a relative `bmc_ca` starts at `root`."""
    if pin := node.settings.bmc_fingerprint:
        return CertificateTrust(fingerprint=normalize_fingerprint(pin))
    ca = node.settings.bmc_ca
    return CertificateTrust(ca=root / ca if ca else None)
