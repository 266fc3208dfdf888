"""The state that all routes share."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Event

from starlette.requests import Request

from assay.act.loop.context import ControllerContext
from assay.act.loop.fleet_reload import CurrentContext
from assay.model.specs.credential_reference import TokenReference
from assay.model.specs.serving import AccessRules, DeclaredVisitor, IntakeLimits
from assay.tell.server.agent_tokens import AgentTokens, RateLimiter, find_reader_token
from assay.tell.server.batch_writer import BatchWriter
from assay.tell.server.requests import RefusalLog, is_trusted_proxy, make_refusal
from assay.tell.server.sessions import Sessions
from assay.tell.server.visitor_rights import LOCAL_READER
from assay.tell.server.visitor_shares import VisitorShares
from assay.tell.views.records import LiveRecords

UNAUTHORIZED_BURST, UNAUTHORIZED_RATE = 20, 1.0
ENDED_SESSIONS_FILE = "ended-sessions.json"


@dataclass(frozen=True)
class AppState:
    """The current context, the agents' tokens, the intake of their batches, and who was refused.

    `report` shows a line to people. `ending` is set when the server is told to end: streams then end by themselves.
    """

    current: CurrentContext
    tokens: AgentTokens
    intake: BatchWriter
    refusals: RefusalLog
    report: Callable[[str], None] = lambda _: None
    ending: Event = field(default_factory=Event)
    shares: VisitorShares = field(default_factory=VisitorShares)

    @cached_property
    def records(self) -> LiveRecords:
        """What views are made from."""
        return LiveRecords(self.current.refresh)

    @cached_property
    def sessions(self) -> Sessions:
        """The logins of visitors."""
        return Sessions(self.context.fleet.root, self.context.home / ENDED_SESSIONS_FILE, self.report)

    @cached_property
    def reader_token(self) -> Path:
        """The file with the token by which people read where the policy declares nobody."""
        return find_reader_token(self.context.home)

    @cached_property
    def local_access(self) -> AccessRules:
        """Who may read where the policy declares nobody: whoever can read that file."""
        token = TokenReference(file=str(self.reader_token.absolute()))
        return AccessRules(visitors={LOCAL_READER.name: DeclaredVisitor(role=LOCAL_READER.role, token=[token])})

    @property
    def context(self) -> ControllerContext:
        """The controller's context, with the fleet as it was last read."""
        return self.current.context

    @property
    def limits(self) -> IntakeLimits:
        """What the policy lets the server accept."""
        return self.context.policy.intake

    def find_sender(self, request: Request) -> str:
        """Return the address from which a request comes, by which limits count; a trusted proxy says it."""
        address = request.client.host if request.client else ""
        access = self.context.policy.access
        if access and is_trusted_proxy(access.proxy, address):
            with contextlib.suppress(ValueError):
                named = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
                address = str(ipaddress.ip_address(named))
        return group_address(address)

    def make_authenticator(self, refusal: str) -> Authenticator:
        """Return what refuses the bad tokens of one route; `refusal` is the answer to a bad one."""
        return Authenticator(self, refusal, RateLimiter(UNAUTHORIZED_BURST, UNAUTHORIZED_RATE))


@dataclass(frozen=True)
class Authenticator:
    """Refuses bad tokens. A refusal does not say why; repeated ones of an address must wait."""

    state: AppState
    refusal: str
    limit: RateLimiter

    def settle(self, request: Request, claims: str, why_refused: str) -> None:
        """Return where `why_refused` is ""; else record who claimed to be whom, and raise a refusal."""
        if not why_refused:
            return
        address = self.state.find_sender(request)
        self.state.refusals.record(address, why_refused, claims)
        if wait := self.limit.wait_s(address):
            raise make_refusal(429, "too many refusals; wait a little", wait_s=wait)
        raise make_refusal(401, self.refusal)


def group_address(host: str) -> str:
    """Return the address that limits count: an IPv4 address, or the /64 network of an IPv6 address."""
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    return str(address.ipv4_mapped or ipaddress.IPv6Network((address, 64), strict=False))
