"""Evidence documents by name, each read from disk only when a check looks at it, the last few kept in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.harness.silence import Silence
from assay.model.evidence import OF_FABRIC, Evidence

MOST = 24
"""Documents in memory, about 1 MB each: more than a rack has nodes, and the fabrics' stay since all ask for them."""


@dataclass(frozen=True, slots=True)
class Document:
    """One evidence document, the hash that names it, and when it was collected (`at`, ISO 8601 UTC).

    `walked` are its branches by path, as checks have come to them.
    """

    evidence: Evidence
    digest: str
    at: str = field(init=False)
    walked: dict[tuple[str, ...], Mapping[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Write the time out once, since every outcome is dated."""
        object.__setattr__(self, "at", self.evidence.at.isoformat())


class Shelf:
    """The folder of the latest evidence, `NODE.json` each, with older documents in `../objects`."""

    def __init__(self, folder: Path, most: int = MOST) -> None:
        self.folder, self._most = folder, most
        self._read: dict[str, Document | Silence] = {}
        self._last: tuple[str, Document] | None = None

    def latest(self, name: str) -> Document:
        """Return the newest document of a node. Raises Silence where there is none, or none that can be read."""
        if self._last is not None and self._last[0] == name:
            return self._last[1]
        found = self._read.pop(name, None) or self._load(self.folder / f"{name}.json", name)
        self._read[name] = found  # the one used last stands last
        if len(self._read) > self._most:
            del self._read[next(iter(self._read))]
        if isinstance(found, Silence):
            raise Silence(found.kind, found.where, found.reason)
        self._last = name, found
        return found

    def older(self, digest: str) -> Evidence | None:
        """Return a stored document by its hash, None where it is not kept any more."""
        path = self.folder.parent / "objects" / digest[:2] / f"{digest}.json"
        try:
            return Evidence.from_json(json.loads(path.read_bytes()))
        except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
            return None

    def _load(self, path: Path, name: str) -> Document | Silence:
        try:
            content = path.read_bytes()
            evidence = Evidence.from_json(json.loads(content))
        except FileNotFoundError:
            if path.is_symlink():  # a run that is judged again names its documents
                gone = f"the evidence {path.readlink().stem} of {name} is not there any more as it was judged"
                return Silence("failed", "", gone)
            how = "assay fabric scan" if name.startswith(OF_FABRIC) else "assay observe"
            return Silence("failed", "", f"no evidence of {name}; collect it with `{how}`")
        except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            return Silence("failed", path.name, f"cannot be read as evidence: {error}")
        if evidence.node != name:
            return Silence("failed", path.name, f"is evidence of {evidence.node}, not of {name}")
        return Document(evidence, self._stored_as(content) or evidence.digest())

    def _stored_as(self, content: bytes) -> str:
        """Return the digest of a document that the store holds in just these bytes, so that nothing need be made anew.

        "" where it does not; then they may not be in the form that is digested.
        """
        digest = hashlib.sha256(content).hexdigest()
        return digest if (self.folder.parent / "objects" / digest[:2] / f"{digest}.json").exists() else ""
