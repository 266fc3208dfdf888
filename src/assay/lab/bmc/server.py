"""The HTTP side of all BMCs of a lab, from one asyncio loop: one port each, one server.

A request's port says which BMC it is for; login and privileges are checked, then the handler is called.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from assay.lab.bmc import (
    computer_system,
    firmware_flash,
    image_upload,
    requests,
    service_root,
    services,
)
from assay.lab.bmc.authentication import BmcAccount, RedfishErrorResponse, not_found, password_change_required
from assay.lab.bmc.certificates import make_authority, make_bmc_context
from assay.lab.bmc.firmware_flash import MONITORS
from assay.lab.bmc.odata_responses import apply_query_options, error_answer, etag, json_answer, resource_answer
from assay.lab.bmc.power_transitions import is_bmc_ready
from assay.lab.bmc.requests import account_path
from assay.lab.bmc.resource_tree import REDFISH_ROOT, ResourceView, compile_path_template
from assay.lab.bmc.service_root import RESOURCE_TREE
from assay.lab.bmc.virtual_bmc import BmcRequest, BmcRequestHandler, VirtualBmc
from assay.lab.world import LabWorld

LOGIN = f"{REDFISH_ROOT}{services.SESSIONS}"
PUBLIC_PATHS = {"/redfish", REDFISH_ROOT, f"{REDFISH_ROOT}/odata", service_root.METADATA_PATH}
MONITOR = compile_path_template(f"{MONITORS}/{{}}")

WRITE_ROUTES: dict[tuple[str, str], tuple[str, BmcRequestHandler]] = {
    ("POST", computer_system.SYSTEM_RESET): ("ConfigureComponents", requests.reset_system),
    ("PATCH", REDFISH_ROOT + computer_system.SYSTEM_PATH): (
        "ConfigureComponents",
        requests.patch_system,
    ),
    ("PATCH", REDFISH_ROOT + computer_system.BIOS_SETTINGS): ("ConfigureComponents", computer_system.patch_settings),
    ("PATCH", REDFISH_ROOT + computer_system.SYSTEM_SETTINGS): ("ConfigureComponents", computer_system.patch_boot),
    ("PATCH", REDFISH_ROOT + computer_system.SECURE_BOOT): ("ConfigureComponents", computer_system.patch_secure_boot),
    ("PATCH", REDFISH_ROOT + services.NETWORK_PROTOCOL): (
        "ConfigureManager",
        requests.patch_network_protocol,
    ),
    ("POST", services.MANAGER_RESET): ("ConfigureManager", requests.reset_manager),
    ("POST", services.CLEAR_LOG): ("ConfigureManager", requests.clear_log),
    ("POST", firmware_flash.SIMPLE_UPDATE): ("ConfigureComponents", image_upload.simple_update),
    ("POST", firmware_flash.PUSH): ("ConfigureComponents", image_upload.push_multipart),
    ("DELETE", f"{LOGIN}/{{}}"): ("Login", requests.log_out),
    ("POST", REDFISH_ROOT + services.ACCOUNTS): ("ConfigureUsers", requests.create_account),
    ("PATCH", f"{REDFISH_ROOT}{services.ACCOUNTS}/{{}}"): (
        "ConfigureSelf",
        requests.change_account,
    ),
    ("DELETE", f"{REDFISH_ROOT}{services.ACCOUNTS}/{{}}"): (
        "ConfigureUsers",
        requests.delete_account,
    ),
    ("POST", REDFISH_ROOT + services.SUBSCRIPTIONS): ("ConfigureManager", requests.subscribe),
    ("DELETE", f"{REDFISH_ROOT}{services.SUBSCRIPTIONS}/{{}}"): ("ConfigureManager", requests.unsubscribe),
}
WRITE_ROUTE_PATTERNS = [(method, compile_path_template(path), *entry) for (method, path), entry in WRITE_ROUTES.items()]
ADDRESS = "127.0.0.1"


class BmcHttpService:
    """The ASGI application of all BMCs. The port identifies the BMC."""

    def __init__(self, machines: dict[int, VirtualBmc]) -> None:
        self.machines = machines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. A silent BMC never answers."""
        machine = self.machines[scope["server"][1]]
        if machine.is_silent():
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        answer: ASGIApp = await _answer(machine, Request(scope, receive))
        await answer(scope, receive, send)


async def _answer(machine: VirtualBmc, request: Request) -> Response:
    try:
        if request.headers.get("odata-version", "4.0") != "4.0":
            raise RedfishErrorResponse(412, "PreconditionFailed", "This service supports OData 4.0 only")
        view = await machine.view()
        if not is_bmc_ready(view.state, view.now):
            raise RedfishErrorResponse(
                503, "ServiceTemporarilyUnavailable", "The BMC is restarting", "1", Retry_After="1"
            )
        path = request.url.path.rstrip("/")
        if path == f"{LOGIN}/Members":  # the specification allows both
            path = LOGIN
        return await _dispatch(machine, view, request, path)
    except RedfishErrorResponse as error:
        return error_answer(error)


async def _dispatch(machine: VirtualBmc, view: ResourceView, request: Request, path: str) -> Response:
    if request.method == "POST" and path == LOGIN:
        return await requests.log_in(BmcRequest(machine, view, request, None))
    is_read = request.method in {"GET", "HEAD"}
    account = None if is_read and path in PUBLIC_PATHS else view.logins.account_of(request.headers)
    if account and account.must_change and (request.method, path) != ("PATCH", account_path(account)):
        raise password_change_required(account_path(account))
    if is_read:
        return await _handle_read(view, request, path)
    assert account is not None
    return await _handle_write(machine, view, request, path, account)


