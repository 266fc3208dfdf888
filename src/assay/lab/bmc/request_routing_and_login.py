"""The HTTP side of all BMCs: finds the BMC by port, checks login and privileges, and calls the handler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from assay.lab.bmc import (
    account_requests,
    account_service,
    bios,
    bmc_setting_requests,
    computer_system,
    event_delivery,
    event_service,
    image_upload_and_task_monitor,
    manager_log_services,
    reset_and_account_requests,
    service_root,
    update_task_services,
)
from assay.lab.bmc.authentication import BmcAccount
from assay.lab.bmc.odata_responses import apply_query_options, error_answer, etag, json_answer, resource_answer
from assay.lab.bmc.power_transitions import is_bmc_ready
from assay.lab.bmc.redfish_errors import RedfishErrorResponse, not_found, password_change_required
from assay.lab.bmc.reset_and_account_requests import account_path
from assay.lab.bmc.resource_tree import REDFISH_ROOT, ResourceView, compile_path_template
from assay.lab.bmc.service_root import RESOURCE_TREE
from assay.lab.bmc.update_task_services import MONITORS
from assay.lab.bmc.virtual_bmc import BmcRequest, BmcRequestHandler, VirtualBmc

LOGIN = f"{REDFISH_ROOT}{account_service.SESSIONS}"
PUBLIC_PATHS = {"/redfish", REDFISH_ROOT, f"{REDFISH_ROOT}/odata", service_root.METADATA_PATH}
MONITOR = compile_path_template(f"{MONITORS}/{{}}")

WRITE_ROUTES: dict[tuple[str, str], tuple[str, BmcRequestHandler]] = {
    ("POST", computer_system.SYSTEM_RESET): ("ConfigureComponents", reset_and_account_requests.reset_system),
    ("PATCH", REDFISH_ROOT + computer_system.SYSTEM_PATH): (
        "ConfigureComponents",
        reset_and_account_requests.patch_system,
    ),
    ("PATCH", REDFISH_ROOT + bios.BIOS_SETTINGS): ("ConfigureComponents", bios.patch_settings),
    ("PATCH", REDFISH_ROOT + computer_system.SYSTEM_SETTINGS): ("ConfigureComponents", bios.patch_boot),
    ("PATCH", REDFISH_ROOT + bios.SECURE_BOOT): ("ConfigureComponents", bios.patch_secure_boot),
    ("PATCH", REDFISH_ROOT + manager_log_services.NETWORK_PROTOCOL): (
        "ConfigureManager",
        bmc_setting_requests.patch_network_protocol,
    ),
    ("POST", manager_log_services.MANAGER_RESET): ("ConfigureManager", reset_and_account_requests.reset_manager),
    ("POST", manager_log_services.CLEAR_LOG): ("ConfigureManager", reset_and_account_requests.clear_log),
    ("POST", update_task_services.SIMPLE_UPDATE): ("ConfigureComponents", image_upload_and_task_monitor.simple_update),
    ("POST", update_task_services.PUSH): ("ConfigureComponents", image_upload_and_task_monitor.push_multipart),
    ("DELETE", f"{LOGIN}/{{}}"): ("Login", reset_and_account_requests.log_out),
    ("POST", REDFISH_ROOT + account_service.ACCOUNTS): ("ConfigureUsers", account_requests.create_account),
    ("PATCH", f"{REDFISH_ROOT}{account_service.ACCOUNTS}/{{}}"): (
        "ConfigureSelf",
        account_requests.change_account,
    ),
    ("DELETE", f"{REDFISH_ROOT}{account_service.ACCOUNTS}/{{}}"): (
        "ConfigureUsers",
        account_requests.delete_account,
    ),
    ("POST", REDFISH_ROOT + event_service.SUBSCRIPTIONS): ("ConfigureManager", event_delivery.subscribe),
    ("DELETE", f"{REDFISH_ROOT}{event_service.SUBSCRIPTIONS}/{{}}"): ("ConfigureManager", event_delivery.unsubscribe),
    ("POST", event_service.TEST_EVENT): ("ConfigureManager", event_delivery.submit_test_event),
}
WRITE_ROUTE_PATTERNS = [(method, compile_path_template(path), *entry) for (method, path), entry in WRITE_ROUTES.items()]


class BmcHttpService:
    """The ASGI application of all BMCs. The port identifies the BMC."""

    def __init__(self, machines: dict[int, VirtualBmc]) -> None:
        self.machines = machines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. A silent BMC never answers."""
        machine = self.machines[scope["server"][1]]
        if machine.is_silent():
            await _hang_until_disconnect(receive)
            return
        answer: ASGIApp = await _answer(machine, Request(scope, receive))
        await answer(scope, receive, send)


async def _hang_until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(machine: VirtualBmc, request: Request) -> Response:
    try:
        if request.headers.get("odata-version", "4.0") != "4.0":
            raise RedfishErrorResponse(412, "PreconditionFailed", "This service supports OData 4.0 only")
        view = await machine.view()
        if not is_bmc_ready(view.state, view.now):
            raise RedfishErrorResponse(
                503, "ServiceTemporarilyUnavailable", "The BMC is restarting", "1", Retry_After="1"
            )
        return await _dispatch(machine, view, request, _path(request))
    except RedfishErrorResponse as error:
        return error_answer(error)


def _path(request: Request) -> str:
    path = request.url.path.rstrip("/")
    return LOGIN if path == f"{LOGIN}/Members" else path


async def _dispatch(machine: VirtualBmc, view: ResourceView, request: Request, path: str) -> Response:
    if request.method == "POST" and path == LOGIN:
        return await reset_and_account_requests.log_in(BmcRequest(machine, view, request, None))
    is_read = request.method in {"GET", "HEAD"}
    account = None if is_read and path in PUBLIC_PATHS else view.logins.account_of(request.headers)
    if account and account.must_change and (request.method, path) != ("PATCH", account_path(account)):
        raise password_change_required(account_path(account))
    if is_read:
        return await _handle_read(machine, view, request, path)
    assert account is not None
    return await _handle_write(machine, view, request, path, account)


async def _handle_read(machine: VirtualBmc, view: ResourceView, request: Request, path: str) -> Response:
    if path == service_root.METADATA_PATH:
        return service_root.answer_metadata()
    if path == event_service.STREAM and request.method == "GET":
        return event_delivery.open_event_stream(machine, request.headers)
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
        return await image_upload_and_task_monitor.read_task_monitor(view, ident)
    except LookupError:
        raise not_found(f"{MONITORS}/{ident}") from None


async def _handle_write(
    machine: VirtualBmc, view: ResourceView, request: Request, path: str, account: BmcAccount
) -> Response:
    for method, pattern, privilege, action in WRITE_ROUTE_PATTERNS:
        if method == request.method and (match := pattern.fullmatch(path)):
            call = BmcRequest(machine, view, request, account, match.groups())
            reset_and_account_requests.require_privilege(call, privilege)
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
    if path == event_service.STREAM:
        yield "GET"
    if RESOURCE_TREE.find(path) or path == service_root.METADATA_PATH or MONITOR.fullmatch(path):
        yield from ("GET", "HEAD")
    if path == LOGIN:
        yield "POST"
    yield from (method for method, pattern, *_ in WRITE_ROUTE_PATTERNS if pattern.fullmatch(path))
