"""Authenticates agents by bearer token, and limits the rate of requests."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from assay.fleet.secret_lookup import read_secret
from assay.model.errors import AssayError
from assay.model.node import Node


class TokenBucket(NamedTuple):
    """The tokens that were left at a time."""

    left: float
    at: float


class RateLimiter:
    """A token bucket for each of at most `most` names: `at_once` requests in a burst, then `per_second`."""

    def __init__(self, at_once: int, per_second: float, most: int = 20_000) -> None:
        self._at_once, self._per_second, self._most = at_once, per_second, most
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def wait_s(self, name: str) -> float:
        """Count one request and return 0; or return the seconds until the next one is allowed, and count nothing."""
        now = time.monotonic()
        bucket = self._buckets.pop(name, TokenBucket(self._at_once, now))
        left = min(self._at_once, bucket.left + (now - bucket.at) * self._per_second)
        enough = left >= 1.0
        self._buckets[name] = TokenBucket(left - 1.0 if enough else left, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if enough else (1.0 - left) / self._per_second


TOKEN_CACHE_S = 300.0
TOKEN_RETRY_S = 1.0
DIGEST_PREFIX = "sha256:"


class AgentTokens:
    """The digest of each node's token, read from where its reference leads, and cached."""

    def __init__(self, root: Path, report: Callable[[str], None] = lambda _: None) -> None:
        self._root, self._report = root, report
        self._cached: dict[str, tuple[float, str]] = {}

    async def is_valid_for(self, node: Node | None, token: str) -> bool:
        """Whether a token is the node's. On a mismatch, the reference is read again: the token may have changed."""
        if node is None:
            return False
        presented = hashlib.sha256(token.encode()).hexdigest()
        if self._age_s(node) < TOKEN_CACHE_S and _equal_digests(presented, self._cached[node.name][1]):
            return True
        if self._age_s(node) < TOKEN_RETRY_S:
            return False
        digest = await run_in_threadpool(self._read_digest, node)
        self._cached[node.name] = (time.monotonic(), digest)
        return _equal_digests(presented, digest)

    def _age_s(self, node: Node) -> float:
        cached = self._cached.get(node.name)
        return time.monotonic() - cached[0] if cached else TOKEN_CACHE_S

    def _read_digest(self, node: Node) -> str:
        reference = node.settings.agent_token
        if reference is None:
            return ""
        try:
            return reference.sha256 or token_digest(read_secret(reference, self._root))
        except (AssayError, ValueError) as error:
            self._report(f"{node.name} agent_token: {error}")
            return ""


def read_bearer_token(request: Request) -> str:
    """Return the bearer token of a request, "" without one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _equal_digests(presented: str, expected: str) -> bool:
    return bool(expected) and hmac.compare_digest(presented, expected)


def token_digest(text: str) -> str:
    """Return the SHA-256 of a token, or the one in a text `sha256:DIGEST`; "" for an empty text."""
    if text.startswith(DIGEST_PREFIX):
        return text.removeprefix(DIGEST_PREFIX).strip().lower()
    return hashlib.sha256(text.encode()).hexdigest() if text else ""
