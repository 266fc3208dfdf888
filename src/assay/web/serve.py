"""Serves the web application over HTTPS, until SIGTERM or SIGINT."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import uvicorn

from assay.controller.desk import Desk
from assay.controller.enrol import enroll
from assay.controller.known.memory import Memory
from assay.model.errors import Trouble
from assay.web.app import app
from assay.web.intake import Intake
from assay.web.room import Room
from assay.web.tokens import Tokens

KEEP_ALIVE_S = 75
CONNECTIONS = 4096
GRACE_S = 10
BACKLOG = 2048


class Door(NamedTuple):
    """Where to listen, and what to show: a certificate (with its chain) and its key, both PEM."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None


def serve(desk: Desk, door: Door, tell: Callable[[str], None]) -> None:
    """Serve this fleet at that door. Raises Trouble where that cannot be."""
    context = _context(door)
    with _listening(door) as listening:
        enroll(Memory(desk))
        gc.freeze()  # the fleet is there to stay: a look through it for garbage holds up every batch
        room = Room(desk, Tokens(desk.fleet.root, tell), Intake(desk, tell), tell)
        scheme, (host, port) = "https" if context else "http", listening.getsockname()[:2]
        tell(f"listens on {scheme}://{f'[{host}]' if ':' in host else host}:{port}")
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(_config(room, context)).run(sockets=[listening])


def _config(room: Room, context: ssl.SSLContext | None) -> uvicorn.Config:
    return uvicorn.Config(
        app(room),
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=CONNECTIONS,
        ssl_context_factory=(lambda *_: context) if context else None,
    )


def _context(door: Door) -> ssl.SSLContext | None:
    """Return the TLS context, None for plain HTTP, which is for this machine only. Raises Trouble."""
    if door.certificate is None:
        if not ipaddress.ip_address(door.host).is_loopback:
            fix = "give --cert and --key, or listen on 127.0.0.1"
            raise Trouble("tokens do not travel in the clear: plain HTTP is for loopback only", fix=fix)
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(door.certificate, door.key)
    except (OSError, ssl.SSLError) as error:
        raise Trouble("no certificate and key can be read", where=str(door.certificate), fix=_mend(error)) from None
    return context


def _mend(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return "give PEM files: the certificate with its chain, and the key that belongs to it, without a passphrase"
    return f"give files that can be read: {error.strerror}"


def _listening(door: Door) -> socket.socket:
    """Return a socket that listens already. With its protocol named, asyncio turns Nagle off."""
    family = socket.AF_INET6 if ":" in door.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((door.host, door.port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise Trouble(f"cannot listen: {error.strerror}", where=f"{door.host}:{door.port}") from None
    return sock
