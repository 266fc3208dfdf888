"""What runs in the spare time of the lab's nodes: a process each, which ends as soon as a customer comes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from assay.lab.queue import Queue
from assay.lab.world import World


class SpareTime:
    """Runs commands on nodes as the node's own shell does, one a node at a time, and none where it is not free."""

    def __init__(self, world: World, queue: Queue) -> None:
        self._world, self._queue = world, queue
        self._running: dict[str, Process] = {}
        self._made_room: set[str] = set()

    async def run(self, node: str, command: Sequence[str], given: str, deadline_s: float) -> dict[str, Any]:
        """Run a command; return what came of it in the form of POST /nodes/N/spare. Bytes are in base64."""
        if node in self._running:
            return _told(None, err=b"something else runs in its spare time")
        if self._customers(node) or node in self._queue.cordons:
            return _told(None, yielded=self._customers(node))
        there = [sys.executable, "-m", "assay.lab.shell", str(self._world.home), node, *command]
        process = await asyncio.create_subprocess_exec(*there, stdin=PIPE, stdout=PIPE, stderr=PIPE, process_group=0)
        self._running[node] = process
        try:
            return await self._ended(node, process, b64decode(given), deadline_s)
        finally:
            del self._running[node]
            self._made_room.discard(node)

    def make_room(self, node: str) -> None:
        """End what runs on a node, at once: a customer's job was placed there."""
        if process := self._running.get(node):
            self._made_room.add(node)
            _end(process)

    async def _ended(self, node: str, process: Process, given: bytes, deadline_s: float) -> dict[str, Any]:
        try:
            out, err = await asyncio.wait_for(process.communicate(given), deadline_s)
        except TimeoutError:
            _end(process)
            await process.wait()
            return _told(None)
        if node in self._made_room:
            return _told(None, out, err, self._customers(node) or "a job that is over already")
        code = process.returncode
        return _told(None if code is None or code < 0 else code, out, err)

    def _customers(self, node: str) -> str:
        jobs = self._queue.jobs(node)
        return ", ".join(f"job {job['id']} ({job['name']}, {job['owner']})" for job in jobs)


def _told(code: int | None, out: bytes = b"", err: bytes = b"", yielded: str = "") -> dict[str, Any]:
    output, errors = b64encode(out).decode(), err.decode(errors="replace")
    return {"code": code, "output": output, "errors": errors, "yielded": yielded}


def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
