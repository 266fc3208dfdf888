"""Which node speaks: a bearer token, compared with what the inventory says of that node.

How often somebody may ask: so many times at once, then so many a second.
"""

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
    """What was left at a time."""

    left: float
    at: float


class RateLimiter:
    """Counts by name; the names asked least lately are forgotten beyond `most`."""

    def __init__(self, at_once: int, per_second: float, most: int = 20_000) -> None:
        self._at_once, self._per_second, self._most = at_once, per_second, most
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def wait_s(self, name: str) -> float:
        """Take one, and return 0; or return the seconds until there is one, and take none."""
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
    """The digest of each node's token, followed to where it is, and kept for a while."""

    def __init__(self, root: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        self._root, self._tell = root, tell
        self._kept: dict[str, tuple[float, str]] = {}

    async def is_valid_for(self, node: Node | None, shown: str) -> bool:
        """Whether this token is the node's. One that is not is looked up anew: it may have been changed."""
        if node is None:
            return False
        given = hashlib.sha256(shown.encode()).hexdigest()
        if self._age(node) < TOKEN_CACHE_S and _equal_digests(given, self._kept[node.name][1]):
            return True
        if self._age(node) < TOKEN_RETRY_S:
            return False
        digest = await run_in_threadpool(self._found, node)
        self._kept[node.name] = (time.monotonic(), digest)
        return _equal_digests(given, digest)

    def _age(self, node: Node) -> float:
        kept = self._kept.get(node.name)
        return time.monotonic() - kept[0] if kept else TOKEN_CACHE_S

    def _found(self, node: Node) -> str:
        reference = node.settings.agent_token
        if reference is None:
            return ""
        try:
            return reference.sha256 or token_digest(read_secret(reference, self._root))
        except (AssayError, ValueError) as error:
            self._tell(f"{node.name} agent_token: {error}")
            return ""


def read_bearer_token(request: Request) -> str:
    """Return the token that a request shows, "" for none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _equal_digests(given: str, wanted: str) -> bool:
    return bool(wanted) and hmac.compare_digest(given, wanted)


def token_digest(text: str) -> str:
    """Return the SHA-256 that a reference leads to, of the token or as it stands there; "" where nothing does."""
    if text.startswith(DIGEST_PREFIX):
        return text.removeprefix(DIGEST_PREFIX).strip().lower()
    return hashlib.sha256(text.encode()).hexdigest() if text else ""
