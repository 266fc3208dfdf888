"""Evidence documents by name, each read from disk only when a check looks at it, the last few kept in memory.

What stops a check from being judged. None of these may end in a pass.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from assay.model.evidence import FABRIC_EVIDENCE_PREFIX, EvidenceDocument


class UnjudgeableCheck(Exception):
    """The check itself cannot be judged: it asks for what does not exist, or breaks a rule of suites."""


class ReadingUnavailable(Exception):
    """A reading that is no value. `kind` is absent, unsupported or failed; `where` its path; `reason` why."""

    def __init__(self, kind: str, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.kind, self.where, self.reason = kind, where, reason


def unknown_name_error(name: str, where: str, known: Iterable[str]) -> UnjudgeableCheck:
    """Return the complaint about a name that does not exist, with the ones that the author may have meant."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3) or names[:8]
    there = f"; there is {', '.join(near)}" if near else "; nothing is there"
    return UnjudgeableCheck(f"{where} has no {name!r}{there}")


MAX_CACHED_DOCUMENTS = 24
"""Documents in memory, about 1 MB each: more than a rack has nodes, and the fabrics' stay since all ask for them."""


@dataclass(frozen=True, slots=True)
class CachedEvidence:
    """One evidence document, the hash that names it, and when it was collected (`at`, ISO 8601 UTC).

    `walked` are its branches by path, as checks have come to them.
    """

    evidence: EvidenceDocument
    digest: str
    at: str = field(init=False)
    branches: dict[tuple[str, ...], Mapping[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Write the time out once, since every outcome is dated."""
        object.__setattr__(self, "at", self.evidence.at.isoformat())


class EvidenceCache:
    """The folder of the latest evidence, `NODE.json` each, with older documents in `../objects`."""

    def __init__(self, folder: Path, most: int = MAX_CACHED_DOCUMENTS) -> None:
        self.folder, self._most = folder, most
        self._read: dict[str, CachedEvidence | ReadingUnavailable] = {}
        self._last: tuple[str, CachedEvidence] | None = None

    def read_latest(self, name: str) -> CachedEvidence:
        """Return the newest document of a node. Raises Silence where there is none, or none that can be read."""
        if self._last is not None and self._last[0] == name:
            return self._last[1]
        found = self._read.pop(name, None) or self._load(self.folder / f"{name}.json", name)
        self._read[name] = found  # the one used last stands last
        if len(self._read) > self._most:
            del self._read[next(iter(self._read))]
        if isinstance(found, ReadingUnavailable):
            raise ReadingUnavailable(found.kind, found.where, found.reason)
        self._last = name, found
        return found

    def read_stored(self, digest: str) -> EvidenceDocument | None:
        """Return a stored document by its hash, None where it is not kept any more."""
        path = self.folder.parent / "objects" / digest[:2] / f"{digest}.json"
        try:
            return EvidenceDocument.from_json(json.loads(path.read_bytes()))
        except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
            return None

    def _load(self, path: Path, name: str) -> CachedEvidence | ReadingUnavailable:
        try:
            content = path.read_bytes()
            evidence = EvidenceDocument.from_json(json.loads(content))
        except FileNotFoundError:
            if path.is_symlink():  # a run that is judged again names its documents
                gone = f"the evidence {path.readlink().stem} of {name} is not there any more as it was judged"
                return ReadingUnavailable("failed", "", gone)
            how = "assay fabric scan" if name.startswith(FABRIC_EVIDENCE_PREFIX) else "assay observe"
            return ReadingUnavailable("failed", "", f"no evidence of {name}; collect it with `{how}`")
        except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            return ReadingUnavailable("failed", path.name, f"cannot be read as evidence: {error}")
        if evidence.node != name:
            return ReadingUnavailable("failed", path.name, f"is evidence of {evidence.node}, not of {name}")
        return CachedEvidence(evidence, self._stored_digest(content) or evidence.digest())

    def _stored_digest(self, content: bytes) -> str:
        """Return the digest of a document that the store holds in just these bytes, so that nothing need be made anew.

        "" where it does not; then they may not be in the form that is digested.
        """
        digest = hashlib.sha256(content).hexdigest()
        return digest if (self.folder.parent / "objects" / digest[:2] / f"{digest}.json").exists() else ""
