"""`assay tickets`: the work for technicians, with the exact place and what will prove it done.

`assay rma NODE`: the dossier of a node that goes back, with the photos that lie in its folder by now.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.node_lookup import find_node_state
from assay.cli.operator_orders import find_operator_name
from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.actions.action import EffectIntent

rma_app = typer.Typer(add_completion=False, help="Make the dossier of a node that goes back, with its photos.")

PhotoAuthorOption = Annotated[
    str,
    typer.Option("--who", envvar="ASSAY_WHO", help="Who adds photos; by default the user who runs the command."),
]


@rma_app.command()
def rma(
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node.", show_default=False)],
    who: PhotoAuthorOption = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Make the dossier of a node that goes back to its vendor again, with the photos that lie in its folder by now.

    It says what it said when it was asked for, however much has happened since; only photos are added. Each is listed
    with who added it, when, and its sha256, in the archive and in `assay history`.
    """
    desk = Workspace(fleet.resolve())
    find_node_state(desk, node)
    told = _make_dossier(desk, _find_dossier_intent(desk, node), find_operator_name(who))
    typer.echo(json.dumps(told, indent=1, ensure_ascii=False) if form == "json" else _format_dossier(told))


def _find_dossier_intent(desk: Workspace, node: str) -> EffectIntent:
    """Return the last intent of a dossier. Raises Trouble for a node that was never to go back."""
    from assay.controller.effects.effect_journal import parse_effects

    effects = parse_effects(desk.ledger.entries(node, ["effect.intent"])).values()
    asked = [effect.intent for effect in effects if effect.intent.action == "dossier"]
    if not asked:
        raise AssayError(f"no dossier was ever asked for {node}", fix=f"assay explain {node} says where it is and why")
    return asked[-1]


def _make_dossier(desk: Workspace, intent: EffectIntent, who: str) -> dict[str, Any]:
    from assay.actions.rma.dossier_archive import locate_dossier, locate_photo_folder
    from assay.actions.rma.dossier_build import read_dossier, write_dossier
    from assay.actions.rma.dossier_photos import PHOTOS_KIND, list_photos, make_photo_entries, read_photos
    from assay.controller import context as controller
    from assay.observe.evidence_store import EvidenceStore

    evidence = EvidenceStore(desk.evidence_dir)
    context = controller.ControllerContext(
        desk.fleet, desk.ledger, evidence, desk.clock, desk.data_dir, desk.reports_dir
    ).make_action_context()
    files = read_photos(locate_photo_folder(desk.reports_dir, intent.node, intent.effect)).accepted
    new = list_photos(files, desk.ledger.entries(intent.node, [PHOTOS_KIND]), intent.effect)
    desk.ledger.append(*make_photo_entries(intent.node, intent.effect, new, who, context.clock.now().isoformat()))
    photos = write_dossier(context, intent)
    told = read_dossier(desk.reports_dir, intent.node, intent.effect)
    place = locate_dossier(desk.reports_dir, intent.node, intent.effect)
    content = place.read_bytes()
    return {
        "node": intent.node,
        "archive": str(place.relative_to(desk.root)),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "suspects": told["suspects"],
        "folder": str(locate_photo_folder(desk.reports_dir, intent.node, intent.effect).relative_to(desk.root)),
        "photos": [{**one, "files": photos.find_files(one["name"])} for one in told["photos"]],
        "taken": list_photos(photos.accepted, desk.ledger.entries(intent.node, [PHOTOS_KIND]), intent.effect),
        "refused": photos.rejected,
    }


def _format_dossier(told: dict[str, Any]) -> str:
    lines = [f"{told['archive']}  {told['bytes'] / 1024:.0f} KiB, sha256 {told['sha256'][:12]}…"]
    for one in told["suspects"]:
        place = one["place"] or "the node"
        lines.append(f"  goes back for {', '.join(one['faults'])}: {place}, serial number {one['serial']}")
    pictures = {one["file"]: _format_photo(one) for one in told["taken"]}
    for one in told["photos"]:
        found = [pictures.pop(file) for file in one["files"]] or [f"missing: {one['shows']}"]
        lines += [f"  photo {one['name']:<9} {text}" for text in found]
    lines += [f"  photo {'':<9} {text}" for text in pictures.values()]
    lines += [f"  not taken: {name}: {why}" for name, why in told["refused"].items()]
    if any(not one["files"] for one in told["photos"]):
        lines.append(f"  put what is missing into {told['folder']}/ (label.jpg …), and run this again")
    return "\n".join(lines)


def _format_photo(one: dict[str, Any]) -> str:
    by = f", {one['who']} {one['at'][:16].replace('T', ' ')} UTC" if one["who"] else ""
    return f"{one['file']}{by}, {one['bytes'] / 1024:.0f} KiB, sha256 {one['sha256'][:12]}…"


if TYPE_CHECKING:
    from assay.model.ticket import TicketEvent, TicketPlace, TicketRecord
    from assay.tickets.ticket_delivery import UndeliveredTicket

tickets_app = typer.Typer(add_completion=False, help="Show the work for technicians.")


