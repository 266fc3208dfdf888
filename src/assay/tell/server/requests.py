"""Reads bodies of HTTP requests within a limit, and refuses requests in plain words, as problems of RFC 9457.

Refusals are kept: who was refused, from which address, why, and how often. Bounded, and without any token.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from assay.model.specs.serving import ProxyTrust


def is_trusted_proxy(proxy: ProxyTrust | None, address: str) -> bool:
    """Whether the headers of a connection from this address count."""
    if proxy is None or not address:
        return False
    try:
        client = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    plain = getattr(client, "ipv4_mapped", None) or client
    return any(plain in ipaddress.ip_network(network) for network in proxy.addresses)


def make_refusal(status: int, reason: str, *, wait_s: float = 0.0) -> HTTPException:
    """Return the exception for a refused request, with its reason and when to try again."""
    headers = {"Retry-After": str(math.ceil(wait_s))} if wait_s else {}
    if status in (408, 413):  # the rest of the body is not wanted
        headers["Connection"] = "close"
    return HTTPException(status, reason, headers)


async def reply_refusal(_request: Request, error: Exception) -> Response:
    """Reply to a refused request with a problem; its `error` repeats the detail for agents of earlier versions."""
    refusal = read_refusal(error)
    status, detail = refusal.status_code, refusal.detail
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse({**content, "error": detail}, status, refusal.headers, "application/problem+json")


def read_refusal(error: Exception) -> HTTPException:
    """Return why a request was refused; of an error of assay's own, nothing that its traceback says."""
    return error if isinstance(error, HTTPException) else make_refusal(500, "internal error of assay; see its log")


async def read_body(request: Request, limit: int, timeout_s: float) -> bytes:
    """Return the body. Raises a refusal (HTTPException) if it has more than `limit` bytes, or comes too slowly."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > limit:
        raise make_refusal(413, f"a body of more than {limit} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for piece in request.stream():
                body += piece
                if len(body) > limit:
                    raise make_refusal(413, f"a body of more than {limit} bytes")
    except ClientDisconnect:
        raise make_refusal(400, "the body ended early") from None
    except TimeoutError:
        raise make_refusal(408, f"the body did not come within {timeout_s:g} s") from None
    return bytes(body)


async def drop_body(request: Request, limit: int, timeout_s: float) -> None:
    """Let the peer send its body, and keep nothing of it: a reply in the middle of it could be lost."""
    dropped = 0
    with contextlib.suppress(ClientDisconnect, TimeoutError):
        async with asyncio.timeout(timeout_s):
            async for piece in request.stream():
                dropped += len(piece)
                if dropped > limit:
                    return


MAX_FILE_BYTES = 1024 * 1024
MAX_TEXT = 100
MAX_KINDS = 200
"""Different refusals that are written one by one in one minute. More are counted in one line."""
PERIOD_S = 60.0


class RefusalKind(NamedTuple):
    """Refusals that are alike: the address, the node or Monitoring that it claimed to be, and the reason."""

    address: str
    claims: str
    reason: str


OTHERS = RefusalKind("", "", "further refusals in this minute")


@dataclass
class RefusalLog:
    """One JSON object a line: `at`, `address`, `claims`, `reason`, `count`. The file before it ends with `.1`.

    The first refusal of a kind is written at once, and the number of its repetitions each minute. `path` takes at most
    MAX_FILE_BYTES. `report` gets an error, once, if it cannot be written.
    """

    path: Path
    report: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self._counts: dict[RefusalKind, int] = {}
        self._since = time.monotonic()
        self._has_failed = False

    def record(self, address: str, reason: str, claims: str = "") -> None:
        """Record a refusal."""
        self.flush()
        kind = RefusalKind(address, claims[:MAX_TEXT], reason[:MAX_TEXT])
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = OTHERS
        if kind in self._counts or kind is OTHERS:
            self._counts[kind] = self._counts.get(kind, 0) + 1
        else:
            self._counts[kind] = 0
            self._write([(kind, 1)])

    def flush(self, *, now: bool = False) -> None:
        """Write the numbers of repetitions if the minute is over, or `now`."""
        if now or time.monotonic() - self._since >= PERIOD_S:
            repeated = [(kind, count) for kind, count in self._counts.items() if count]
            self._counts, self._since = {}, time.monotonic()
            if repeated:
                self._write(repeated)

    def _write(self, refusals: list[tuple[RefusalKind, int]]) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        lines = [json.dumps({"at": at, **kind._asdict(), "count": count}) + "\n" for kind, count in refusals]
        try:
            if self.path.exists() and self.path.stat().st_size > MAX_FILE_BYTES:
                self.path.replace(self.path.with_name(f"{self.path.name}.1"))
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "a", encoding="ascii") as file:
                file.write("".join(lines))
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                self.report(f"{self.path}: refusals cannot be recorded: {error.strerror}")
