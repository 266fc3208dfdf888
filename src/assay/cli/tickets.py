"""`assay tickets`: the work for technicians, with the exact place and what will prove it done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format

if TYPE_CHECKING:
    from assay.model.ticket import Happening, Listed, Place

app = typer.Typer(add_completion=False, help="Show the work for technicians.")


@app.command()
def tickets(
    every: Annotated[bool, typer.Option("--all", help="Closed ones too.")] = False,
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Show the open tickets, oldest first."""
    from assay.controller.ticket_list import listed

    found = [one for one in listed(Desk(fleet.resolve()).ledger.entries()) if every or not one.closed_at]
    if form == "json":
        print(json.dumps({"tickets": [_plain(one) for one in found]}))  # noqa: T201 — the answer
        return
    text = "\n\n".join(_text(one) for one in found)
    print(text or "no open tickets")  # noqa: T201 — the answer


def _plain(one: Listed) -> dict[str, Any]:
    times = {"opened_at": one.opened_at, "updated_at": one.updated_at, "closed_at": one.closed_at, "by": one.by}
    history = [{"at": each.at, "what": each.what, "why": each.why} for each in one.history]
    return {**one.ticket.as_json(), **times, "reopened": one.reopened, "history": history}


def _text(one: Listed) -> str:
    ticket, when = one.ticket, f"closed {one.closed_at}" if one.closed_at else f"open since {one.opened_at}"
    told = {"expected": ticket.expected, "seen": ticket.seen, "verify": ticket.verify, "closed by": one.by}
    told["history"] = "\n".join(map(_happened, one.history)) if one.reopened else ""
    places = "\n".join(_place(place) for place in ticket.places)
    lines = [line for name, text in {"at": places, **told}.items() for line in _indented(name, text)]
    return "\n".join([f"{ticket.id}  {ticket.title}  ({when})", *lines])


def _happened(one: Happening) -> str:
    return f"{one.at} {one.what}: {' '.join(one.why.split())}".rstrip(": ")


def _place(place: Place) -> str:
    words = [place.site, place.rack, f"U{place.u}" if place.u else "", place.device, place.port, place.label]
    return " ".join(word for word in words if word)


def _indented(name: str, text: str) -> list[str]:
    return [f"  {name if number == 0 else '':<9} {line}" for number, line in enumerate(text.splitlines())]
