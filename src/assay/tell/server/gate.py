"""The gate of pages and API: finds out who asks, and refuses everybody else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from assay.model.specs.access_rules import AccessRules
from assay.tell.server.app_state import AppState, Authenticator
from assay.tell.server.local_reader import is_local_reader
from assay.tell.server.proxy_identity import is_trusted_proxy, read_proxy_visitor
from assay.tell.server.request_bodies_and_refusals import make_refusal
from assay.tell.server.tokens_and_rate_limits import read_bearer_token
from assay.tell.server.visitor import LOCAL_READER, Visitor, make_visitor

ONLY_HERE = "nobody is declared who may read (`access` of the policy): this is shown on this machine only"
NOT_LOGGED_IN = "no token, no login, and no trusted proxy"
SAFE_METHODS = ("GET", "HEAD")


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
        rules = (await run_in_threadpool(self.state.current.refresh)).policy.access
        if rules is None:
            return self._admit_local_reader(request)
        found = await self._identify(rules, request, read_bearer_token(request))
        if found.refusal == NOT_LOGGED_IN and "text/html" in request.headers.get("accept", ""):
            raise HTTPException(303, found.refusal, {"Location": "/login"})
        self._authenticator.settle(request, name_visitor(found.visitor), found.refusal)
        assert found.visitor is not None, "everybody else is refused"
        if not found.is_explicit:
            refuse_other_site(request)
        return found.visitor

    async def find_token_owner(self, rules: AccessRules, token: str) -> Identity:
        """Return whose token it is."""
        if not token:
            return Identity(None, "no token")
        for name, declared in rules.visitors.items():
            if await self.state.tokens.is_token_of(f"visitor {name}", declared.token, token):
                return Identity(make_visitor(name, declared), is_explicit=True)
        return Identity(None, "not a token of any visitor")

    def _admit_local_reader(self, request: Request) -> Visitor:
        if not is_local_reader(request) or request.method not in SAFE_METHODS:
            raise make_refusal(403, ONLY_HERE)
        return LOCAL_READER

    async def _identify(self, rules: AccessRules, request: Request, token: str) -> Identity:
        """Return who asks: by a token, else by a trusted proxy's word, else by a login."""
        if token:
            return await self.find_token_owner(rules, token)
        if is_trusted_proxy(rules.proxy, request.client.host if request.client else ""):
            found = read_proxy_visitor(rules, request)
            return Identity(found) if isinstance(found, Visitor) else Identity(None, found)
        visitor = await run_in_threadpool(self.state.sessions.find_visitor, rules, request)
        return Identity(visitor, "" if visitor else NOT_LOGGED_IN)


def name_visitor(visitor: Visitor | None) -> str:
    """Return what a visitor claims to be, for the record of refusals."""
    return f"visitor {visitor.name}" if visitor else "visitor"


def refuse_other_site(request: Request) -> None:
    """Raise a refusal for a change that a page of another site may have asked a browser for."""
    if request.method not in SAFE_METHODS and request.headers.get("sec-fetch-site") != "same-origin":
        raise make_refusal(403, "changes are accepted from this server's own pages only, or with a token")
