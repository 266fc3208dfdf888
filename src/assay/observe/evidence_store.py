"""Where evidence is kept: each document once, under its own hash, and the newest of every node by name.

```
FOLDER/objects/ab/<sha256>.json   the canonical JSON of one document, never changed
FOLDER/latest/NAME.json           the newest document of node NAME
FOLDER/pushed/NAME.json           the newest that NAME's own agent has brought
```

Files land by rename after they are on disk, so a reader sees a whole document or none, whatever dies when.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class EvidenceStore:
    """The evidence below `folder`, which is made on the first `put`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def store_latest(self, evidence: EvidenceDocument) -> str:
        """Keep a document, make it the newest of its node, and return its digest."""
        digest = self.store_document(evidence)
        write_atomically(self._named("latest", evidence.node), encode_canonical_json(evidence.as_json()))
        return digest

    def store_pushed(self, evidence: EvidenceDocument) -> str:
        """Keep a document as the newest that the node's agent has brought, and return its digest."""
        digest = self.store_document(evidence)
        write_atomically(self._named("pushed", evidence.node), encode_canonical_json(evidence.as_json()))
        return digest

    def store_document(self, evidence: EvidenceDocument) -> str:
        """Keep a document and return its digest."""
        content = encode_canonical_json(evidence.as_json())
        digest = hashlib.sha256(content).hexdigest()
        kept = self._object(digest)
        if not kept.exists():
            write_atomically(kept, content)
        return digest

    def latest(self, name: str) -> EvidenceDocument | None:
        """Return the newest document of a node, None where there is none. Raises Trouble for a damaged file."""
        return self._newest("latest", name)

    def latest_pushed(self, name: str) -> EvidenceDocument | None:
        """Return the newest document that a node's agent has brought, None where there is none. Raises Trouble."""
        return self._newest("pushed", name)

    def stored_at(self, name: str) -> float:
        """Return when a node's newest document was kept, in seconds since the epoch; 0 where there is none."""
        try:
            return self._named("latest", name).stat().st_mtime
        except OSError:
            return 0.0

    def get(self, digest: str) -> EvidenceDocument:
        """Return the document with this digest. Raises Trouble where it is missing or not what its name says."""
        path = self._object(digest)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise AssayError(f"no evidence {digest[:12]} is kept here", where=str(path)) from None
        found = hashlib.sha256(content).hexdigest()
        if found != digest:
            raise AssayError(
                f"the evidence was changed after it was stored: its sha256 is {found[:12]}…",
                where=str(path),
                fix="restore the file from a backup; what was judged on it cannot be derived again until then",
            )
        return _parse(content, path)

    def _object(self, digest: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise AssayError(f"{digest!r} is no evidence digest; expected 64 hexadecimal digits")
        return self.folder / "objects" / digest[:2] / f"{digest}.json"

    def _newest(self, shelf: str, name: str) -> EvidenceDocument | None:
        path = self._named(shelf, name)
        try:
            return _parse(path.read_bytes(), path)
        except FileNotFoundError:
            return None

    def _named(self, shelf: str, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise AssayError(f"{name!r} cannot name a file of evidence", fix="use letters, digits, '.', '_' and '-'")
        return self.folder / shelf / f"{name}.json"


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`: on disk first, then renamed into place. Raises Trouble where that fails."""
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
            scratch.unlink(missing_ok=True)  # half a file is of no use, and takes room where there may be none
        raise AssayError(f"the file cannot be written: {error.strerror}", where=str(path)) from None


def _parse(content: bytes, path: Path) -> EvidenceDocument:
    try:
        return EvidenceDocument.from_json(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        raise AssayError(f"not an evidence document: {wrong}", where=str(path), fix="collect again") from None
