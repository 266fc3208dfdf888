"""One virtual BMC: reads and changes its node's state, and rolls up the health of the node from that of its parts.

`BmcRequest` is what a request handler works with.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import datetime
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from assay.lab.bmc.authentication import BmcAccount, BmcLogins, RedfishErrorResponse, malformed_body, missing_property
from assay.lab.bmc.power_transitions import apply_elapsed_time
from assay.lab.bmc.resource_tree import ResourceView, make_status
from assay.lab.virtual_node_state import VirtualNodeState
from assay.lab.world import LabWorld
from assay.model.facts import frozen

MAX_BODY_BYTES = 1 << 20
StateEdit = Callable[[VirtualNodeState, datetime], VirtualNodeState]
WORST = ("Critical", "Warning")
LEAK = {"OK": "OK", "Warning": "Warning", "Critical": "Critical"}


class VirtualBmc:
    """The BMC of one node. The node's state is on disk; logins are in memory."""

    def __init__(self, world: LabWorld, node: str, credentials: str) -> None:
        self.world = world
        self.node = node
        self.logins = BmcLogins(credentials)
        self.writing = asyncio.Lock()
        self.starting: asyncio.Task[None] | None = None
        self._file = world.folder(node) / "state.json"
        self._read: tuple[tuple[int, ...], VirtualNodeState] | None = None

    def stored_state(self) -> VirtualNodeState:
        """Return the state on disk, which callers must not change. The file is read again only after a change."""
        stat = self._file.stat()
        stamp = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        if self._read is None or self._read[0] != stamp:
            self._read = (stamp, self.world.load(self.node))
        return self._read[1]

    async def view(self) -> ResourceView:
        """Return the present view. Changes that are due by time are written to disk first."""
        stored = self.stored_state()
        now = self.world.clock().now()
        if apply_elapsed_time(stored, now) is not stored:
            stored = await self.change(lambda state, _: state)
        self.logins.load_accounts(stored["accounts"])
        return ResourceView(self.node, stored, now, self.logins)

    async def change(self, edit: StateEdit) -> VirtualNodeState:
        """Apply elapsed time, then `edit`, and store and return the new state. If `edit` raises, nothing changes."""
        return await asyncio.to_thread(self._change, edit)

    def is_silent(self) -> bool:
        """Return whether the BMC answers nothing at present (fault `bmc.silent`)."""
        return bool(self.stored_state().get("fails", {}).get("bmc_silent"))

    def _change(self, edit: StateEdit) -> VirtualNodeState:
        with self.world.change(self.node) as state:
            now = self.world.clock().now()
            after = edit(apply_elapsed_time(dict(state), now), now)
            state.clear()
            state.update(after)
        return after


@frozen
class BmcRequest:
    """A request that changes something: its BMC, the view at its start, its account, and the ids in its path."""

    bmc: VirtualBmc
    view: ResourceView
    request: Request
    account: BmcAccount | None
    ids: tuple[str, ...] = ()

    async def read_body(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """Return the request's body; repeated calls return it again. Raises a 413 for more than `limit` bytes."""
        if not hasattr(self.request.state, "content"):
            received = bytearray()
            try:
                async for chunk in self.request.stream():
                    received += chunk
                    if len(received) > limit:
                        text = f"The request body is larger than {limit} bytes"
                        raise RedfishErrorResponse(413, "PayloadTooLarge", text)
            except ClientDisconnect:
                raise malformed_body("it ended early") from None
            self.request.state.content = bytes(received)
        content: bytes = self.request.state.content
        return content

    async def read_parameters(self, allowed: Collection[str], required: Collection[str] = ()) -> dict[str, Any]:
        """Return the JSON object in the body. Raises a 400 for any other body, and for unknown or missing names."""
        sent = parse_json_object(await self.read_body())
        plain = {name: content for name, content in sent.items() if not name.startswith("@odata.")}
        if sent and not plain:
            raise RedfishErrorResponse(
                400, "NoOperation", "The request holds annotations only and would change nothing"
            )
        for name in plain:
            if name not in allowed:
                raise RedfishErrorResponse(400, "PropertyUnknown", f"There is no property {name} here", name)
        for name in required:
            if not plain.get(name):
                raise missing_property(name)
        return plain


BmcRequestHandler = Callable[[BmcRequest], Awaitable[Response]]


def parse_json_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object in `content`. Raises a 400 for anything else."""
    try:
        plain = json.loads(content)
    except ValueError as error:
        raise malformed_body(str(error)) from None
    if not isinstance(plain, dict):
        raise malformed_body("it is not a JSON object")
    return plain


def require_string(plain: dict[str, Any], name: str) -> str:
    """Return the string property `name`. Raises a 400 for another type."""
    content = plain[name]
    if not isinstance(content, str):
        raise RedfishErrorResponse(
            400, "PropertyValueTypeError", f"The value of {name} must be a string", str(content), name
        )
    return content


def worst_health(levels: Iterable[str]) -> str:
    """Return the worst of some health levels, OK for none."""
    levels = set(levels)
    return next((level for level in WORST if level in levels), "OK")


def power_health(state: VirtualNodeState) -> str:
    """Return the health of the power supplies."""
    return worst_health(psu.get("health", "OK") for psu in state.get("psus", []))


def cooling_health(state: VirtualNodeState) -> str:
    """Return the health of fans and leak detectors."""
    return worst_health([*(fan.get("health", "OK") for fan in state.get("fans", [])), leak_health(state)])


def leak_health(state: VirtualNodeState) -> str:
    """Return the health of the leak detectors."""
    return worst_health(LEAK[leak["state"]] for leak in state["box"]["leaks"])


def processor_health(state: VirtualNodeState) -> str:
    """Return the health of the CPUs."""
    return worst_health(cpu["health"] for cpu in state["box"]["cpus"])


def memory_health(state: VirtualNodeState) -> str:
    """Return the health of the memory modules."""
    return worst_health(dimm["health"] for dimm in state["box"]["dimms"])


def node_health(state: VirtualNodeState) -> str:
    """Return the health of the node, that of its worst area."""
    return worst_health((power_health(state), cooling_health(state), processor_health(state), memory_health(state)))


def rollup_status(level: str) -> dict[str, str | None]:
    """Return a Status object with `level` as Health and HealthRollup."""
    return {**make_status(level), "HealthRollup": level}
