"""One BMC's hold on its node: look at the state as it is now, or change it. Also what an action gets to work with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from assay.lab.bmc.door import Account, Door
from assay.lab.bmc.errors import RedfishError, malformed, missing
from assay.lab.bmc.settle import settle
from assay.lab.bmc.tree import View
from assay.lab.world import State, World

MAX_BODY_BYTES = 1 << 20
Edit = Callable[[State, datetime], State]


class Machine:
    """The BMC of one node. The state stays on disk; here lives only who is logged in or listens."""

    def __init__(self, world: World, node: str, credentials: str) -> None:
        self.world, self.node, self.door = world, node, Door(credentials)
        self.listeners: set[str] = set()
        self.writing = asyncio.Lock()
        self._file = world.folder(node) / "state.json"
        self._read: tuple[tuple[int, ...], State] | None = None

    def stored(self) -> State:
        """Return the state on disk, never to be changed in place; it is parsed anew only when the file is another."""
        stat = self._file.stat()
        stamp = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        if self._read is None or self._read[0] != stamp:
            self._read = (stamp, self.world.load(self.node))
        return self._read[1]

    async def view(self) -> View:
        """Look: what fell due since the last look is folded into the state on disk first."""
        stored, now = self.stored(), self.world.clock().now()
        if settle(stored, now) is not stored:
            stored = await self.change(lambda state, _: state)
        return View(self.node, stored, now, self.door, tuple(self.listeners))

    async def change(self, edit: Edit) -> State:
        """Settle the state, let `edit` make a new one of it, and keep that; an edit that raises changes nothing."""
        return await asyncio.to_thread(self._change, edit)

    def silent(self) -> bool:
        """Whether the BMC does not answer at all just now."""
        return bool(self.stored().get("fails", {}).get("bmc_silent"))

    def _change(self, edit: Edit) -> State:
        with self.world.change(self.node) as state:
            now = self.world.clock().now()
            after = edit(settle(dict(state), now), now)
            state.clear()
            state.update(after)
        return after


@dataclass(frozen=True, slots=True)
class Call:
    """A request that wants to change something: at which machine, by whom, and the ids in its path."""

    machine: Machine
    view: View
    request: Request
    account: Account | None
    ids: tuple[str, ...] = ()

    async def content(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """Return the request's body, the same at each call. Raises a 413 for more than `limit` bytes."""
        if not hasattr(self.request.state, "content"):
            self.request.state.content = await self._received(limit)
        content: bytes = self.request.state.content
        return content

    async def _received(self, limit: int) -> bytes:
        content = bytearray()
        try:
            async for chunk in self.request.stream():
                content += chunk
                if len(content) > limit:
                    raise RedfishError(413, "PayloadTooLarge", f"The request body is larger than {limit} bytes")
        except ClientDisconnect:
            raise malformed("it ended early") from None
        return bytes(content)

    async def parameters(self, allowed: Collection[str], required: Collection[str] = ()) -> dict[str, Any]:
        """Return the JSON object in the body. Raises a 400 for anything else, unknown names and missing ones."""
        sent = json_object(await self.content())
        plain = {name: content for name, content in sent.items() if not name.startswith("@odata.")}
        if sent and not plain:
            raise RedfishError(400, "NoOperation", "The request holds annotations only and would change nothing")
        for name in plain:
            if name not in allowed:
                raise RedfishError(400, "PropertyUnknown", f"There is no property {name} here", name)
        for name in required:
            if not plain.get(name):
                raise missing(name)
        return plain


Action = Callable[[Call], Awaitable[Response]]


def json_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object in `content`. Raises a 400."""
    try:
        plain = json.loads(content)
    except ValueError as error:
        raise malformed(str(error)) from None
    if not isinstance(plain, dict):
        raise malformed("it is not a JSON object")
    return plain


def text(plain: dict[str, Any], name: str) -> str:
    """Return a property that must be a string. Raises a 400."""
    content = plain[name]
    if not isinstance(content, str):
        raise RedfishError(400, "PropertyValueTypeError", f"The value of {name} must be a string", str(content), name)
    return content
