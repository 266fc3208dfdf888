"""Authenticates agents by bearer token, and limits the rate of requests."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from assay.declare.secret_lookup import forget_command_answers, read_secret
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.credential_reference import TokenReference

COMMAND_CACHE_S = 300.0
FILE_CACHE_S = 2.0
TOKEN_RETRY_S = 1.0
DIGEST_PREFIX = "sha256:"
READER_TOKEN = "reader-token"  # noqa: S105 — the name of a file


class TokenBucket(NamedTuple):
    """The tokens that were left at a time."""

    left: float
    at: float


class RateLimiter:
    """A token bucket for each of at most `most` names: `at_once` in a burst, then `per_second`."""

    def __init__(self, at_once: float, per_second: float, most: int = 20_000) -> None:
        self._at_once, self._per_second, self._most = at_once, per_second, most
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def wait_s(self, name: str) -> float:
        """Count one request and return 0; or return the seconds until the next one is allowed, and count nothing."""
        left = self._count_left(name)
        enough = left >= 1.0
        self._keep(name, left - 1.0 if enough else left)
        return 0.0 if enough else (1.0 - left) / self._per_second

    def charge(self, name: str, cost: float) -> None:
        """Take what a request has cost, even if not as much is left."""
        self._keep(name, self._count_left(name) - cost)

    def overdrawn_s(self, name: str) -> float:
        """Return the seconds until what was charged is paid back, 0 if something is left."""
        left = self._count_left(name)
        return 0.0 if left > 0 else (1.0 - left) / self._per_second

    def _count_left(self, name: str) -> float:
        now = time.monotonic()
        bucket = self._buckets.get(name)
        return min(self._at_once, bucket.left + (now - bucket.at) * self._per_second) if bucket else self._at_once

    def _keep(self, name: str, left: float) -> None:
        self._buckets[name] = TokenBucket(left, time.monotonic())
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)


class CachedDigests(NamedTuple):
    """The digests of a name's tokens: when they were read, and from which references."""

    read_at: float
    references: tuple[TokenReference, ...]
    digests: tuple[str, ...]


class AgentTokens:
    """The digests of each node's tokens. Those that stand in the inventory are never cached, those of a file briefly.

    References that were changed or removed in the inventory are not used again.
    """

    def __init__(self, root: Path, report: Callable[[str], None] = lambda _: None) -> None:
        self._root, self._report = root, report
        self._cached: dict[str, CachedDigests] = {}

    async def find_refusal(self, node: Node | None, token: str) -> str:
        """Return why a token is not the node's, "" if it is. On a mismatch, secrets are read again: one may be new."""
        if node is None:
            return "the inventory has no such node"
        if not (references := node.settings.agent_token):
            return "the node has no agent_token"
        if not token:
            return "no token"
        return "" if await self.is_token_of(node.name, references, token) else "not a token of the node"

    async def is_token_of(self, name: str, references: Sequence[TokenReference], token: str) -> bool:
        """Return whether a token is one of those that belong to a name."""
        presented = hashlib.sha256(token.encode()).hexdigest()
        if any(_equal_digests(presented, reference.sha256) for reference in references):
            return True
        secrets = tuple(reference for reference in references if not reference.sha256)
        return bool(secrets) and await self._is_one_of(name, secrets, presented)

    def forget(self) -> None:
        """Read every secret again when it is next needed."""
        self._cached.clear()
        forget_command_answers()

    async def _is_one_of(self, name: str, references: tuple[TokenReference, ...], presented: str) -> bool:
        cached, now = self._cached.get(name), time.monotonic()
        if cached is not None and cached.references == references:
            are_files = any(not (reference.command or reference.vault) for reference in references)
            fresh_s = FILE_CACHE_S if are_files else COMMAND_CACHE_S
            if now - cached.read_at < fresh_s and _is_any(presented, cached.digests):
                return True
            if now - cached.read_at < TOKEN_RETRY_S:
                return False
        digests = await run_in_threadpool(lambda: tuple(self._read_digest(name, reference) for reference in references))
        self._cached[name] = CachedDigests(now, references, digests)
        return _is_any(presented, digests)

    def _read_digest(self, name: str, reference: TokenReference) -> str:
        try:
            return token_digest(read_secret(reference, self._root))
        except (AssayError, ValueError) as error:
            self._report(f"{name}: {error}")
            return ""


def read_bearer_token(request: Request) -> str:
    """Return the bearer token of a request, "" without one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def find_reader_token(home: Path) -> Path:
    """Return the file with the token of whoever may read files of this process; it is made where there is none."""
    file = home / READER_TOKEN
    if not file.exists():
        with contextlib.suppress(FileExistsError):
            made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(made, f"{secrets.token_hex(32)}\n".encode())
            os.close(made)
    return file


def _equal_digests(presented: str, expected: str) -> bool:
    return bool(expected) and hmac.compare_digest(presented, expected)


def _is_any(presented: str, digests: Iterable[str]) -> bool:
    return any(_equal_digests(presented, digest) for digest in digests)


def token_digest(text: str) -> str:
    """Return the SHA-256 of a token, or the one in a text `sha256:DIGEST`; "" for an empty text."""
    if text.startswith(DIGEST_PREFIX):
        return text.removeprefix(DIGEST_PREFIX).strip().lower()
    return hashlib.sha256(text.encode()).hexdigest() if text else ""
