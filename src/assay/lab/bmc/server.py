"""All BMCs of a lab in one asyncio loop: a port for each, one TLS context, one server behind them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from assay.lab.bmc.certificates import tls_context
from assay.lab.bmc.events import deliver
from assay.lab.bmc.machine import Machine
from assay.lab.bmc.service import Service
from assay.lab.world import World

ADDRESS = "127.0.0.1"


class Bmcs:
    """The BMCs of every node of `world`. `credentials` is `user:password`; all BMCs have the same."""

    def __init__(self, world: World, *, credentials: str) -> None:
        self.world, self.credentials = world, credentials
        self.ports: dict[str, int] = {}
        self.machines: dict[str, Machine] = {}
        self._running: list[asyncio.Task[None]] = []
        self._server: uvicorn.Server | None = None

    async def start(self, ports: dict[str, int] | None = None) -> dict[str, int]:
        """Listen, and return the port of each node. LAB/ca.pem then holds what clients must trust.

        `ports` asks for certain ports (after a restart, so that addresses stay); the others are chosen freely.
        """
        sockets = {node: _listen((ports or {}).get(node, 0)) for node in self.world.nodes()}
        self.ports = {node: sock.getsockname()[1] for node, sock in sockets.items()}
        self.machines = {node: Machine(self.world, node, self.credentials) for node in self.ports}
        by_port = {self.ports[node]: machine for node, machine in self.machines.items()}
        self._server = _Server(self._config(Service(by_port)))
        self._running = [asyncio.create_task(self._server.serve(list(sockets.values())))]
        self._running += [asyncio.create_task(deliver(machine)) for machine in self.machines.values()]
        while not self._server.started and not self._running[0].done():
            await asyncio.sleep(0.005)
        return self.ports

    async def stop(self) -> None:
        """Close every port and drop every connection, also those that hang or stream."""
        if self._server is None:
            return
        self._server.should_exit = self._server.force_exit = True
        for task in [*self._running[1:], *self._server.server_state.tasks]:
            task.cancel()
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._server = None

    def _config(self, service: Service) -> uvicorn.Config:
        context = tls_context(self.world.home / "ca.pem")
        return uvicorn.Config(
            service,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            ssl_context_factory=lambda *_: context,
        )


@asynccontextmanager
async def serve(world: World, *, credentials: str) -> AsyncIterator[dict[str, int]]:
    """Run the BMCs while the block runs; yields the port of each node."""
    bmcs = Bmcs(world, credentials=credentials)
    try:
        yield await bmcs.start()
    finally:
        await bmcs.stop()


class _Server(uvicorn.Server):
    """Signals belong to whoever runs the loop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


def _listen(port: int) -> socket.socket:
    """Return a bound socket. With its protocol named, asyncio turns Nagle off, which else costs 40 ms an answer."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((ADDRESS, port))
    return sock
