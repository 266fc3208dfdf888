"""Keeps the photos that technicians add to tickets: each file under its digest, each addition in the ledger."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from assay.act.loop.context import ControllerContext
from assay.act.orders.orders import OperatorIdentity
from assay.model.entries.tickets import TicketPhotoEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import derive_id
from assay.model.ticket import TicketPhoto, TicketRecord, find_photo_type

MAX_PHOTO_BYTES = 8 * 1024 * 1024
MAX_PHOTOS = 20
FOLDER = "photos"
_DIGEST = re.compile(r"[0-9a-f]{64}")


def add_photo(context: ControllerContext, record: TicketRecord, operator: OperatorIdentity, content: bytes) -> str:
    """Keep a photo of a ticket, and return its digest. The same photo is added once.

    Raises AssayError for what is no photo, too large or too much, and where the file cannot be written.
    """
    kind = find_photo_type(content)
    if kind is None:
        raise AssayError("this is no photo: its first bytes are not those of JPEG, PNG, WebP or HEIC")
    if len(content) > MAX_PHOTO_BYTES:
        raise AssayError(f"the photo is larger than {MAX_PHOTO_BYTES // 1024 // 1024} MiB")
    digest = hashlib.sha256(content).hexdigest()
    if digest in {photo.sha256 for photo in record.photos}:
        return digest
    if len(record.photos) >= MAX_PHOTOS:
        raise AssayError(f"the ticket has {MAX_PHOTOS} photos already")
    _write_photo(context.home / FOLDER, digest, content)
    ticket = record.ticket
    entry = TicketPhotoEntry(ticket.id, ticket.title, operator.who, digest, kind, len(content))
    context.ledger.append(entry.make_entry(derive_id(entry.kind, ticket.id, digest), operator.at, ticket.node))
    return digest


def read_photo(home: Path, record: TicketRecord, digest: str) -> tuple[TicketPhoto, bytes] | None:
    """Return a photo of a ticket, None if the ticket has none of this digest, or if its file is gone or was changed."""
    photo = next((photo for photo in record.photos if photo.sha256 == digest and _DIGEST.fullmatch(digest)), None)
    try:
        content = (home / FOLDER / digest).read_bytes() if photo else b""
    except OSError:
        return None
    return (photo, content) if photo and hashlib.sha256(content).hexdigest() == digest else None


def _write_photo(folder: Path, digest: str, content: bytes) -> None:
    """Write a photo at once: a reader never sees half of it."""
    draft = folder / f".{digest}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(folder / digest)
    except OSError as error:
        fix = "make room, or check who owns the folder"
        raise AssayError(f"the photo cannot be kept: {error.strerror}", where=str(folder), fix=fix) from None
