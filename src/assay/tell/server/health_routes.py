"""`/healthz`: whether the process works; `/readyz`: whether all that it needs is there, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.act.loop.context import ControllerContext
from assay.model.errors import AssayError
from assay.tell.server.app_state import AppState

FLEET_IN_ERROR = "its files are in error; this process works with the fleet that it read before"


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of `assay serve`. `/healthz` is 200 while batches can be written, else 503."""

    async def get_health(_request: Request) -> Response:
        return _reply({} if state.intake.alive() else {"intake": "its thread has ended"})

    async def get_readiness(_request: Request) -> Response:
        return await reply_readiness(lambda: _find_missing(state))

    return [Route("/healthz", get_health), Route("/readyz", get_readiness)]


def _find_missing(state: AppState) -> Iterator[tuple[str, str]]:
    if not state.intake.alive():
        yield "intake", "its thread has ended"
    if not state.current.is_usable:
        yield "fleet", FLEET_IN_ERROR
    yield from find_ledger_error(state.context)


def find_ledger_error(context: ControllerContext) -> Iterator[tuple[str, str]]:
    """Yield why the ledger cannot be read, if it cannot."""
    try:
        context.ledger.head()
    except AssayError as error:
        yield "ledger", error.what


async def reply_readiness(find_missing: Callable[[], Iterator[tuple[str, str]]]) -> Response:
    """Reply 200, or 503 with what is missing; a thread finds that out, since a ledger may hang."""
    return _reply(await run_in_threadpool(lambda: dict(find_missing())))


def _reply(missing: dict[str, str]) -> Response:
    return JSONResponse({"ok": not missing, **missing}, 503 if missing else 200)
