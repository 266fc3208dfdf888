"""`python -m bench.viewing PORT VIEWERS TOKEN…`: people who look at pages of `assay serve`, all in this process.

Each has two connections, as a browser does: one follows `/live`, the other reads the page, and again after each change.
Prints the first line once all follow; at the end of stdin, a JSON list of [entry shown, monotonic time] of each viewer.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

PAGES = ("/", "/", "/", "/?pool=pool-01", "/rollouts", "/tickets", "/nodes/n000001", "/pools/pool-02")
ENTRY = re.compile(rb"entry ([\d,. \xc2\xa0\xe2\x80\xaf]+) of the ledger")


@dataclass
class Viewer:
    """One person with one page. `shown` are the entries that the page was as of, each with the time of its arrival."""

    number: int
    port: int
    token: str
    tags: dict[str, int]
    shown: list[tuple[int, float]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def look(self, ready: asyncio.Semaphore) -> None:
        """Read the page, follow the ledger, and read the page again after each change."""
        pages = await self._connect()
        await self._read(*pages)
        reader, writer = await self._connect()
        await self._ask(writer, f"/live?after={self.shown[-1][0]}")
        assert " 200 " in (await read_head(reader))["status"]
        ready.release()
        following = asyncio.create_task(self._follow(reader))
        while not following.done():
            await self.changed.wait()
            self.changed.clear()
            await self._read(*pages)

    async def _follow(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            if line.startswith(b"event: changed"):
                self.changed.set()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._ask(writer, PAGES[self.number % len(PAGES)])
        head = await read_head(reader)
        assert " 200 " in head["status"], head["status"]
        body = await reader.readexactly(int(head["content-length"]))
        now = asyncio.get_running_loop().time()
        if head["etag"] not in self.tags:
            self.tags[head["etag"]] = find_entry(gzip.decompress(body) if "content-encoding" in head else body)
        self.shown.append((self.tags[head["etag"]], now))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def _ask(self, writer: asyncio.StreamWriter, path: str) -> None:
        headers = f"Host: assay\r\nAuthorization: Bearer {self.token}\r\nAccept-Encoding: gzip"
        writer.write(f"GET {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        await writer.drain()


async def read_head(reader: asyncio.StreamReader) -> Mapping[str, str]:
    """Return the headers of a reply by their names in small letters, and its first line as `status`."""
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().splitlines()
    return {name.lower(): text for name, _, text in (line.partition(": ") for line in lines)} | {"status": status}


def find_entry(page: bytes) -> int:
    """Return the entry that a page is as of."""
    found = ENTRY.search(page)
    assert found, page[-500:]
    return int(re.sub(rb"\D", b"", found[1]))


async def main(port: int, count: int, tokens: list[str]) -> None:
    """Look until stdin ends."""
    tags, ready = dict[str, int](), asyncio.Semaphore(0)
    viewers = [Viewer(number, port, tokens[number % len(tokens)], tags) for number in range(count)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(viewer.look(ready)) for viewer in viewers]
        for _ in viewers:
            await ready.acquire()
        print("ready", flush=True)  # noqa: T201 — the answer
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
    print(json.dumps([viewer.shown for viewer in viewers]))  # noqa: T201 — the answer


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
