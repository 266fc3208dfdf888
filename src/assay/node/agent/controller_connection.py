"""The connection to the controller: HTTPS, verified by a CA's certificates or by one pinned certificate.

Plain HTTP is allowed to this machine only. The token is read for each request, so that it can be changed; no message
shows it.
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
    """The controller's answer: HTTP status, seconds of `Retry-After` (0 for none), JSON object ({} for none)."""

    status: int
    wait_s: float
    document: dict[str, Any]


class ControllerUnreachable(Exception):
    """The controller does not answer, or its certificate is not trusted; the text says why."""


class ControllerConnection:
    """One persistent connection to `server`.

    `ca` is a PEM file ("": the system's certificates), `pin` the SHA-256 of one certificate ("": none). Raises
    ValueError for an address, a PEM file or a fingerprint that cannot be used.
    """

    def __init__(self, server: str, token: Callable[[], str], *, ca: str = "", pin: str = "") -> None:
        url = urlsplit(server)
        if url.scheme not in ("https", "http") or not url.hostname:
            raise ValueError(f"{server!r} is not the address of a controller; write https://HOST[:PORT]")
        if url.scheme == "http" and url.hostname not in LOOPBACK:
            raise ValueError("plain http is allowed to this machine only; use https")
        self._secure = url.scheme == "https"
        self._host = url.hostname
        self._port = url.port
        self._path = url.path.rstrip("/")
        self._token = token
        self._ca = ca
        self._pin = _normalize_fingerprint(pin)
        self._context: ssl.SSLContext | None = None
        self.read_certificates_again()
        self._connection: http.client.HTTPConnection | None = None

    def read_certificates_again(self) -> None:
        """Read the certificates to trust; connections from now on are verified by them. Raises ValueError."""
        if self._secure:
            self._context = _make_tls_context(self._ca, pinned=bool(self._pin))
        self._is_verified = False

    def post(self, path: str, body: bytes) -> ControllerResponse:
        """Send a JSON body. A persistent connection that the controller has closed is opened again, once.

        Raises ControllerUnreachable.
        """
        is_reused = self._connection is not None
        try:
            return self._post(path, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            if not (is_reused and isinstance(error, ConnectionError)):
                raise ControllerUnreachable(self._describe_error(error)) from None
        try:
            return self._post(path, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise ControllerUnreachable(self._describe_error(error)) from None

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, path: str, body: bytes) -> ControllerResponse:
        if not self._is_verified:
            self.close()
            self._is_verified = True
        if self._connection is None:
            self._connection = self._connect()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token()}"}
        self._connection.request("POST", self._path + path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read(MAX_RESPONSE_BYTES + 1)
        if len(content) > MAX_RESPONSE_BYTES:
            raise ValueError("an answer of more than 1 MiB")
        retry_after = answer.headers.get("Retry-After", "")
        return ControllerResponse(
            answer.status, float(retry_after) if retry_after.isdecimal() else 0.0, _parse_object(content)
        )

    def _connect(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT_S, context=self._context)
        connection.connect()
        certificate = connection.sock.getpeercert(binary_form=True) or b""
        if self._pin and not hmac.compare_digest(hashlib.sha256(certificate).hexdigest(), self._pin):
            connection.close()
            raise ssl.SSLError(0, "its certificate is not the pinned one")
        return connection

    def _describe_error(self, error: Exception) -> str:
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {error.verify_message}"
        if isinstance(error, ConnectionResetError | BrokenPipeError):  # http.client.RemoteDisconnected is the first
            return "it hung up without an answer" + ("" if self._secure else "; does it want https?")
        if isinstance(error, TimeoutError):
            return f"no answer within {TIMEOUT_S:g} s"
        return str(getattr(error, "strerror", None) or error) or type(error).__name__


def _make_tls_context(ca: str, *, pinned: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        reason = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise ValueError(f"{ca}: {reason}") from None
    if pinned:  # the pin is stricter than names and CAs; it is compared before anything is sent
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _normalize_fingerprint(pin: str) -> str:
    plain = pin.rpartition("=")[2].removeprefix("sha256:").replace(":", "").lower()  # openssl prints `Fingerprint=`
    if pin and (len(plain) != 64 or set(plain) - set("0123456789abcdef")):
        raise ValueError("a fingerprint is a SHA-256: 64 hexadecimal digits, with or without colons")
    return plain


def _parse_object(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
