"""`POST /api/v1/machines/seen`: DHCP servers and other tools report the machines that they saw.

A sender shows a `report_token` of a Provisioning. What it says is recorded, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from assay.act.boot.matching import record_sightings
from assay.act.boot.reports import MachineReport, parse_machine_report
from assay.model.errors import AssayError
from assay.tell.server.agent_tokens import RateLimiter, read_bearer_token
from assay.tell.server.app_state import AppState
from assay.tell.server.requests import make_refusal, read_body

SEEN = "/machines/seen"
MAX_BODY_BYTES = 1024 * 1024
REPORTS_BURST, REPORTS_RATE = 200, 20.0
"""Calls of the senders of one Provisioning, at once and a second."""


class ReportAnswer(BaseModel):
    """How many machines were reported, and how many of them say something new of themselves."""

    reported: int
    new: int


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the route of reports."""
    return [Route(f"/api/v1{SEEN}", MachineReports(state).post_report, methods=["POST"])]


def describe_reports() -> dict[str, tuple[str, type[MachineReport], type[ReportAnswer]]]:
    """Return the address, for the OpenAPI document: path → summary, body, answer."""
    return {SEEN: ("Report machines that were seen", MachineReport, ReportAnswer)}


class MachineReports:
    """Takes reports from senders that present the token of a Provisioning."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._call_limit = RateLimiter(REPORTS_BURST, REPORTS_RATE)
        self._authenticator = state.make_authenticator("this is not the report_token of a Provisioning")

    async def post_report(self, request: Request) -> Response:
        """Record the machines of one report, and reply when they are written."""
        name = await self._authenticate(request)
        if wait := self._call_limit.wait_s(name):
            raise make_refusal(429, "too many reports; wait a little, or report several machines at once", wait_s=wait)
        body = await read_body(request, MAX_BODY_BYTES, self._state.limits.connections.body_seconds)
        try:
            machines = parse_machine_report(body)
        except AssayError as error:
            raise make_refusal(422, error.what) from None
        try:
            context = self._state.context
            new = await run_in_threadpool(
                lambda: len(record_sightings(context.ledger, machines, "report", context.clock.now()))
            )
        except AssayError as error:
            raise make_refusal(503, error.what, wait_s=5) from None
        answer = ReportAnswer(reported=len(machines), new=new)
        return Response(answer.model_dump_json(), media_type="application/json")

    async def _authenticate(self, request: Request) -> str:
        """Return the Provisioning whose token the sender shows. A refusal does not say why."""
        token, declared = read_bearer_token(request), self._state.context.fleet.provisionings
        sender = ""
        for name, provisioning in declared.items():
            references = provisioning.report_token
            if token and await self._state.tokens.is_token_of(f"Provisioning {name} report_token", references, token):
                sender = name
                break
        self._authenticator.settle(request, f"reports of {sender}", "" if sender else "not a report_token")
        return sender
