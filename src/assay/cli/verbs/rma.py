"""`assay rma NODE`: rebuilds the RMA dossier of a node, with the photos that are in its folder now."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import print_answer
from assay.cli.operator_orders import find_operator_name
from assay.cli.options import FleetDir, OutputFormat, complete_nodes
from assay.cli.workspace import Workspace, find_node_state
from assay.model.errors import AssayError
from assay.model.facts import fact, from_json
from assay.model.timestamps import format_minute

if TYPE_CHECKING:
    from assay.act.actions.action import EffectIntent


@fact
class SuspectPart:
    """A part that open hardware faults name."""

    kind: str
    """The kind of the part, such as gpu; node for the whole node."""
    place: str
    """Its place in the node; "" for the whole node."""
    serial: str
    """Its serial number."""
    faults: list[str]
    """The fault classes."""


@fact
class RequiredPhoto:
    """A photo that the dossier needs."""

    name: str
    """The name of the photo, such as label."""
    shows: str
    """What it must show."""
    files: list[str]
    """The files that are this photo; none if it is missing."""


@fact
class TakenPhoto:
    """A photo in the dossier."""

    file: str
    """The name of the file."""
    sha256: str
    """Its digest."""
    bytes: int
    """Its size in bytes."""
    who: str
    """Who added it; "" if nobody has."""
    at: str
    """When: ISO 8601 with the offset of UTC; "" if nobody has."""


@fact
class DossierAnswer:
    """The dossier of a node that goes back to its vendor."""

    node: str
    """The name of the node."""
    archive: str
    """The archive, relative to the fleet repository."""
    bytes: int
    """The size of the archive in bytes."""
    sha256: str
    """The digest of the archive."""
    suspects: list[SuspectPart]
    """The parts that go back."""
    folder: str
    """The folder for photos, relative to the fleet repository."""
    photos: list[RequiredPhoto]
    """The photos that the dossier needs."""
    taken: list[TakenPhoto]
    """The photos that it has."""
    refused: dict[str, str]
    """The files in the folder that were not taken, each with the reason."""


rma_app = typer.Typer(add_completion=False)

PhotoAuthor = Annotated[
    str,
    typer.Option("--who", metavar="NAME", envvar="ASSAY_WHO", help="Who adds the photos. Default: the current user."),
]


@rma_app.command()
def rma(
    node: Annotated[
        str, typer.Argument(metavar="NODE", autocompletion=complete_nodes, help="The node.", show_default=False)
    ],
    who: PhotoAuthor = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Rebuild the dossier of a node that goes back to its vendor, with the photos that are in its folder now.

    The facts stay those of the time when the dossier was requested; the command adds only photos. The archive and
    `assay history` list each photo with its author, time and sha256.

    Exit codes: 0 built; 2 no dossier was requested for this node.
    """
    workspace = Workspace(fleet.resolve())
    find_node_state(workspace, node)
    dossier = _build_dossier(workspace, _find_dossier_intent(workspace, node), find_operator_name(who))
    print_answer(dossier, form, _format_dossier(dossier))


def _find_dossier_intent(workspace: Workspace, node: str) -> EffectIntent:
    """Return the last request for a dossier of the node. Raises AssayError if there is none."""
    from assay.act.effects.effect_journal import parse_effects

    effects = parse_effects(workspace.ledger.entries(node, ["effect.intent"])).values()
    intents = [effect.intent for effect in effects if effect.intent.action == "dossier"]
    if not intents:
        raise AssayError(f"no dossier was requested for {node}", fix=f"assay explain {node} shows its state")
    return intents[-1]


def _build_dossier(workspace: Workspace, intent: EffectIntent, who: str) -> DossierAnswer:
    from assay.act.remedies.dossier_build import locate_dossier, locate_photo_folder, read_dossier, write_dossier
    from assay.act.remedies.dossier_content import PHOTOS_KIND, list_photos, make_photo_entries, read_photos

    context = workspace.controller_context()
    node, effect = intent.node, intent.effect
    folder = locate_photo_folder(workspace.reports_dir, node, effect)
    files = read_photos(folder).accepted
    new = list_photos(files, workspace.ledger.entries(node, [PHOTOS_KIND]), effect)
    workspace.ledger.append(*make_photo_entries(node, effect, new, who, context.clock.now().isoformat()))
    photos = write_dossier(context, intent)
    facts = read_dossier(workspace.reports_dir, node, effect)
    archive = locate_dossier(workspace.reports_dir, node, effect)
    content, entries = archive.read_bytes(), workspace.ledger.entries(node, [PHOTOS_KIND])
    return DossierAnswer(
        node=node,
        archive=str(archive.relative_to(workspace.root)),
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        suspects=[from_json(SuspectPart, suspect) for suspect in facts["suspects"]],
        folder=str(folder.relative_to(workspace.root)),
        photos=[
            RequiredPhoto(name=photo["name"], shows=photo["shows"], files=list(photos.find_files(photo["name"])))
            for photo in facts["photos"]
        ],
        taken=[from_json(TakenPhoto, photo) for photo in list_photos(photos.accepted, entries, effect)],
        refused=photos.rejected,
    )


def _format_dossier(dossier: DossierAnswer) -> list[str]:
    lines = [f"{dossier.archive}  {dossier.bytes / 1024:.0f} KiB, sha256 {dossier.sha256[:12]}…"]
    for suspect in dossier.suspects:
        place = suspect.place or "the node"
        lines.append(f"  goes back for {', '.join(suspect.faults)}: {place}, serial number {suspect.serial}")
    photos = {}
    for photo in dossier.taken:
        author = f", {photo.who} {format_minute(photo.at)}" if photo.who else ""
        photos[photo.file] = f"{photo.file}{author}, {photo.bytes / 1024:.0f} KiB, sha256 {photo.sha256[:12]}…"
    for request in dossier.photos:
        texts = [photos.pop(file) for file in request.files] or [f"missing: {request.shows}"]
        lines += [f"  photo {request.name:<9} {text}" for text in texts]
    lines += [f"  photo {'':<9} {text}" for text in photos.values()]
    lines += [f"  not taken: {name}: {reason}" for name, reason in dossier.refused.items()]
    if any(not request.files for request in dossier.photos):
        lines.append(f"  put the missing photos into {dossier.folder}/ (label.jpg …), and run this command again")
    return lines
