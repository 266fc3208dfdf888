"""Evidence documents by name, each read from disk when a check first uses it; the last few stay in memory.

Also the two exceptions for what cannot be read or judged. Neither may end in a pass.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic_core import from_json

from assay.model.evidence import (
    FABRIC_EVIDENCE_PREFIX,
    EvidenceBasis,
    EvidenceDocument,
    find_object_path,
    mark_used,
    read_digest,
    unpack_object,
)
from assay.model.facts import frozen
from assay.model.node import Node

NOT_ASKED_FOR = "not asked for"
MAX_CACHED_DOCUMENTS = 24
"""Documents in memory, about 1 MB each: more than a rack has nodes, and those of fabrics, which all checks share."""


class UnjudgeableCheck(Exception):
    """The check itself is at fault: it uses a name that does not exist, or breaks a rule of suites."""


class ReadingUnavailable(Exception):
    """A reading has no value. `where` is its path, `reason` says why.

    `kind` is absent, unsupported, failed, or `NOT_ASKED_FOR` for a part that its load was not to have.
    """

    def __init__(self, kind: str, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.kind = kind
        self.where = where
        self.reason = reason


def unknown_name_error(name: str, where: str, known: Iterable[str]) -> UnjudgeableCheck:
    """Return the error for a name that does not exist, with the names that the author may have meant."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3) or names[:8]
    hint = f"; there is {', '.join(near)}" if near else "; nothing is there"
    return UnjudgeableCheck(f"{where} has no {name!r}{hint}")


@frozen
class CachedEvidence:
    """One evidence document, its sha256, the time of its collection (`at`, ISO 8601 UTC), and what it rests on.

    `stranger`: how the machine that it was read from differs from the node's, "" if it does not. `branches` are those
    that checks have read, by path.
    """

    evidence: EvidenceDocument
    digest: str
    stranger: str = ""
    at: str = field(init=False)
    basis: EvidenceBasis = field(init=False)
    branches: dict[tuple[str, ...], Mapping[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Format the time and read the basis once; every outcome carries them."""
        object.__setattr__(self, "at", self.evidence.at.isoformat())
        object.__setattr__(self, "basis", EvidenceBasis.of_document(self.evidence))


class EvidenceCache:
    """The folder of the latest evidence, one `NODE.json` each; `../objects` holds older documents by digest.

    `nodes` are those of the fleet: they say of which machine the evidence must be.
    """

    def __init__(self, folder: Path, nodes: Mapping[str, Node] = MappingProxyType({})) -> None:
        self.folder, self._nodes = folder, nodes
        self.objects = folder.parent / "objects"
        self._documents: dict[str, CachedEvidence | ReadingUnavailable] = {}
        self._last: tuple[str, CachedEvidence] | None = None

    def read_latest(self, name: str) -> CachedEvidence:
        """Return the latest document of a node or fabric. Raises ReadingUnavailable where none can be read."""
        if self._last is not None and self._last[0] == name:
            return self._last[1]
        document = self._documents.pop(name, None) or self._load(self.folder / f"{name}.json", name)
        self._documents[name] = document  # at the end: the first one is the least recently used
        if len(self._documents) > MAX_CACHED_DOCUMENTS:
            del self._documents[next(iter(self._documents))]
        if isinstance(document, ReadingUnavailable):
            raise ReadingUnavailable(document.kind, document.where, document.reason)
        self._last = name, document
        return document

    def read_stored(self, digest: str) -> EvidenceDocument | None:
        """Return a stored document by its digest, None where it is gone or damaged."""
        path = find_object_path(self.objects, digest)
        try:
            return EvidenceDocument.from_json(json.loads(unpack_object(path.read_bytes())))
        except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
            return None

    def _load(self, path: Path, name: str) -> CachedEvidence | ReadingUnavailable:
        try:
            content = unpack_object(path.read_bytes())  # a run that is judged again links to objects
            evidence = EvidenceDocument.from_json(_parse(content))
        except FileNotFoundError:
            if path.is_symlink():
                digest = read_digest(path.readlink())
                gone = f"the evidence {digest} of {name}, on which the run was judged, is gone or changed"
                return ReadingUnavailable("failed", "", gone)
            command = "assay fabric scan" if name.startswith(FABRIC_EVIDENCE_PREFIX) else "assay observe"
            return ReadingUnavailable("failed", "", f"no evidence of {name}; collect it with `{command}`")
        except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            return ReadingUnavailable("failed", path.name, f"cannot be read as evidence: {error}")
        if evidence.node != name:
            return ReadingUnavailable("failed", path.name, f"is evidence of {evidence.node}, not of {name}")
        # Only the store's form of a document has its digest; for other bytes it is computed from the content. What is
        # judged counts as new, as `assay prune` must not delete it before the run's file names it.
        digest = hashlib.sha256(content).hexdigest()
        is_stored = mark_used(find_object_path(self.objects, digest))
        stranger = evidence.find_stranger(self._nodes[name].serial if name in self._nodes else "")
        return CachedEvidence(evidence, digest if is_stored else evidence.digest(), stranger)


def _parse(content: bytes) -> Any:
    """Return the JSON value of a document. Raises ValueError.

    `from_json` takes two thirds of the time; what it refuses (an escaped surrogate, great depth) Python's parser reads.
    """
    try:
        return from_json(content)
    except ValueError:
        return json.loads(content)
