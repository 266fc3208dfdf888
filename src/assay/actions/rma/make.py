"""Makes the dossier of a node, and reads it back. Where it lies follows from the effect that asked for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.actions.action import Context, Intent
from assay.actions.rma.archive import archive, opened
from assay.actions.rma.content import Plain, content, documents
from assay.actions.rma.listed import KIND, listed
from assay.actions.rma.page import as_page
from assay.actions.rma.photos import Photos, photos_in
from assay.actions.rma.pinned import pinned
from assay.actions.rma.places import archive_of, photos_of
from assay.fleet.telltale import remember_environment
from assay.model.errors import Trouble
from assay.model.evidence import Evidence, canonical
from assay.model.secrets import hidden_bytes
from assay.observe.credentials import credentials_of
from assay.observe.store import write_whole


def make(ctx: Context, intent: Intent) -> Photos:
    """Write the dossier whole, in place of an older one, and return the photos in it. Raises Trouble."""
    folder = photos_of(ctx.reports, intent.node, intent.effect)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Trouble(f"the folder for photos cannot be made: {error.strerror}", where=str(folder)) from None
    photos = photos_in(folder)
    _know_secrets(ctx, intent.node)
    write_whole(archive_of(ctx.reports, intent.node, intent.effect), archive(_members(ctx, intent, photos)))
    return photos


def read_back(reports: Path, node: str, effect: str) -> Plain:
    """Return what the dossier of an effect says. Raises Trouble where it is not there, not whole, or another's."""
    place = archive_of(reports, node, effect)
    try:
        members = opened(place.read_bytes())
        told: Plain = json.loads(members["dossier.json"])
    except (OSError, ValueError, KeyError) as error:
        raise Trouble(f"no dossier: {error}", where=str(place)) from None
    if told.get("effect") != effect:
        raise Trouble("this is the dossier of something else", where=str(place))
    return told


def _members(ctx: Context, intent: Intent, photos: Photos) -> dict[str, bytes]:
    """Return what is in the archive, the page first. Whatever came to be known as a secret is covered in every text."""
    facts: Mapping[str, Any] = intent.before if "upto" in intent.before else pinned(ctx, intent.node)
    told = content(ctx, intent, facts)
    found = documents(ctx, told, facts["evidence"])
    pictures = listed(photos.taken, ctx.ledger.entries(intent.node, [KIND]), intent.effect)
    missing = {digest: "" if isinstance(one, Evidence) else one for digest, one in found.items()}
    texts = {
        "index.html": as_page(told, missing, photos, pictures).encode(),
        "dossier.json": json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False).encode(),
        "photos.json": json.dumps(pictures, indent=1, sort_keys=True, ensure_ascii=False).encode(),
        **{
            f"evidence/{digest}.json": canonical(one.as_json())
            for digest, one in found.items()
            if isinstance(one, Evidence)
        },
    }
    files = {f"photos/{name}": picture for name, picture in photos.taken.items()}
    return {name: hidden_bytes(text) for name, text in texts.items()} | files


def _know_secrets(ctx: Context, node: str) -> None:
    """Come to know the secrets of this node, so that another process makes the same archive as the controller."""
    remember_environment()
    try:
        credentials_of(ctx.fleet.nodes[node], ctx.fleet.root)
    except Trouble:
        return  # who cannot read them has not written them anywhere either
