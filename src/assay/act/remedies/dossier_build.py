"""Writes the dossier of a node as one archive with a page in front, and reads it back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.act.actions.action import ActionContext, EffectIntent
from assay.act.remedies.dossier_content import (
    DossierJson,
    build_dossier_content,
    read_dossier_evidence,
    read_dossier_facts,
)
from assay.act.remedies.dossier_photos import PHOTOS_KIND, DossierPhotos, list_photos, read_photos
from assay.act.remedies.dossier_zip import build_zip, locate_dossier, locate_photo_folder, read_zip
from assay.adapters.bmc.credentials import read_bmc_credentials
from assay.declare.secret_detection import register_environment_secrets
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.rendering import render_page
from assay.model.text.secret_redaction import redact_bytes
from assay.observe.evidence_store import write_atomically


def render_dossier_page(
    dossier: DossierJson,
    documents: Mapping[str, str],
    photos: DossierPhotos,
    photo_records: Sequence[Mapping[str, Any]],
    *,
    in_lab: bool = False,
) -> str:
    """Return the page in front of a dossier: one file whose links lead into the archive. All text is escaped.

    `documents` has, by digest, "" for evidence that is in the archive, else why it is missing. `photo_records` come
    from `list_photos`.
    """
    pictures = {record["file"]: record for record in photo_records}
    return render_page(
        __package__,
        "dossier.html.j2",
        in_lab=in_lab,
        dossier=dossier,
        documents=documents,
        photos=photos,
        pictures=pictures,
    )


def write_dossier(context: ActionContext, intent: EffectIntent) -> DossierPhotos:
    """Write the dossier of an intent, over an older one. Return its photos. Raises AssayError if that fails."""
    folder = locate_photo_folder(context.reports, intent.node, intent.effect)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AssayError(f"the folder for photos cannot be created: {error.strerror}", where=str(folder)) from None
    photos = read_photos(folder)
    _load_secrets(context, intent.node)
    path = locate_dossier(context.reports, intent.node, intent.effect)
    write_atomically(path, build_zip(_build_members(context, intent, photos)))
    return photos


def read_dossier(reports: Path, node: str, effect: str) -> DossierJson:
    """Return the content of an effect's dossier. Raises AssayError if it is missing, damaged or another effect's."""
    path = locate_dossier(reports, node, effect)
    try:
        members = read_zip(path.read_bytes())
        dossier: DossierJson = json.loads(members["dossier.json"])
    except (OSError, ValueError, KeyError) as error:
        raise AssayError(f"no dossier: {error}", where=str(path)) from None
    if dossier.get("effect") != effect:
        raise AssayError("this dossier belongs to another effect", where=str(path))
    return dossier


def _build_members(context: ActionContext, intent: EffectIntent, photos: DossierPhotos) -> dict[str, bytes]:
    """Return the members of the archive, the page first. Known secrets are redacted in every text."""
    facts: Mapping[str, Any] = intent.before if "upto" in intent.before else read_dossier_facts(context, intent.node)
    dossier = build_dossier_content(context, intent, facts)
    evidence = read_dossier_evidence(context, dossier, facts["evidence"])
    documents = {digest: one for digest, one in evidence.items() if isinstance(one, EvidenceDocument)}
    missing = {digest: "" if digest in documents else str(one) for digest, one in evidence.items()}
    records = list_photos(photos.accepted, context.ledger.entries(intent.node, [PHOTOS_KIND]), intent.effect)
    texts = {
        "index.html": render_dossier_page(dossier, missing, photos, records, in_lab=context.fleet.is_lab).encode(),
        "dossier.json": json.dumps(dossier, indent=1, sort_keys=True, ensure_ascii=False).encode(),
        "photos.json": json.dumps(records, indent=1, sort_keys=True, ensure_ascii=False).encode(),
        **{f"evidence/{digest}.json": encode_canonical_json(one.as_json()) for digest, one in documents.items()},
    }
    files = {f"photos/{name}": content for name, content in photos.accepted.items()}
    return {name: redact_bytes(text) for name, text in texts.items()} | files


def _load_secrets(context: ActionContext, node: str) -> None:
    """Register the secrets of this node, so that every process redacts the same and builds the same archive."""
    register_environment_secrets()
    try:
        read_bmc_credentials(context.fleet.nodes[node], context.fleet.root)
    except AssayError:
        return  # a process that cannot read them has not written them anywhere
