"""Stores evidence: each document once, under its own hash, and the newest of every node by name.

    FOLDER/objects/ab/<sha256>.json.gz   the canonical JSON of one document, compressed, never changed
    FOLDER/latest/NAME.json              the newest document of node NAME
    FOLDER/pushed/NAME.json              the newest that the agent of NAME has pushed

A file is renamed into place after it is on disk, so a reader sees a whole document or none, also after a crash.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.evidence import (
    OBJECT_SUFFIX,
    EvidenceDocument,
    encode_canonical_json,
    find_object_path,
    mark_used,
    pack_object,
    unpack_object,
)
from assay.model.timestamps import format_time

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_TIME = re.compile(rb'{(?:"after_entry":\d+,)?"at":"([^"]+)"')
"""How a document in canonical form begins."""


class EvidenceStore:
    """The evidence below `folder`, which is created when the first document is stored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def store_latest(self, evidence: EvidenceDocument) -> str:
        """Store a document as the newest of its node, and return its digest."""
        return self._store_newest("latest", evidence)

    def store_pushed(self, evidence: EvidenceDocument) -> str:
        """Store a document as the newest that the node's agent has pushed, and return its digest."""
        return self._store_newest("pushed", evidence)

    def store_document(self, evidence: EvidenceDocument) -> str:
        """Store a document and return its digest."""
        return self._store_object(encode_canonical_json(evidence.as_json()))

    def latest(self, name: str) -> EvidenceDocument | None:
        """Return the newest document of a node, None where there is none. Raises AssayError for a damaged file."""
        return self._read_newest("latest", name)

    def latest_pushed(self, name: str) -> EvidenceDocument | None:
        """Return the newest document that a node's agent has pushed, None where there is none. Raises AssayError."""
        return self._read_newest("pushed", name)

    def list_since(self, since: float) -> list[str]:
        """Return the digests of the documents that were stored since a time in seconds since 1970, newest first."""
        files = ((path.stat().st_mtime, path) for path in (self.folder / "objects").glob(f"*/*{OBJECT_SUFFIX}"))
        newest = sorted((stamped for stamped in files if stamped[0] >= since), reverse=True)
        return [path.name.partition(".")[0] for _, path in newest]

    def stored_at(self, name: str) -> float:
        """Return when a node's newest document was stored, in seconds since 1970; 0 where there is none."""
        try:
            return self._node_path("latest", name).stat().st_mtime
        except OSError:
            return 0.0

    def read_time(self, name: str) -> str:
        """Return when a node's newest document was read, "" without one: a copied file has a time of its own."""
        try:
            with self._node_path("latest", name).open("rb") as file:
                begin = _TIME.match(file.read(96))
        except OSError:
            return ""
        return format_time(datetime.fromisoformat(begin[1].decode())) if begin else ""

    def get(self, digest: str) -> EvidenceDocument:
        """Return the document with this digest. Raises AssayError where it is missing, or was changed."""
        path = self._object_path(digest)
        try:
            return _parse(_read_object(path, digest), path)
        except FileNotFoundError:
            raise AssayError(f"there is no evidence {digest[:12]} here", where=str(path)) from None

    def _store_newest(self, folder: str, evidence: EvidenceDocument) -> str:
        content = encode_canonical_json(evidence.as_json())
        digest = self._store_object(content)
        write_atomically(self._node_path(folder, evidence.node), content)
        return digest

    def _store_object(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = self._object_path(digest)
        if not mark_used(path):
            try:
                write_atomically(path, pack_object(content))
            except ValueError as error:
                raise AssayError(str(error), where=str(path), fix="collect fewer parts at once") from None
        return digest

    def _object_path(self, digest: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise AssayError(f"{digest!r} is no evidence digest", fix="give 64 hexadecimal digits")
        return find_object_path(self.folder / "objects", digest)

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


def _read_object(path: Path, digest: str) -> bytes:
    """Return the document of an object's file. Raises FileNotFoundError, and AssayError where it was changed."""
    try:
        content = unpack_object(path.read_bytes())
    except ValueError as error:
        raise _changed_error(str(error), path) from None
    actual = hashlib.sha256(content).hexdigest()
    if actual != digest:
        raise _changed_error(f"its sha256 is {actual[:12]}…", path)
    return content


def _changed_error(how: str, path: Path) -> AssayError:
    fix = "restore the file from a backup; until then its verdicts cannot be derived again"
    return AssayError(f"the evidence was changed after it was stored: {how}", where=str(path), fix=fix)


def _parse(content: bytes, path: Path) -> EvidenceDocument:
    try:
        return EvidenceDocument.from_json(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AssayError(f"not an evidence document: {error}", where=str(path), fix="collect again") from None
