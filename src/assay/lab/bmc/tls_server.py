"""Serves all BMCs of a lab from one asyncio loop: one port each, one server, one certificate of the lab's own CA."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import trustme
import uvicorn

from assay.lab.bmc.event_delivery import deliver_events, watch_states
from assay.lab.bmc.request_routing_and_login import BmcHttpService
from assay.lab.bmc.virtual_bmc import VirtualBmc
from assay.lab.world import LabWorld

NAMES = ("127.0.0.1", "localhost")
ADDRESS = "127.0.0.1"


def tls_context(authority: Path) -> ssl.SSLContext:
    """Return the servers' TLS context, and write the CA certificate that clients must trust to `authority` (PEM).

    Each start makes a new CA. No private key stays on disk longer than loading it takes.
    """
    ca = trustme.CA(organization_name="assay lab")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*NAMES).configure_cert(context)
    scratch = authority.with_name(f".{authority.name}.new")
    ca.cert_pem.write_to_path(scratch)
    scratch.replace(authority)
    return context


class VirtualBmcs:
    """The BMCs of all nodes of `world`. All have the same `credentials`, `user:password`."""

    def __init__(self, world: LabWorld, *, credentials: str) -> None:
        self.world, self.credentials = world, credentials
        self.ports: dict[str, int] = {}
        self.machines: dict[str, VirtualBmc] = {}
        self._running: list[asyncio.Task[None]] = []
        self._server: uvicorn.Server | None = None

    async def start(self, ports: dict[str, int] | None = None) -> dict[str, int]:
        """Listen, and return the port of each node. LAB/ca.pem is the CA certificate that clients must trust.

        `ports` keeps the ports of some nodes over a restart; other nodes get free ports.
        """
        sockets = {node: _listen((ports or {}).get(node, 0)) for node in self.world.nodes()}
        self.ports = {node: sock.getsockname()[1] for node, sock in sockets.items()}
        self.machines = {node: VirtualBmc(self.world, node, self.credentials) for node in self.ports}
        by_port = {self.ports[node]: machine for node, machine in self.machines.items()}
        self._server = _QuietUvicornServer(self._config(BmcHttpService(by_port)))
        self._running = [asyncio.create_task(self._server.serve(list(sockets.values())))]
        self._running += [asyncio.create_task(deliver_events(machine)) for machine in self.machines.values()]
        self._running += [asyncio.create_task(watch_states([*self.machines.values()]))]
        while not self._server.started and not self._running[0].done():
            await asyncio.sleep(0.005)
        return self.ports

    async def stop(self) -> None:
        """Close all ports and drop all connections, also those that hang or stream."""
        if self._server is None:
            return
        self._server.should_exit = self._server.force_exit = True
        for task in [*self._running[1:], *self._server.server_state.tasks]:
            task.cancel()
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._server = None

    def _config(self, service: BmcHttpService) -> uvicorn.Config:
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
async def serve_bmcs(world: LabWorld, *, credentials: str) -> AsyncIterator[dict[str, int]]:
    """Run the BMCs during the block; yield the port of each node."""
    bmcs = VirtualBmcs(world, credentials=credentials)
    try:
        yield await bmcs.start()
    finally:
        await bmcs.stop()


class _QuietUvicornServer(uvicorn.Server):
    """A server that leaves signals to the owner of the loop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


def _listen(port: int) -> socket.socket:
    """Return a bound socket. IPPROTO_TCP makes asyncio turn Nagle's algorithm off, which costs 40 ms an answer."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((ADDRESS, port))
    return sock
