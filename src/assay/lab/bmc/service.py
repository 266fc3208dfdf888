"""The HTTP side of a BMC: who is asked, by whom, for what; every answer, also an error, in Redfish's form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from assay.lab.bmc import (
    accounts,
    actions,
    bios,
    events,
    logins,
    logs,
    managers,
    metadata,
    root,
    subscriptions,
    systems,
    update,
    uploads,
)
from assay.lab.bmc.answers import error_answer, etag, json_answer, resource_answer, shaped
from assay.lab.bmc.door import Account
from assay.lab.bmc.errors import RedfishError, not_found
from assay.lab.bmc.machine import Action, Call, Machine
from assay.lab.bmc.power import bmc_ready
from assay.lab.bmc.root import TREE
from assay.lab.bmc.tasks import MONITORS
from assay.lab.bmc.tree import ROOT, View, template

LOGIN = f"{ROOT}{accounts.SESSIONS}"
OPEN = {"/redfish", ROOT, f"{ROOT}/odata", metadata.PATH}
MONITOR = template(f"{MONITORS}/{{}}")

ACTIONS: dict[tuple[str, str], tuple[str, Action]] = {
    ("POST", systems.RESET): ("ConfigureComponents", actions.reset_system),
    ("PATCH", ROOT + systems.PATH): ("ConfigureComponents", actions.patch_system),
    ("PATCH", ROOT + bios.SETTINGS): ("ConfigureComponents", bios.patch_settings),
    ("POST", managers.RESET): ("ConfigureManager", actions.reset_manager),
    ("POST", logs.CLEAR): ("ConfigureManager", actions.clear_log),
    ("POST", update.SIMPLE_UPDATE): ("ConfigureComponents", uploads.simple_update),
    ("POST", update.PUSH): ("ConfigureComponents", uploads.push),
    ("DELETE", f"{LOGIN}/{{}}"): ("Login", logins.log_out),
    ("POST", ROOT + accounts.ACCOUNTS): ("ConfigureUsers", logins.create_account),
    ("PATCH", f"{ROOT}{accounts.ACCOUNTS}/{{}}"): ("ConfigureSelf", logins.change_account),
    ("DELETE", f"{ROOT}{accounts.ACCOUNTS}/{{}}"): ("ConfigureUsers", logins.delete_account),
    ("POST", ROOT + subscriptions.ALL): ("ConfigureManager", events.subscribe),
    ("DELETE", f"{ROOT}{subscriptions.ALL}/{{}}"): ("ConfigureManager", events.unsubscribe),
    ("POST", subscriptions.TEST_EVENT): ("ConfigureManager", events.submit_test_event),
}
PATTERNS = [(method, template(path), *entry) for (method, path), entry in ACTIONS.items()]


class Service:
    """The ASGI application of all BMCs; which one is asked follows from the port."""

    def __init__(self, machines: dict[int, Machine]) -> None:
        self.machines = machines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or, while the BMC is silent, none."""
        machine = self.machines[scope["server"][1]]
        if machine.silent():
            await _hang(receive)
            return
        answer: ASGIApp = await _answer(machine, Request(scope, receive))
        await answer(scope, receive, send)


async def _hang(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(machine: Machine, request: Request) -> Response:
    try:
        _same_protocol(request)
        view = await machine.view()
        if not bmc_ready(view.state, view.now):
            raise RedfishError(503, "ServiceTemporarilyUnavailable", "The BMC is restarting", "1", Retry_After="1")
        return await _dispatch(machine, view, request, _path(request))
    except RedfishError as error:
        return error_answer(error)


def _same_protocol(request: Request) -> None:
    if request.headers.get("odata-version", "4.0") != "4.0":
        raise RedfishError(412, "PreconditionFailed", "This service speaks OData 4.0 only")


def _path(request: Request) -> str:
    path = request.url.path.rstrip("/")
    return LOGIN if path == f"{LOGIN}/Members" else path


async def _dispatch(machine: Machine, view: View, request: Request, path: str) -> Response:
    if request.method == "POST" and path == LOGIN:
        return await logins.log_in(Call(machine, view, request, None))
    is_read = request.method in {"GET", "HEAD"}
    account = None if is_read and path in OPEN else view.door.account_of(request.headers)
    if is_read:
        return await _read(machine, view, request, path)
    assert account is not None
    return await _act(machine, view, request, path, account)


async def _read(machine: Machine, view: View, request: Request, path: str) -> Response:
    if path == metadata.PATH:
        return metadata.answer()
    if path == subscriptions.STREAM and request.method == "GET":
        return events.stream(machine, request.headers)
    if match := MONITOR.fullmatch(path):
        return await _monitor(view, match[1])
    if TREE.find(path) is None:
        raise _nothing_here(request.method, path)
    if path == "/redfish":
        return json_answer(root.versions(view))
    body = shaped(TREE, view, TREE.read(view, path), request.query_params)
    if request.headers.get("if-none-match") == etag(body):
        return Response(None, 304, {"ETag": etag(body), "OData-Version": "4.0"})
    return resource_answer(body, Allow=", ".join(_methods(path)))


async def _monitor(view: View, ident: str) -> Response:
    try:
        return await uploads.monitor(view, ident)
    except LookupError:
        raise not_found(f"{MONITORS}/{ident}") from None


async def _act(machine: Machine, view: View, request: Request, path: str, account: Account) -> Response:
    for method, pattern, privilege, action in PATTERNS:
        if method == request.method and (match := pattern.fullmatch(path)):
            call = Call(machine, view, request, account, match.groups())
            logins.demand(call, privilege)
            return await (_edit(call, path, action) if method in {"PATCH", "DELETE"} else action(call))
    raise _nothing_here(request.method, path)


async def _edit(call: Call, path: str, action: Action) -> Response:
    """Check the precondition and act as one step. The body comes before, so that a slow sender holds up nobody."""
    await call.content()
    async with call.machine.writing:
        call = replace(call, view=await call.machine.view())
        _unchanged_since(call, path)
        return await action(call)


def _unchanged_since(call: Call, path: str) -> None:
    """Raise a 412 when the caller saw another version of the resource than there is now."""
    wanted = call.request.headers.get("if-match", "*")
    if wanted == "*" or TREE.find(path) is None:
        return
    if etag(TREE.read(call.view, path)) not in (tag.strip() for tag in wanted.split(",")):
        raise RedfishError(412, "PreconditionFailed", "The resource has changed since it was read")


def _nothing_here(method: str, path: str) -> RedfishError:
    allowed = list(_methods(path))
    if not allowed:
        return not_found(path)
    return RedfishError(405, "OperationNotAllowed", f"{method} is not allowed on {path}", Allow=", ".join(allowed))


def _methods(path: str) -> Iterator[str]:
    if path == subscriptions.STREAM:
        yield "GET"
    if TREE.find(path) or path == metadata.PATH or MONITOR.fullmatch(path):
        yield from ("GET", "HEAD")
    if path == LOGIN:
        yield "POST"
    yield from (method for method, pattern, *_ in PATTERNS if pattern.fullmatch(path))
