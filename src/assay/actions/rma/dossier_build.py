"""Writes the dossier of a node as one archive with a page in front, and reads it back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.actions.action import ActionContext, EffectIntent
from assay.actions.rma.dossier_archive import build_zip, locate_dossier, locate_photo_folder, read_zip
from assay.actions.rma.dossier_content import (
    DossierJson,
    build_dossier_content,
    read_dossier_evidence,
    read_dossier_facts,
)
from assay.actions.rma.dossier_photos import PHOTOS_KIND, DossierPhotos, list_photos, read_photos
from assay.fleet.secret_detection import register_environment_secrets
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.secret_redaction import redact_bytes
from assay.observe.evidence_store import write_atomically
from assay.pages.rendering import render_page
from assay.redfish.credentials import read_bmc_credentials


def render_dossier_page(
    dossier: DossierJson,
    documents: Mapping[str, str],
    photos: DossierPhotos,
    photo_records: Sequence[Mapping[str, Any]],
) -> str:
    """Return the page in front of a dossier: one file whose links lead into the archive. All text is escaped.

    `documents` has, by digest, "" for evidence that is in the archive, else why it is missing. `photo_records` come
    from `list_photos`.
    """
    pictures = {record["file"]: record for record in photo_records}
    return render_page(
        __package__, "dossier.html.j2", dossier=dossier, documents=documents, photos=photos, pictures=pictures
    )


def write_dossier(ctx: ActionContext, intent: EffectIntent) -> DossierPhotos:
    """Write the dossier whole, in place of an older one, and return the photos in it. Raises Trouble."""
    folder = locate_photo_folder(ctx.reports, intent.node, intent.effect)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AssayError(f"the folder for photos cannot be made: {error.strerror}", where=str(folder)) from None
    photos = read_photos(folder)
    _load_secrets(ctx, intent.node)
    write_atomically(
        locate_dossier(ctx.reports, intent.node, intent.effect), build_zip(_build_members(ctx, intent, photos))
    )
    return photos


def read_dossier(reports: Path, node: str, effect: str) -> DossierJson:
    """Return what the dossier of an effect says. Raises Trouble where it is not there, not whole, or another's."""
    place = locate_dossier(reports, node, effect)
    try:
        members = read_zip(place.read_bytes())
        told: DossierJson = json.loads(members["dossier.json"])
    except (OSError, ValueError, KeyError) as error:
        raise AssayError(f"no dossier: {error}", where=str(place)) from None
    if told.get("effect") != effect:
        raise AssayError("this is the dossier of something else", where=str(place))
    return told


def _build_members(ctx: ActionContext, intent: EffectIntent, photos: DossierPhotos) -> dict[str, bytes]:
    """Return what is in the archive, the page first. Whatever came to be known as a secret is covered in every text."""
    facts: Mapping[str, Any] = intent.before if "upto" in intent.before else read_dossier_facts(ctx, intent.node)
    told = build_dossier_content(ctx, intent, facts)
    found = read_dossier_evidence(ctx, told, facts["evidence"])
    pictures = list_photos(photos.accepted, ctx.ledger.entries(intent.node, [PHOTOS_KIND]), intent.effect)
    missing = {digest: "" if isinstance(one, EvidenceDocument) else one for digest, one in found.items()}
    texts = {
        "index.html": render_dossier_page(told, missing, photos, pictures).encode(),
        "dossier.json": json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False).encode(),
        "photos.json": json.dumps(pictures, indent=1, sort_keys=True, ensure_ascii=False).encode(),
        **{
            f"evidence/{digest}.json": encode_canonical_json(one.as_json())
            for digest, one in found.items()
            if isinstance(one, EvidenceDocument)
        },
    }
    files = {f"photos/{name}": picture for name, picture in photos.accepted.items()}
    return {name: redact_bytes(text) for name, text in texts.items()} | files


def _load_secrets(ctx: ActionContext, node: str) -> None:
    """Come to know the secrets of this node, so that another process makes the same archive as the controller."""
    register_environment_secrets()
    try:
        read_bmc_credentials(ctx.fleet.nodes[node], ctx.fleet.root)
    except AssayError:
        return  # who cannot read them has not written them anywhere either
