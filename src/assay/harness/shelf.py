"""Evidence documents by name, each read from disk once and only when a check looks at it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from assay.harness.silence import Silence
from assay.model.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Document:
    """One evidence document and the hash that names it."""

    evidence: Evidence
    digest: str


class Shelf:
    """The folder of the latest evidence, `NODE.json` each, with older documents in `../objects`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, Document | Silence] = {}

    def latest(self, name: str) -> Document:
        """Return the newest document of a node. Raises Silence where there is none, or none that can be read."""
        if name not in self._read:
            self._read[name] = self._load(self.folder / f"{name}.json", name)
        found = self._read[name]
        if isinstance(found, Silence):
            raise Silence(found.kind, found.where, found.reason)
        return found

    def older(self, digest: str) -> Evidence | None:
        """Return a stored document by its hash, None where it is not kept any more."""
        path = self.folder.parent / "objects" / digest[:2] / f"{digest}.json"
        try:
            return Evidence.from_json(json.loads(path.read_bytes()))
        except (OSError, ValueError, KeyError):
            return None

    def _load(self, path: Path, name: str) -> Document | Silence:
        try:
            evidence = Evidence.from_json(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return Silence("failed", "", f"no evidence of {name} in {path.parent}; collect it with `assay observe`")
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            return Silence("failed", str(path), f"cannot be read as evidence: {error}")
        if evidence.node != name:
            return Silence("failed", str(path), f"is evidence of {evidence.node}, not of {name}")
        return Document(evidence, evidence.digest())
