"""Reads bodies of HTTP requests within a limit, and refuses requests with the reason in plain words, as JSON."""

from __future__ import annotations

import asyncio
import contextlib
import math

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response


def make_refusal(status: int, reason: str, *, wait_s: float = 0.0) -> HTTPException:
    """Return the exception for a refused request, with its reason and when to try again."""
    headers = {"Retry-After": str(math.ceil(wait_s))} if wait_s else {}
    if status in (408, 413):  # the rest of the body is not wanted
        headers["Connection"] = "close"
    return HTTPException(status, reason, headers)


async def reply_refusal(_request: Request, error: Exception) -> Response:
    """Reply to a refused request."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def reply_internal_error(_request: Request, _error: Exception) -> Response:
    """Reply to an internal error, without its traceback."""
    return JSONResponse({"error": "internal error of assay; see its log"}, 500)


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