@tickets_app.callback(invoke_without_command=True)
def tickets(
    asked: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Closed ones too.")] = False,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show the open tickets, oldest first."""
    asked.obj = fleet
    if asked.invoked_subcommand:
        return
    from assay.ledger.location import read_all_entries
    from assay.tickets.ticket_lifecycle import list_tickets

    desk = Workspace(fleet.resolve())
    entries = read_all_entries(desk.ledger_location)
    if not entries:
        _ = desk.fleet  # a folder that is no fleet repository says so
    found = [one for one in list_tickets(entries) if every or not one.closed_at]
    for name, why in _undelivered_sinks(desk):
        print(f"not delivered to {name} yet: {why}", file=sys.stderr)  # noqa: T201 — beside the answer
    if form == "json":
        print(json.dumps({"tickets": [_ticket_as_json(one) for one in found]}))  # noqa: T201 — the answer
        return
    text = "\n\n".join(_format_ticket(one) for one in found)
    print(text or "no open tickets")  # noqa: T201 — the answer


@tickets_app.command()
def deliver(asked: typer.Context, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Deliver to every sink now what it lacks. Exit codes: 0 all have everything, 2 some do not."""
    from assay.controller import context as controller
    from assay.observe.evidence_store import EvidenceStore
    from assay.tickets.ticket_delivery import TICKET_DELIVERED, deliver_tickets

    here = Workspace((asked.obj if fleet == Path() else fleet).resolve())
    desk = controller.ControllerContext(
        here.fleet, here.ledger, EvidenceStore(here.evidence_dir), here.clock, here.data_dir, here.reports_dir
    )
    with _exclusive_delivery(here):
        before = here.ledger.head()
        failed = deliver_tickets(desk, now=True)
        done = here.ledger.entries(kinds=[TICKET_DELIVERED], after=before)
    _print_delivery([one.body for one in done], failed, form)
    raise typer.Exit(2 if failed else 0)


@contextmanager
def _exclusive_delivery(desk: Workspace) -> Iterator[None]:
    """Be the only one who delivers while the block lasts. Raises Trouble, with who does, where another process may."""
    from assay.controller.controller_locks import hold_controller_lock
    from assay.ledger.store import is_shared
    from assay.tickets.ticket_delivery import DELIVERY_LEASE, hold_delivery_lease

    fix = "it delivers by itself within a minute, and sooner when a ticket changed; or end it, and type this again"
    with hold_delivery_lease(desk.ledger) as ours:
        if not ours:
            lease = desk.ledger.leases().get(DELIVERY_LEASE)
            raise AssayError(f"another controller{f' ({lease.holder})' if lease else ''} delivers the tickets", fix=fix)
        with nullcontext() if is_shared(desk.ledger) else hold_controller_lock(desk.data_dir, desk.ledger, fix):
            yield


def _print_delivery(done: list[dict[str, Any]], failed: list[UndeliveredTicket], form: str) -> None:
    if form == "json":
        lacking = [{"sink": one.route, "ticket": one.ticket, "why": one.reason} for one in failed]
        print(json.dumps({"delivered": done, "undelivered": lacking}))  # noqa: T201 — the answer
        return
    lines = [f"{one['ticket']} → {one['sink']} {one['external']}".rstrip() for one in done]
    print("\n".join(lines) or "nothing new to deliver")  # noqa: T201 — the answer
    for one in failed:
        print(f"not delivered to {f'{one.route} {one.ticket}'.strip()}: {one.reason}", file=sys.stderr)  # noqa: T201 — and what is amiss


def _undelivered_sinks(desk: Workspace) -> list[tuple[str, str]]:
    from assay.tickets.delivery_backoff import DeliveryBackoff

    return DeliveryBackoff(desk.data_dir / "delivery.json").list_failures()


def _ticket_as_json(one: TicketRecord) -> dict[str, Any]:
    times = {"opened_at": one.opened_at, "updated_at": one.updated_at, "closed_at": one.closed_at, "by": one.by}
    history = [{"at": each.at, "what": each.what, "why": each.why} for each in one.history]
    return {**one.ticket.as_json(), **times, "reopened": one.reopen_count, "history": history}


def _format_ticket(one: TicketRecord) -> str:
    ticket = one.ticket
    when = f"closed {_minute(one.closed_at)}" if one.closed_at else f"open since {_minute(one.opened_at)}"
    steps = "\n".join(f"{number}. {line}" for number, line in enumerate(ticket.steps.splitlines(), 1))
    told = {"expected": ticket.expected, "seen": ticket.seen, "steps": steps, "files": ticket.files}
    told |= {"verify": ticket.verify, "closed by": one.by}
    told["history"] = "\n".join(map(_format_event, one.history)) if one.reopen_count else ""
    places = "\n".join(_format_place(place) for place in ticket.places)
    lines = [line for name, text in {"at": places, **told}.items() for line in _indented(name, text)]
    return "\n".join([f"{ticket.id}  {ticket.title}  ({when})", *lines])


def _format_event(one: TicketEvent) -> str:
    return f"{_minute(one.at)} {one.what}: {' '.join(one.why.split())}".rstrip(": ")


def _minute(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


def _format_place(place: TicketPlace) -> str:
    words = [place.site, place.rack, f"U{place.u}" if place.u else "", place.device, place.port, place.label]
    return " ".join(word for word in words if word)


def _indented(name: str, text: str) -> list[str]:
    return [f"  {name if number == 0 else '':<9} {line}" for number, line in enumerate(text.splitlines())]
