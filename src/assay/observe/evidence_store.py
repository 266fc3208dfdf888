"""Stores evidence: each document once, under its own hash, and the newest of every node by name.

    FOLDER/objects/ab/<sha256>.json   the canonical JSON of one document, never changed
    FOLDER/latest/NAME.json           the newest document of node NAME
    FOLDER/pushed/NAME.json           the newest that the agent of NAME has pushed

A file is renamed into place after it is on disk, so a reader sees a whole document or none, also after a crash.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class EvidenceStore:
    """The evidence below `folder`, which is created when the first document is stored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def store_latest(self, evidence: EvidenceDocument) -> str:
        """Store a document as the newest of its node, and return its digest."""
        digest = self.store_document(evidence)
        write_atomically(self._node_path("latest", evidence.node), encode_canonical_json(evidence.as_json()))
        return digest

    def store_pushed(self, evidence: EvidenceDocument) -> str:
        """Store a document as the newest that the node's agent has pushed, and return its digest."""
        digest = self.store_document(evidence)
        write_atomically(self._node_path("pushed", evidence.node), encode_canonical_json(evidence.as_json()))
        return digest

    def store_document(self, evidence: EvidenceDocument) -> str:
        """Store a document and return its digest."""
        content = encode_canonical_json(evidence.as_json())
        digest = hashlib.sha256(content).hexdigest()
        path = self._object_path(digest)
        if not path.exists():
            write_atomically(path, content)
        return digest

    def latest(self, name: str) -> EvidenceDocument | None:
        """Return the newest document of a node, None where there is none. Raises AssayError for a damaged file."""
        return self._read_newest("latest", name)

    def latest_pushed(self, name: str) -> EvidenceDocument | None:
        """Return the newest document that a node's agent has pushed, None where there is none. Raises AssayError."""
        return self._read_newest("pushed", name)

    def stored_at(self, name: str) -> float:
        """Return when a node's newest document was stored, in seconds since 1970; 0 where there is none."""
        try:
            return self._node_path("latest", name).stat().st_mtime
        except OSError:
            return 0.0

    def get(self, digest: str) -> EvidenceDocument:
        """Return the document with this digest. Raises AssayError where it is missing, or was changed."""
        path = self._object_path(digest)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise AssayError(f"there is no evidence {digest[:12]} here", where=str(path)) from None
        found = hashlib.sha256(content).hexdigest()
        if found != digest:
            raise AssayError(
                f"the evidence was changed after it was stored: its sha256 is {found[:12]}…",
                where=str(path),
                fix="restore the file from a backup; until then its verdicts cannot be derived again",
            )
        return _parse(content, path)

    def _object_path(self, digest: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise AssayError(f"{digest!r} is no evidence digest", fix="give 64 hexadecimal digits")
        return self.folder / "objects" / digest[:2] / f"{digest}.json"

    def _read_newest(self, folder: str, name: str) -> EvidenceDocument | None:
        path = self._node_path(folder, name)
        try:
            return _parse(path.read_bytes(), path)
        except FileNotFoundError:
            return None

    def _node_path(self, folder: str, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise AssayError(f"{name!r} cannot name a file of evidence", fix="use letters, digits, '.', '_' and '-'")
        return self.folder / folder / f"{name}.json"


class StoredDocuments(Mapping[str, EvidenceDocument]):
    """Documents of a store by node, each read when it is asked for: those of a large fleet need not fit in memory.

    `digests` has the digest of each node's document.
    """

    def __init__(self, store: EvidenceStore, digests: Mapping[str, str]) -> None:
        self._store, self._digests = store, digests

    def __getitem__(self, name: str) -> EvidenceDocument:
        return self._store.get(self._digests[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._digests)

    def __len__(self) -> int:
        return len(self._digests)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file at `path`: write and sync a scratch file, then rename it. Raises AssayError if that fails."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with scratch.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        scratch.replace(path)
    except OSError as error:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)  # half a file is of no use, and the disk may be full
        raise AssayError(f"the file cannot be written: {error.strerror}", where=str(path)) from None


def _parse(content: bytes, path: Path) -> EvidenceDocument:
    try:
        return EvidenceDocument.from_json(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AssayError(f"not an evidence document: {error}", where=str(path), fix="collect again") from None
