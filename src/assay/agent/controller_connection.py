"""The line to the controller: HTTPS, verified by an authority's certificates or by one pinned certificate.

Plain HTTP goes to this machine only. The token is read anew for each connection, so that it can be changed under us;
it is never said.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import ssl
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

MAX_RESPONSE_BYTES = 1024 * 1024
TIMEOUT_S = 15.0
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class ControllerResponse(NamedTuple):
    """What the controller said: HTTP status, seconds to wait where it asked for that, its JSON object ({} for none)."""

    status: int
    wait_s: float
    document: dict[str, Any]


class ControllerUnreachable(Exception):
    """The controller did not answer, or is not who it should be; the text says why, in plain words."""


class ControllerConnection:
    """One kept connection to `server`. `ca` is a PEM file ("": the system's), `pin` the SHA-256 of one certificate."""

    def __init__(self, server: str, token: Callable[[], str], *, ca: str = "", pin: str = "") -> None:
        at = urlsplit(server)
        if at.scheme not in ("https", "http") or not at.hostname:
            raise ValueError(f"{server!r} is no address of a controller; it reads https://HOST[:PORT]")
        if at.scheme == "http" and at.hostname not in LOOPBACK:
            raise ValueError("plain http goes to this machine only; use https")
        self._secure, self._host, self._port = at.scheme == "https", at.hostname, at.port
        self._path, self._token = at.path.rstrip("/"), token
        self._pin = _normalize_fingerprint(pin)
        self._context = _context(ca, pinned=bool(pin)) if self._secure else None
        self._connection: http.client.HTTPConnection | None = None

    def post(self, path: str, body: bytes) -> ControllerResponse:
        """Send a JSON body. Raises Unreachable. A kept connection that the far end had closed is made anew once."""
        kept = self._connection is not None
        try:
            return self._post(path, body)
        except (ConnectionError, http.client.RemoteDisconnected, BrokenPipeError) as error:
            self.close()
            if not kept:
                raise ControllerUnreachable(_describe_error(error)) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise ControllerUnreachable(_describe_error(error)) from None
        try:
            return self._post(path, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise ControllerUnreachable(_describe_error(error)) from None

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, path: str, body: bytes) -> ControllerResponse:
        if self._connection is None:
            self._connection = self._connected()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token()}"}
        self._connection.request("POST", self._path + path, body, headers)
        answer = self._connection.getresponse()
        said = answer.read(MAX_RESPONSE_BYTES + 1)
        if len(said) > MAX_RESPONSE_BYTES:
            raise ValueError("an answer of more than 1 MiB")
        return ControllerResponse(answer.status, _seconds(answer.headers.get("Retry-After", "")), _object(said))

    def _connected(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT_S, context=self._context)
        connection.connect()
        if self._pin and not hmac.compare_digest(_certificate_digest(connection), self._pin):
            connection.close()
            raise ssl.SSLError(0, "its certificate is not the pinned one")
        return connection


def _context(ca: str, *, pinned: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        why = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise ValueError(f"{ca}: {why}") from None
    if pinned:  # the pin says more than any name or authority; it is compared before anything is sent
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _certificate_digest(connection: http.client.HTTPSConnection) -> str:
    certificate = connection.sock.getpeercert(binary_form=True)
    return hashlib.sha256(certificate or b"").hexdigest()


def _normalize_fingerprint(pin: str) -> str:
    plain = pin.rpartition("=")[2].removeprefix("sha256:").replace(":", "").lower()  # openssl says `Fingerprint=`
    if pin and (len(plain) != 64 or set(plain) - set("0123456789abcdef")):
        raise ValueError("a fingerprint is a SHA-256: 64 hexadecimal digits, with or without colons")
    return plain


def _describe_error(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, http.client.RemoteDisconnected):
        return "it hung up without an answer; does it want https?"
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_S:g} s"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0


def _object(said: bytes) -> dict[str, Any]:
    try:
        document = json.loads(said or b"{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