async def _handle_read(view: ResourceView, request: Request, path: str) -> Response:
    if path == service_root.METADATA_PATH:
        return service_root.answer_metadata()
    if match := MONITOR.fullmatch(path):
        return await _monitor(view, match[1])
    if RESOURCE_TREE.find(path) is None:
        raise _method_not_allowed(request.method, path)
    if path == "/redfish":
        return json_answer(service_root.versions(view))
    body = apply_query_options(RESOURCE_TREE, view, RESOURCE_TREE.read(view, path), request.query_params)
    if request.headers.get("if-none-match") == etag(body):
        return Response(None, 304, {"ETag": etag(body), "OData-Version": "4.0"})
    return resource_answer(body, Allow=", ".join(_methods(path)))


async def _monitor(view: ResourceView, ident: str) -> Response:
    try:
        return await image_upload.read_task_monitor(view, ident)
    except LookupError:
        raise not_found(f"{MONITORS}/{ident}") from None


async def _handle_write(
    machine: VirtualBmc, view: ResourceView, request: Request, path: str, account: BmcAccount
) -> Response:
    for method, pattern, privilege, action in WRITE_ROUTE_PATTERNS:
        if method == request.method and (match := pattern.fullmatch(path)):
            call = BmcRequest(machine, view, request, account, match.groups())
            requests.require_privilege(call, privilege)
            return await (_edit_atomically(call, path, action) if method in {"PATCH", "DELETE"} else action(call))
    raise _method_not_allowed(request.method, path)


async def _edit_atomically(call: BmcRequest, path: str, action: BmcRequestHandler) -> Response:
    """Check If-Match and act under one lock. The body is read before it, so a slow client delays nobody."""
    await call.read_body()
    async with call.bmc.writing:
        call = replace(call, view=await call.bmc.view())
        _require_etag_match(call, path)
        return await action(call)


def _require_etag_match(call: BmcRequest, path: str) -> None:
    """Raise a 412 if the resource has changed since the caller read it."""
    wanted = call.request.headers.get("if-match", "*")
    if wanted == "*" or RESOURCE_TREE.find(path) is None:
        return
    if etag(RESOURCE_TREE.read(call.view, path)) not in (tag.strip() for tag in wanted.split(",")):
        raise RedfishErrorResponse(412, "PreconditionFailed", "The resource has changed since it was read")


def _method_not_allowed(method: str, path: str) -> RedfishErrorResponse:
    allowed = list(_methods(path))
    if not allowed:
        return not_found(path)
    return RedfishErrorResponse(
        405, "OperationNotAllowed", f"{method} is not allowed on {path}", Allow=", ".join(allowed)
    )


def _methods(path: str) -> Iterator[str]:
    if RESOURCE_TREE.find(path) or path == service_root.METADATA_PATH or MONITOR.fullmatch(path):
        yield from ("GET", "HEAD")
    if path == LOGIN:
        yield "POST"
    yield from (method for method, pattern, *_ in WRITE_ROUTE_PATTERNS if pattern.fullmatch(path))


class VirtualBmcs:
    """The BMCs of all nodes of `world`. All have the same `credentials`, `user:password`."""

    def __init__(self, world: LabWorld, *, credentials: str) -> None:
        self.world = world
        self.credentials = credentials
        self.ports: dict[str, int] = {}
        self.machines: dict[str, VirtualBmc] = {}
        self._running: list[asyncio.Task[None]] = []
        self._server: _QuietUvicornServer | None = None

    async def start(self, ports: dict[str, int] | None = None) -> dict[str, int]:
        """Listen, and return the port of each node. LAB/ca.pem is the CA certificate that clients must trust.

        `ports` keeps the ports of some nodes over a restart; other nodes get free ports.
        """
        sockets = {node: _listen((ports or {}).get(node, 0)) for node in self.world.nodes()}
        self.ports = {node: sock.getsockname()[1] for node, sock in sockets.items()}
        self.machines = {node: VirtualBmc(self.world, node, self.credentials) for node in self.ports}
        by_port = {self.ports[node]: machine for node, machine in self.machines.items()}
        certificate = make_authority(self.world.home / "ca.pem")
        contexts = {port: make_bmc_context(self.world, node, certificate) for node, port in self.ports.items()}
        self._server = _QuietUvicornServer(self._config(BmcHttpService(by_port)))
        self._server.contexts = contexts
        self._running = [asyncio.create_task(self._server.serve(list(sockets.values())))]
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
        self._drop_connections(self._server)
        await asyncio.gather(*self._running, return_exceptions=True)
        self._drop_connections(self._server)  # those that were accepted meanwhile
        self._server = None

    @staticmethod
    def _drop_connections(server: uvicorn.Server) -> None:
        for connection in list(server.server_state.connections):
            connection.transport.abort()

    @staticmethod
    def _config(service: BmcHttpService) -> uvicorn.Config:
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
    """A server that leaves signals to the owner of the loop. Each port has a TLS context of its own."""

    contexts: dict[int, ssl.SSLContext]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on each socket by its context."""
        listening = []
        for sock in sockets or ():
            self.config.ssl = self.contexts[sock.getsockname()[1]]
            await super().startup([sock])
            listening += self.servers
            self.started = False  # until the last one listens
        self.servers, self.started = listening, True

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
