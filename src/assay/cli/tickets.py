"""`assay tickets`: the work for technicians, with the exact place and what will prove it done."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.controller.people.outbox import Undelivered
    from assay.model.ticket import Happening, Listed, Place

app = typer.Typer(add_completion=False, help="Show the work for technicians.")


@app.callback(invoke_without_command=True)
def tickets(
    asked: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Closed ones too.")] = False,
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Show the open tickets, oldest first."""
    asked.obj = fleet
    if asked.invoked_subcommand:
        return
    from assay.controller.people.ticket_list import listed
    from assay.ledger.where import told

    desk = Desk(fleet.resolve())
    entries = told(desk.ledger_at)
    if not entries:
        _ = desk.fleet  # a folder that is no fleet repository says so
    found = [one for one in listed(entries) if every or not one.closed_at]
    for name, why in _waiting(desk):
        print(f"not delivered to {name} yet: {why}", file=sys.stderr)  # noqa: T201 — beside the answer
    if form == "json":
        print(json.dumps({"tickets": [_plain(one) for one in found]}))  # noqa: T201 — the answer
        return
    text = "\n\n".join(_text(one) for one in found)
    print(text or "no open tickets")  # noqa: T201 — the answer


@app.command()
def deliver(asked: typer.Context, fleet: FleetDir = Path(), form: Format = "text") -> None:
    """Deliver to every sink now what it lacks. Exit codes: 0 all have everything, 2 some do not."""
    from assay.controller import desk as controller
    from assay.controller.people.outbox import DELIVERED, deliver_tickets
    from assay.observe.store import EvidenceStore

    here = Desk((asked.obj if fleet == Path() else fleet).resolve())
    desk = controller.Desk(here.fleet, here.ledger, EvidenceStore(here.evidence), here.clock, here.home, here.reports)
    with _alone(here):
        before = here.ledger.head()
        failed = deliver_tickets(desk, now=True)
        done = here.ledger.entries(kinds=[DELIVERED], after=before)
    _tell_delivery([one.body for one in done], failed, form)
    raise typer.Exit(2 if failed else 0)


@contextmanager
def _alone(desk: Desk) -> Iterator[None]:
    """Be the only one who delivers while the block lasts. Raises Trouble, with who does, where another process may."""
    from assay.controller.lock import only_controller
    from assay.controller.people.outbox import POST, seeing_to_tickets
    from assay.ledger.url import is_shared

    fix = "it delivers by itself within a minute, and sooner when a ticket changed; or end it, and type this again"
    with seeing_to_tickets(desk.ledger) as ours:
        if not ours:
            lease = desk.ledger.holders().get(POST)
            raise Trouble(f"another controller{f' ({lease.holder})' if lease else ''} delivers the tickets", fix=fix)
        with nullcontext() if is_shared(desk.ledger) else only_controller(desk.home, desk.ledger, fix):
            yield


def _tell_delivery(done: list[dict[str, Any]], failed: list[Undelivered], form: str) -> None:
    if form == "json":
        lacking = [{"sink": one.route, "ticket": one.ticket, "why": one.why} for one in failed]
        print(json.dumps({"delivered": done, "undelivered": lacking}))  # noqa: T201 — the answer
        return
    lines = [f"{one['ticket']} → {one['sink']} {one['external']}".rstrip() for one in done]
    print("\n".join(lines) or "nothing new to deliver")  # noqa: T201 — the answer
    for one in failed:
        print(f"not delivered to {f'{one.route} {one.ticket}'.strip()}: {one.why}", file=sys.stderr)  # noqa: T201 — and what is amiss


def _waiting(desk: Desk) -> list[tuple[str, str]]:
    from assay.controller.people.postponed import Postponed

    return Postponed(desk.home / "delivery.json").waiting()


def _plain(one: Listed) -> dict[str, Any]:
    times = {"opened_at": one.opened_at, "updated_at": one.updated_at, "closed_at": one.closed_at, "by": one.by}
    history = [{"at": each.at, "what": each.what, "why": each.why} for each in one.history]
    return {**one.ticket.as_json(), **times, "reopened": one.reopened, "history": history}


def _text(one: Listed) -> str:
    ticket = one.ticket
    when = f"closed {_minute(one.closed_at)}" if one.closed_at else f"open since {_minute(one.opened_at)}"
    steps = "\n".join(f"{number}. {line}" for number, line in enumerate(ticket.steps.splitlines(), 1))
    told = {"expected": ticket.expected, "seen": ticket.seen, "steps": steps, "files": ticket.files}
    told |= {"verify": ticket.verify, "closed by": one.by}
    told["history"] = "\n".join(map(_happened, one.history)) if one.reopened else ""
    places = "\n".join(_place(place) for place in ticket.places)
    lines = [line for name, text in {"at": places, **told}.items() for line in _indented(name, text)]
    return "\n".join([f"{ticket.id}  {ticket.title}  ({when})", *lines])


def _happened(one: Happening) -> str:
    return f"{_minute(one.at)} {one.what}: {' '.join(one.why.split())}".rstrip(": ")


def _minute(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


def _place(place: Place) -> str:
    words = [place.site, place.rack, f"U{place.u}" if place.u else "", place.device, place.port, place.label]
    return " ".join(word for word in words if word)


def _indented(name: str, text: str) -> list[str]:
    return [f"  {name if number == 0 else '':<9} {line}" for number, line in enumerate(text.splitlines())]
