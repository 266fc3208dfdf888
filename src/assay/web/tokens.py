"""Which node speaks: a bearer token, compared with what the inventory says of that node."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from assay.model.credentials import TokenReference
from assay.model.errors import Trouble
from assay.model.fleet import Node
from assay.observe.references import secret

KEPT_S = 300.0
AGAIN_S = 1.0
DIGEST = "sha256:"


class Tokens:
    """The digest of each node's token, followed to where it is, and kept for a while."""

    def __init__(self, root: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        self._root, self._tell = root, tell
        self._kept: dict[str, tuple[float, str]] = {}

    async def is_of(self, node: Node | None, shown: str) -> bool:
        """Whether this token is the node's. One that is not is looked up anew: it may have been changed."""
        if node is None:
            return False
        given = hashlib.sha256(shown.encode()).hexdigest()
        if self._age(node) < KEPT_S and _same(given, self._kept[node.name][1]):
            return True
        if self._age(node) < AGAIN_S:
            return False
        digest = await run_in_threadpool(self._found, node)
        self._kept[node.name] = (time.monotonic(), digest)
        return _same(given, digest)

    def _age(self, node: Node) -> float:
        kept = self._kept.get(node.name)
        return time.monotonic() - kept[0] if kept else KEPT_S

    def _found(self, node: Node) -> str:
        if not node.variables.get("agent_token"):
            return ""
        try:
            reference = TokenReference.model_validate(node.variables["agent_token"])
            return reference.sha256 or digest_of(secret(reference, self._root))
        except (Trouble, ValueError) as error:
            self._tell(f"{node.name} agent_token: {error}")
            return ""


def bearer(request: Request) -> str:
    """Return the token that a request shows, "" for none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _same(given: str, wanted: str) -> bool:
    return bool(wanted) and hmac.compare_digest(given, wanted)


def digest_of(text: str) -> str:
    """Return the SHA-256 that a reference leads to, of the token or as it stands there; "" where nothing does."""
    if text.startswith(DIGEST):
        return text.removeprefix(DIGEST).strip().lower()
    return hashlib.sha256(text.encode()).hexdigest() if text else ""
