"""`assay rma NODE`: the dossier of a node that goes back, with the photos that lie in its folder by now."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.roll import story_of
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.actions.action import Intent

app = typer.Typer(add_completion=False, help="Make the dossier of a node that goes back, with its photos.")


@app.command()
def rma(
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node.", show_default=False)],
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Make the dossier of a node that goes back to its vendor again, with the photos that lie in its folder by now.

    It says what it said when it was asked for, however much has happened since; only photos are added.
    """
    desk = Desk(fleet.resolve())
    story_of(desk, node)
    told = _made(desk, _asked(desk, node))
    typer.echo(json.dumps(told, indent=1, ensure_ascii=False) if form == "json" else _text(told))


def _asked(desk: Desk, node: str) -> Intent:
    """Return the last intent of a dossier. Raises Trouble for a node that was never to go back."""
    from assay.controller.journal import effects_in

    effects = effects_in(desk.ledger.entries(node, ["effect.intent"])).values()
    asked = [effect.intent for effect in effects if effect.intent.action == "dossier"]
    if not asked:
        raise Trouble(f"no dossier was ever asked for {node}", fix=f"assay explain {node} says where it is and why")
    return asked[-1]


def _made(desk: Desk, intent: Intent) -> dict[str, Any]:
    from assay.actions.rma.make import make, read_back
    from assay.actions.rma.places import archive_of, photos_of
    from assay.controller import desk as controller
    from assay.observe.store import EvidenceStore

    evidence = EvidenceStore(desk.evidence)
    context = controller.Desk(desk.fleet, desk.ledger, evidence, desk.clock, desk.home, desk.reports).context()
    photos = make(context, intent)
    told = read_back(desk.reports, intent.node, intent.effect)
    place = archive_of(desk.reports, intent.node, intent.effect)
    content = place.read_bytes()
    return {
        "node": intent.node,
        "archive": str(place.relative_to(desk.root)),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "suspects": told["suspects"],
        "folder": str(photos_of(desk.reports, intent.node, intent.effect).relative_to(desk.root)),
        "photos": [{**one, "files": photos.answer(one["name"])} for one in told["photos"]],
        "refused": photos.refused,
    }


def _text(told: dict[str, Any]) -> str:
    lines = [f"{told['archive']}  {told['bytes'] / 1024:.0f} KiB, sha256 {told['sha256'][:12]}…"]
    for one in told["suspects"]:
        place = one["place"] or "the node"
        lines.append(f"  goes back for {', '.join(one['faults'])}: {place}, serial number {one['serial']}")
    for one in told["photos"]:
        found = ", ".join(one["files"]) or f"missing: {one['shows']}"
        lines.append(f"  photo {one['name']:<9} {found}")
    lines += [f"  not taken: {name}: {why}" for name, why in told["refused"].items()]
    if any(not one["files"] for one in told["photos"]):
        lines.append(f"  put what is missing into {told['folder']}/ (label.jpg …), and run this again")
    return "\n".join(lines)
