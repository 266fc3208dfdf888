"""`POST /login` with a token begins a login, `POST /logout` ends it. `GET /login` is the form."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from assay.model.page import render_page
from assay.tell.pages.page_frame import list_urls
from assay.tell.server.app_state import AppState
from assay.tell.server.gate import SECURITY_HEADERS, AccessGate, name_visitor, refuse_other_site
from assay.tell.server.requests import read_body

MAX_FORM_BYTES = 4096


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of logins."""
    login = LoginRoutes(state)
    return [
        Route("/login", login.show_form, methods=["GET"]),
        Route("/login", login.begin, methods=["POST"]),
        Route("/logout", login.end, methods=["POST"]),
    ]


def choose_own_address(asked: str) -> str:
    """Return the address that somebody asked for if it is one of this server, else that of the first page."""
    is_own = asked.startswith("/") and not asked.startswith("//") and asked.isprintable() and "\\" not in asked
    return asked if is_own else "/"


def _show(asked: str, error: HTTPException | None = None) -> Response:
    """Return the form, which leads to an address of this server; with why the last try was refused."""
    refusal, status, headers = (error.detail, error.status_code, error.headers) if error else ("", 200, None)
    page = render_page(__package__, "login.html.j2", files=list_urls(), next=choose_own_address(asked), refusal=refusal)
    return HTMLResponse(page, status, {**SECURITY_HEADERS, **(headers or {})})


class LoginRoutes:
    """Lets people log in with their token, so that they need not show it with each request."""

    def __init__(self, state: AppState) -> None:
        self._state, self._gate = state, AccessGate(state)
        self._authenticator = state.make_authenticator("this token is nobody's")

    async def show_form(self, request: Request) -> Response:
        """Show the form."""
        return _show(request.query_params.get("next", ""))

    async def begin(self, request: Request) -> Response:
        """Begin the login of the token's owner, and lead to the page that was asked for."""
        refuse_other_site(request)
        rules = await self._gate.read_rules()
        body = await read_body(request, MAX_FORM_BYTES, self._state.limits.connections.body_seconds)
        form = parse_qs(body.decode(errors="replace"))
        token = form.get("token", [""])[0].strip()
        owner = await self._gate.find_token_owner(rules, token)
        try:
            self._authenticator.settle(request, name_visitor(owner.visitor), owner.refusal)
        except HTTPException as error:
            if "text/html" not in request.headers.get("accept", ""):
                raise
            return _show(form.get("next", [""])[0], error)
        assert owner.visitor is not None, "everybody else is refused"
        response = RedirectResponse(choose_own_address(form.get("next", [""])[0]), 303, SECURITY_HEADERS)
        await run_in_threadpool(self._state.sessions.begin, rules, request, response, owner.visitor.name)
        return response

    async def end(self, request: Request) -> Response:
        """End the login."""
        refuse_other_site(request)
        response = RedirectResponse("/login", 303, SECURITY_HEADERS)
        rules = await self._gate.read_rules()
        await run_in_threadpool(self._state.sessions.end, rules, request, response)
        return response
