"""The server's certificate and key, which are read again after a change, while connections stay open."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from assay.model.errors import AssayError


class ListenConfig(NamedTuple):
    """Where to listen, and the TLS certificate (with its chain) and key, both PEM.

    `boot_only`: answer only machines that boot. Then plain HTTP is for any address: an iPXE may know nothing else.
    """

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    boot_only: bool = False


class ServerCertificate:
    """The TLS context to listen with. New handshakes get the certificate that was read last.

    `context` is None for plain HTTP. `report` shows a line to people. Raises AssayError as `make_tls_context` does.
    """

    def __init__(self, listen: ListenConfig, report: Callable[[str], None]) -> None:
        self._listen, self._report = listen, report
        self.context = self._newest = make_tls_context(listen)
        self._stamp = self._read_stamp()
        if self.context is not None:
            self.context.sni_callback = self._use_newest

    def reload(self) -> None:
        """Read certificate and key again if they changed. If they cannot be read, the ones before them stay in use."""
        if (stamp := self._read_stamp()) == self._stamp:
            return
        self._stamp = stamp
        try:
            self._newest = make_tls_context(self._listen)
            self._report("read the certificate again")
        except AssayError as error:
            self._report(f"goes on with the certificate that was read before: {error}")

    def _use_newest(self, handshake: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        if self._newest is not None:
            handshake.context = self._newest

    def _read_stamp(self) -> list[tuple[int, int]]:
        stamps = []
        for path in (self._listen.certificate, self._listen.key):
            if path is not None and path.exists():
                about = path.stat()
                stamps.append((about.st_mtime_ns, about.st_size))
        return stamps


def make_tls_context(listen: ListenConfig) -> ssl.SSLContext | None:
    """Return the TLS context, None for plain HTTP, which carries tokens on loopback only.

    Raises AssayError for plain HTTP elsewhere, or a certificate or key that cannot be read.
    """
    if listen.certificate is None:
        if not listen.boot_only and not ipaddress.ip_address(listen.host).is_loopback:
            fix = "give --cert and --key, or listen on 127.0.0.1"
            raise AssayError("tokens do not travel in the clear: plain HTTP is for loopback only", fix=fix)
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(listen.certificate, listen.key)
    except (OSError, ssl.SSLError) as error:
        fix = f"give files that can be read: {error.strerror}"
        if isinstance(error, ssl.SSLError):
            fix = "give PEM files: the certificate with its chain, and the key that belongs to it, without a passphrase"
        raise AssayError("no certificate and key can be read", where=str(listen.certificate), fix=fix) from None
    return context
