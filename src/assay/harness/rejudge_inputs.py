"""What a run was judged by, laid out anew in a folder: specs and suites of a commit, documents by their hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from assay.fleet.git import REGULAR, ask, contents
from assay.fleet.tree import MOST, Revision
from assay.model.evidence import Evidence

FOLDERS = ("inventory", "specs", "suites")
SETTINGS = ("pytest.ini", "pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg", "conftest.py")
"""Where pytest looks for settings at the root of a fleet repository."""


def lay_out_commit(root: Path, commit: str, into: Path) -> None:
    """Write inventory, specs and suites of a commit, with pytest's settings, below `into`. Raises Trouble."""
    revision = Revision(root, commit)
    for path in (path for folder in FOLDERS for path in revision.files(folder)):
        _write(into / path, revision.read(path, MOST))
    for path, content in _settings(root, commit).items():
        _write(into / path, content)


def lay_out_evidence(evidence: Path, store: Path, documents: Mapping[str, str], into: Path) -> Path:
    """Return a folder of evidence with the `documents` (digest by name), as links to where they are kept.

    They are looked for in `store` by their digest, and, for evidence that was never stored, in the folder `evidence`
    that the run judged. One that is not there any more, or not as it was, is a link to nothing: judging says so.
    """
    latest, gone = into / "latest", into / "gone"
    latest.mkdir(parents=True)
    (into / "objects").symlink_to((store / "objects").resolve())
    for name, digest in documents.items():
        kept = store / "objects" / digest[:2] / f"{digest}.json"
        places = (kept, evidence / f"{name}.json")
        found = next((place.resolve() for place in places if _is(place, digest)), gone / f"{digest}.json")
        (latest / f"{name}.json").symlink_to(found)
    return latest


def _is(place: Path, digest: str) -> bool:
    """Whether a file holds the document of this digest, in the form that is digested or in another."""
    try:
        content = place.read_bytes()
        if hashlib.sha256(content).hexdigest() == digest:
            return True
        return place.stem != digest and Evidence.from_json(json.loads(content)).digest() == digest
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _settings(root: Path, commit: str) -> dict[str, bytes]:
    """Return the files of pytest's settings in a commit."""
    run = ask(root, "ls-tree", "-z", commit, "--", *SETTINGS)
    objects = {}
    for line in run.stdout.decode(errors="surrogateescape").split("\0"):
        facts, _, path = line.partition("\t")
        if path and facts.startswith(REGULAR):
            objects[path] = facts.split()[2]
    read = contents(root, sorted(set(objects.values()))) if objects else {}
    return {path: read[name] for path, name in objects.items()}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
