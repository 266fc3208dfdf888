"""The BMC as an HTTP client: it fetches images and posts events, always directly, never through a proxy."""

from __future__ import annotations

import asyncio
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException

FETCH_DEADLINE_S, POST_DEADLINE_S = 10.0, 5.0

# Separate pools: a fetch that hangs must not delay changes of state, and a subscriber must not delay fetches.
_FETCHERS = ThreadPoolExecutor(32, thread_name_prefix="bmc-fetch")
_CALLERS = ThreadPoolExecutor(8, thread_name_prefix="bmc-call")
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class OutboundCallFailed(Exception):
    """The other side failed; the text is the reason."""


async def fetch_image(uri: str, limit: int) -> bytes:
    """GET an http or https URI. Raises OutboundCallFailed, also for more than `limit` bytes."""
    return await asyncio.get_running_loop().run_in_executor(_FETCHERS, _fetch, uri, limit)


async def post_event(uri: str, body: bytes) -> None:
    """POST a JSON document to an http or https URI. Raises OutboundCallFailed."""
    await asyncio.get_running_loop().run_in_executor(_CALLERS, _call, uri, body)


def _fetch(uri: str, limit: int) -> bytes:
    try:
        with _DIRECT.open(uri, timeout=FETCH_DEADLINE_S) as answer:
            content: bytes = answer.read(limit + 1)
    except (OSError, HTTPException, ValueError) as error:
        raise OutboundCallFailed(f"{type(error).__name__}: {error}") from None
    if len(content) > limit:
        raise OutboundCallFailed(f"it is larger than {limit} bytes")
    return content


def _call(uri: str, body: bytes) -> None:
    request = urllib.request.Request(  # noqa: S310 — subscriptions are http or https only
        uri, body, {"Content-Type": "application/json"}, method="POST"
    )
    try:
        _DIRECT.open(request, timeout=POST_DEADLINE_S).close()
    except (OSError, HTTPException, ValueError) as error:
        raise OutboundCallFailed(f"{type(error).__name__}: {error}") from None
