"""`assay rma NODE`: the dossier of a node that goes back, with the photos that lie in its folder by now."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.roll import story_of
from assay.cli.word import name_of
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.actions.action import Intent

app = typer.Typer(add_completion=False, help="Make the dossier of a node that goes back, with its photos.")

Adds = Annotated[
    str,
    typer.Option("--who", envvar="ASSAY_WHO", help="Who adds photos; by default the user who runs the command."),
]


@app.command()
def rma(
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node.", show_default=False)],
    who: Adds = "",
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Make the dossier of a node that goes back to its vendor again, with the photos that lie in its folder by now.

    It says what it said when it was asked for, however much has happened since; only photos are added. Each is listed
    with who added it, when, and its sha256, in the archive and in `assay history`.
    """
    desk = Desk(fleet.resolve())
    story_of(desk, node)
    told = _made(desk, _asked(desk, node), name_of(who))
    typer.echo(json.dumps(told, indent=1, ensure_ascii=False) if form == "json" else _text(told))


def _asked(desk: Desk, node: str) -> Intent:
    """Return the last intent of a dossier. Raises Trouble for a node that was never to go back."""
    from assay.controller.effects.journal import effects_in

    effects = effects_in(desk.ledger.entries(node, ["effect.intent"])).values()
    asked = [effect.intent for effect in effects if effect.intent.action == "dossier"]
    if not asked:
        raise Trouble(f"no dossier was ever asked for {node}", fix=f"assay explain {node} says where it is and why")
    return asked[-1]


def _made(desk: Desk, intent: Intent, who: str) -> dict[str, Any]:
    from assay.actions.rma.listed import KIND, added, listed
    from assay.actions.rma.make import make, read_back
    from assay.actions.rma.photos import photos_in
    from assay.actions.rma.places import archive_of, photos_of
    from assay.controller import desk as controller
    from assay.observe.store import EvidenceStore

    evidence = EvidenceStore(desk.evidence)
    context = controller.Desk(desk.fleet, desk.ledger, evidence, desk.clock, desk.home, desk.reports).context()
    files = photos_in(photos_of(desk.reports, intent.node, intent.effect)).taken
    new = listed(files, desk.ledger.entries(intent.node, [KIND]), intent.effect)
    desk.ledger.append(*added(intent.node, intent.effect, new, who, context.clock.now().isoformat()))
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
        "taken": listed(photos.taken, desk.ledger.entries(intent.node, [KIND]), intent.effect),
        "refused": photos.refused,
    }


def _text(told: dict[str, Any]) -> str:
    lines = [f"{told['archive']}  {told['bytes'] / 1024:.0f} KiB, sha256 {told['sha256'][:12]}…"]
    for one in told["suspects"]:
        place = one["place"] or "the node"
        lines.append(f"  goes back for {', '.join(one['faults'])}: {place}, serial number {one['serial']}")
    pictures = {one["file"]: _picture(one) for one in told["taken"]}
    for one in told["photos"]:
        found = [pictures.pop(file) for file in one["files"]] or [f"missing: {one['shows']}"]
        lines += [f"  photo {one['name']:<9} {text}" for text in found]
    lines += [f"  photo {'':<9} {text}" for text in pictures.values()]
    lines += [f"  not taken: {name}: {why}" for name, why in told["refused"].items()]
    if any(not one["files"] for one in told["photos"]):
        lines.append(f"  put what is missing into {told['folder']}/ (label.jpg …), and run this again")
    return "\n".join(lines)


def _picture(one: dict[str, Any]) -> str:
    by = f", {one['who']} {one['at'][:16].replace('T', ' ')} UTC" if one["who"] else ""
    return f"{one['file']}{by}, {one['bytes'] / 1024:.0f} KiB, sha256 {one['sha256'][:12]}…"
