"""The gate of pages and API: finds out who asks, by token, trusted proxy or login, and refuses everybody else.

Where no access is declared, whoever can read the token in a file of this server may read. An address proves nothing:
behind a proxy that says nothing of itself, everybody seems to be on this machine. Also the headers of every reply to a
browser.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from assay.model.specs.serving import AccessRules
from assay.tell.server.agent_tokens import read_bearer_token
from assay.tell.server.app_state import AppState, Authenticator
from assay.tell.server.requests import is_trusted_proxy, make_refusal
from assay.tell.server.visitor_rights import Visitor, make_visitor

MAX_NAME = 64
NOT_LOGGED_IN = "no token, no login, and no trusted proxy"
SAFE_METHODS = ("GET", "HEAD")
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
"""Scripts, styles and pictures of this server only; no frame of another page; no guesses about what a file is."""


def read_proxy_visitor(rules: AccessRules, request: Request) -> Visitor | str:
    """Return the visitor that a trusted proxy names, else why there is none.

    A header that comes twice names nobody: one of the two may be the visitor's own.
    """
    proxy = rules.proxy
    assert proxy is not None
    names, groups = request.headers.getlist(proxy.user_header), request.headers.getlist(proxy.groups_header)
    if len(names) != 1 or len(groups) > 1:
        return "the proxy names nobody" if not names else "the proxy's headers come more than once"
    name = names[0].strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        return "the proxy names somebody whose name cannot be one"
    member_of = {group.strip() for group in groups[0].split(",")} if groups else set()
    of_groups = (rights for group, rights in proxy.groups.items() if group in member_of)
    rights = rules.visitors.get(name) or next(of_groups, None)
    return make_visitor(name, rights) if rights else "neither this name nor one of its groups is declared"


class Identity(NamedTuple):
    """Who asks, or why nobody is known. `is_explicit`: by a token that no browser adds on its own."""

    visitor: Visitor | None
    refusal: str = ""
    is_explicit: bool = False


@dataclass(frozen=True)
class AccessGate:
    """Lets visitors in, by the policy's `access` as it was last read."""

    state: AppState

    @cached_property
    def _authenticator(self) -> Authenticator:
        return self.state.make_authenticator("log in, or show a token: `access` of the policy says who may")

    async def admit(self, request: Request) -> Visitor:
        """Return who asks. Raises a refusal for everybody who is not declared, and for a request of another site."""
        rules = await self.read_rules()
        identity = await self._identify(rules, request, read_bearer_token(request))
        if identity.refusal == NOT_LOGGED_IN and "text/html" in request.headers.get("accept", ""):
            asked = f"{request.url.path}?{request.url.query}".rstrip("?")
            raise HTTPException(303, identity.refusal, {"Location": f"/login?{urlencode({'next': asked})}"})
        self._authenticator.settle(request, name_visitor(identity.visitor), identity.refusal)
        assert identity.visitor is not None, "everybody else is refused"
        if not identity.is_explicit:
            refuse_other_site(request)
        return identity.visitor

    async def admits_still(self, request: Request, visitor: Visitor) -> bool:
        """Whether a visitor may go on with what began with this request: with the same rights, and not logged out."""
        try:
            return await self.admit(request) == visitor
        except HTTPException:
            return False

    async def read_rules(self) -> AccessRules:
        """Return who may do what, by the policy as it is now."""
        declared = (await run_in_threadpool(self.state.current.refresh)).policy.access
        return declared or self.state.local_access

    async def find_token_owner(self, rules: AccessRules, token: str) -> Identity:
        """Return whose token it is."""
        if not token:
            return Identity(None, "no token")
        for name, declared in rules.visitors.items():
            if await self.state.tokens.is_token_of(f"visitor {name}", declared.token, token):
                return Identity(make_visitor(name, declared), is_explicit=True)
        return Identity(None, "not a token of any visitor")

    async def _identify(self, rules: AccessRules, request: Request, token: str) -> Identity:
        """Return who asks: by a token, else by a trusted proxy's word, else by a login."""
        if token:
            return await self.find_token_owner(rules, token)
        if is_trusted_proxy(rules.proxy, request.client.host if request.client else ""):
            proxied = read_proxy_visitor(rules, request)
            return Identity(proxied) if isinstance(proxied, Visitor) else Identity(None, proxied)
        visitor = await run_in_threadpool(self.state.sessions.find_visitor, rules, request)
        return Identity(visitor, "" if visitor else NOT_LOGGED_IN)


def name_visitor(visitor: Visitor | None) -> str:
    """Return what a visitor claims to be, for the record of refusals."""
    return f"visitor {visitor.name}" if visitor else "visitor"


def refuse_other_site(request: Request) -> None:
    """Raise a refusal for a change that a page of another site may have asked a browser for."""
    if request.method not in SAFE_METHODS and request.headers.get("sec-fetch-site") != "same-origin":
        raise make_refusal(403, "changes are accepted from this server's own pages only, or with a token")
