"""`python -m bench.crowding PORT SECONDS`: agents that report, and people who read pages, all in this process.

stdin is JSON: `agents`, the token of each node; `people`, the token and the pages of each person. Each agent has its
connection and its own moment in `EACH_S`. A person opens page after page in a browser: then the stylesheet, which says
what the same machine needs for what costs nothing, and the page again, as it does by itself where something changed.
Prints JSON: `pages`, the seconds of each answer by address; `still` and `again`, those of the stylesheet and of the
second reading; `batches`, those of each batch.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.viewing import read_head

EACH_S, THINKS_S = 15.0, 1.0
STYLE = re.compile(rb'href="(/static/[0-9a-f]+/style.css)"')
AT_ONCE = 200


@dataclass
class Connection:
    """One connection to the server, kept open."""

    port: int
    token: str
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, what: str, body: bytes = b"", said: str = "") -> tuple[float, bytes]:
        """Send a request with the headers `said`; return how many seconds the whole answer took, and its body."""
        reader, writer = self.streams = self.streams or await asyncio.open_connection("127.0.0.1", self.port)
        begun = time.monotonic()
        size = f"Content-Length: {len(body)}\r\n" if body else ""
        writer.write(
            f"{what} HTTP/1.1\r\nHost: assay\r\nAuthorization: Bearer {self.token}\r\n{said}{size}\r\n".encode() + body
        )
        head = await read_head(reader)
        assert " 200 " in head["status"], (what, head["status"])
        content = await reader.readexactly(int(head["content-length"]))
        return time.monotonic() - begun, content


@dataclass
class Crowd:
    """Everybody, and what each saw."""

    port: int
    until: float
    words: Sequence[str] = ()
    batches: list[float] = field(default_factory=list)
    pages: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    still: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)

    async def report(self, node: str, token: str, wait_s: float, opening: asyncio.Semaphore) -> None:
        """Deliver a batch without items each `EACH_S`, as an agent does on which nothing happens."""
        connection = Connection(self.port, token)
        await asyncio.sleep(wait_s)
        while time.monotonic() < self.until:
            begun = time.monotonic()
            async with opening if connection.streams is None else asyncio.Semaphore():
                took, answer = await connection.ask(f"POST /agent/v1/nodes/{node}/batches", self._make_batch(node))
            self.words = json.loads(answer).get("words", self.words)
            self.batches.append(took)
            await asyncio.sleep(max(0.0, begun + EACH_S - time.monotonic()))

    async def read(self, token: str, pages: Sequence[str], wait_s: float) -> None:
        """Read the pages, each with a pause after it, again and again."""
        connection = Connection(self.port, token)
        await asyncio.sleep(wait_s)
        while True:
            for page in pages:
                if time.monotonic() >= self.until:
                    return
                took, body = await connection.ask(f"GET {page}", said="Sec-Fetch-Mode: navigate\r\n")
                self.pages[page].append(took)
                style = STYLE.search(body)
                assert style, page
                self.still.append((await connection.ask(f"GET {style[1].decode()}"))[0])
                self.again.append((await connection.ask(f"GET {page}", said="HX-Request: true\r\n"))[0])
                await asyncio.sleep(THINKS_S)

    def _make_batch(self, node: str) -> bytes:
        state = {"cpu_s": 0.1, "rss_bytes": 1, "buffered": 0, "buffered_bytes": 0, "dropped": {}, "missed": 0}
        agent = {**state, "log": "", "nvml": "", "words": self.words}
        life = "11111111-1111-1111-1111-111111111111"
        batch = {"schema": "assay.agent/1", "node": node, "life": life, "after": 0, "now": time.time(), "items": []}
        return json.dumps(batch | {"agent": agent}).encode()


async def main(port: int, seconds: float, given: dict[str, Any]) -> None:
    """Let everybody work for so long, and print what they saw."""
    crowd, opening = Crowd(port, time.monotonic() + seconds), asyncio.Semaphore(AT_ONCE)
    agents, people = given["agents"], given["people"]
    async with asyncio.TaskGroup() as group:
        for number, (node, token) in enumerate(agents.items()):
            group.create_task(crowd.report(node, token, number * EACH_S / len(agents), opening))
        for number, (token, pages) in enumerate(people):
            group.create_task(crowd.read(token, pages, number * THINKS_S / len(people)))
    print(json.dumps({"pages": crowd.pages, "still": crowd.still, "again": crowd.again, "batches": crowd.batches}))  # noqa: T201 — the answer


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), json.load(sys.stdin)))
