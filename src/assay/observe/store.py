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

from assay.model.errors import Trouble
from assay.model.evidence import Evidence, canonical

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class EvidenceStore:
    """The evidence below `folder`, which is made on the first `put`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, evidence: Evidence) -> str:
        """Keep a document, make it the newest of its node, and return its digest."""
        digest = self.keep(evidence)
        write_whole(self._named("latest", evidence.node), canonical(evidence.as_json()))
        return digest

    def put_pushed(self, evidence: Evidence) -> str:
        """Keep a document as the newest that the node's agent has brought, and return its digest."""
        digest = self.keep(evidence)
        write_whole(self._named("pushed", evidence.node), canonical(evidence.as_json()))
        return digest

    def keep(self, evidence: Evidence) -> str:
        """Keep a document and return its digest."""
        content = canonical(evidence.as_json())
        digest = hashlib.sha256(content).hexdigest()
        kept = self._object(digest)
        if not kept.exists():
            write_whole(kept, content)
        return digest

    def latest(self, name: str) -> Evidence | None:
        """Return the newest document of a node, None where there is none. Raises Trouble for a damaged file."""
        return self._newest("latest", name)

    def pushed(self, name: str) -> Evidence | None:
        """Return the newest document that a node's agent has brought, None where there is none. Raises Trouble."""
        return self._newest("pushed", name)

    def kept_at(self, name: str) -> float:
        """Return when a node's newest document was kept, in seconds since the epoch; 0 where there is none."""
        try:
            return self._named("latest", name).stat().st_mtime
        except OSError:
            return 0.0

    def get(self, digest: str) -> Evidence:
        """Return the document with this digest. Raises Trouble where it is missing or not what its name says."""
        path = self._object(digest)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise Trouble(f"no evidence {digest[:12]} is kept here", where=str(path)) from None
        found = hashlib.sha256(content).hexdigest()
        if found != digest:
            raise Trouble(
                f"the evidence was changed after it was stored: its sha256 is {found[:12]}…",
                where=str(path),
                fix="restore the file from a backup; what was judged on it cannot be derived again until then",
            )
        return _parse(content, path)

    def _object(self, digest: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise Trouble(f"{digest!r} is no evidence digest; expected 64 hexadecimal digits")
        return self.folder / "objects" / digest[:2] / f"{digest}.json"

    def _newest(self, shelf: str, name: str) -> Evidence | None:
        path = self._named(shelf, name)
        try:
            return _parse(path.read_bytes(), path)
        except FileNotFoundError:
            return None

    def _named(self, shelf: str, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise Trouble(f"{name!r} cannot name a file of evidence", fix="use letters, digits, '.', '_' and '-'")
        return self.folder / shelf / f"{name}.json"


def write_whole(path: Path, content: bytes) -> None:
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
        raise Trouble(f"the file cannot be written: {error.strerror}", where=str(path)) from None


def _parse(content: bytes, path: Path) -> Evidence:
    try:
        return Evidence.from_json(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        raise Trouble(f"not an evidence document: {wrong}", where=str(path), fix="collect again") from None
