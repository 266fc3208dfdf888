"""`python -m assay.lab.daemon LAB`: the lab's one process, with every BMC and the scheduler in one event loop.

It writes LAB/inventory.yml when everything answers, and takes it away when it ends. The world stays on disk.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from contextlib import nullcontext
from pathlib import Path

import uvicorn

from assay.lab.bmc import serve
from assay.lab.far_scheduler import scheduler_app
from assay.lab.overlay import write_overlay
from assay.lab.world import World, write_json


async def run(world: World) -> None:
    """Serve until SIGTERM or SIGINT."""
    write_json(world.home / "lab.json", {"pid": os.getpid()})
    over = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, over.set)
    async with serve(world, credentials=_credentials(world)) as ports:
        scheduler, door = _scheduler(world)
        serving = asyncio.create_task(scheduler.serve([door]))
        write_overlay(world, ports, door.getsockname()[1])
        await over.wait()
        (world.home / "inventory.yml").unlink(missing_ok=True)
        scheduler.should_exit = True
        await serving


def _credentials(world: World) -> str:
    """Return the lab's own user and password, made anew at each start and readable by its owner only."""
    words = f"assay:{secrets.token_urlsafe(18)}"
    path = world.home / "credentials"
    path.touch(mode=0o600)
    path.write_text(words + "\n")
    return words


def _scheduler(world: World) -> tuple[uvicorn.Server, socket.socket]:
    door = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(scheduler_app(world), log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # type: ignore[assignment,method-assign]  # the loop above ends it in order
    return server, door


if __name__ == "__main__":
    asyncio.run(run(World(Path(sys.argv[1]))))
