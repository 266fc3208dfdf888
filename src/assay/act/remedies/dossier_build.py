"""Writes the dossier of a node as one archive with a page in front, and reads it back.

It is the same byte for byte whenever it is built from the same things. Its manifest shows whether it is complete.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from assay.act.actions.action import ActionContext, EffectIntent
from assay.act.remedies.dossier_content import (
    DossierJson,
    build_dossier_content,
    read_dossier_evidence,
    read_dossier_facts,
)
from assay.adapters.bmc.session import read_bmc_credentials
from assay.declare.secret_detection import register_environment_secrets
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.page import render_page
from assay.model.text.safe_text import redact_bytes
from assay.observe.evidence_store import write_atomically

MANIFEST_NAME = "MANIFEST.sha256"
DIAGNOSTICS = "diagnostics"
MAX_ATTACHED = 4
"""So many of the newest archives of a node go into its dossier. The others are named there."""
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can hold
_REGULAR_FILE_MODE = 0o100644 << 16
_UNIX = 3
UNREADABLE_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
)
"""What zipfile raises for a damaged archive."""


def build_zip(members: Mapping[str, bytes]) -> bytes:
    """Return a zip of the members in their order, and a manifest with the sha256 of each (for `sha256sum -c`)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, content in {**members, MANIFEST_NAME: format_manifest(members)}.items():
            info = zipfile.ZipInfo(name, _ZIP_EPOCH)
            info.create_system, info.external_attr = _UNIX, _REGULAR_FILE_MODE
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, content, compresslevel=9)
    return out.getvalue()


def format_manifest(members: Mapping[str, bytes]) -> bytes:
    """Return a line with the sha256 of each member."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items()).encode()


def read_zip(content: bytes) -> dict[str, bytes]:
    """Return the members of an archive. Raises ValueError if it is damaged, or differs from its manifest."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            members = {name: packed.read(name) for name in packed.namelist()}
    except UNREADABLE_ZIP_ERRORS as error:
        raise ValueError(f"the archive is damaged: {error}") from None
    if members.pop(MANIFEST_NAME, b"") != format_manifest(members):
        raise ValueError("the members differ from the manifest")
    return members


def locate_dossier(reports: Path, node: str, effect: str) -> Path:
    """Return the path of an effect's dossier."""
    return reports / "rma" / f"{node}-{effect}.zip"


def locate_diagnostics(reports: Path, node: str, effect: str) -> Path:
    """Return the path of the archive that an effect collected before a restart."""
    return reports / DIAGNOSTICS / f"{node}-{effect}.zip"


def render_dossier_page(dossier: DossierJson, documents: Mapping[str, str], *, in_lab: bool = False) -> str:
    """Return the page in front of a dossier: one file whose links lead into the archive. All text is escaped.

    `documents` has, by digest, "" for evidence that is in the archive, else why it is missing.
    """
    return render_page(__package__, "dossier.html.j2", in_lab=in_lab, dossier=dossier, documents=documents)


def write_dossier(context: ActionContext, intent: EffectIntent) -> None:
    """Write the dossier of an intent, over an older one. Raises AssayError if that fails."""
    load_secrets(context, intent.node)
    path = locate_dossier(context.reports, intent.node, intent.effect)
    write_atomically(path, build_zip(_build_members(context, intent)))


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


def _build_members(context: ActionContext, intent: EffectIntent) -> dict[str, bytes]:
    """Return the members of the archive, the page first. Known secrets are redacted in every text."""
    facts: Mapping[str, Any] = intent.before if "upto" in intent.before else read_dossier_facts(context, intent.node)
    dossier = build_dossier_content(context, intent, facts)
    evidence = read_dossier_evidence(context, dossier, facts["evidence"])
    documents = {digest: document for digest, document in evidence.items() if isinstance(document, EvidenceDocument)}
    missing = {digest: "" if digest in documents else str(document) for digest, document in evidence.items()}
    attached = dict(_read_attached(context.reports, dossier))
    texts = {
        "index.html": render_dossier_page(dossier, missing, in_lab=context.fleet.is_lab).encode(),
        "dossier.json": json.dumps(dossier, indent=1, sort_keys=True, ensure_ascii=False).encode(),
        **{
            f"evidence/{digest}.json": encode_canonical_json(document.as_json())
            for digest, document in documents.items()
        },
    }
    return {name: redact_bytes(text) for name, text in texts.items()} | attached


def _read_attached(reports: Path, dossier: DossierJson) -> Iterator[tuple[str, bytes]]:
    """Yield the newest archives that were collected before a restart, as the ledger's digests have them."""
    for archive in dossier["diagnostics"][-MAX_ATTACHED:]:
        name = Path(archive["path"]).name
        with suppress(OSError):  # the dossier names it all the same
            content = (reports / DIAGNOSTICS / name).read_bytes()
            if hashlib.sha256(content).hexdigest() == archive["sha256"]:
                yield f"{DIAGNOSTICS}/{name}", content


def load_secrets(context: ActionContext, node: str) -> None:
    """Register the secrets of this node, so that every process redacts the same and builds the same archive."""
    register_environment_secrets()
    try:
        read_bmc_credentials(context.fleet.nodes[node], context.fleet.root)
    except AssayError:
        return  # a process that cannot read them has not written them anywhere
