"""Reads and writes what a fleet repository knows of the files that `assay init` or `assay upgrade` copied into it.

`record.json` names the version and the hash of each file. `texts.tar.gz` keeps the texts as they were copied: they are
the base of the next merge. Both are committed, so that any clone can merge, whatever became of git's history.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from assay.model.errors import AssayError

FOLDER = ".assay-starter"
RECORD, TEXTS = f"{FOLDER}/record.json", f"{FOLDER}/texts.tar.gz"
KEPT_ONCE_CHANGED = (
    "README.md",
    "requirements.txt",
    "suites/recordings/fabric-compute.json",
    "suites/recordings/week-compute.json",
)
"""A site that changed one of these wrote its own: a merge would mix two things that have nothing in common."""

GENERATED = ("specs/schemas", "docs/reference", "docs/commands.md", "docs/checks.md", "docs/metrics.md")
"""Each version writes these anew. Their texts would be a third of the record, for merges that nobody wants."""

FORGES = ("github", "gitlab", "both")
TAKE_IT_BACK = f"take it from a commit in which it was whole: `git checkout COMMIT -- {FOLDER}`"


@dataclass(frozen=True, slots=True)
class StarterRecord:
    """The files of one version of assay, as they were copied: hashes by path, and those contents that are text."""

    version: str
    ci: str
    hashes: Mapping[str, str]
    texts: Mapping[str, bytes] = field(repr=False)


def make_record(version: str, ci: str, files: Mapping[str, bytes]) -> StarterRecord:
    """Return the record of these files. Of a file into which nothing will be merged, only the hash is kept."""
    return StarterRecord(
        version,
        ci,
        {path: hash_content(content) for path, content in sorted(files.items())},
        {path: content for path, content in sorted(files.items()) if _is_mergeable(path, content)},
    )


def format_record(record: StarterRecord) -> dict[str, bytes]:
    """Return the files of a record by path. The same record gives the same bytes."""
    content = {"version": record.version, "ci": record.ci, "files": dict(record.hashes)}
    return {RECORD: f"{json.dumps(content, indent=1)}\n".encode(), TEXTS: _pack(record.texts)}


def read_record(root: Path) -> StarterRecord | None:
    """Return the record of a fleet repository, None if it has none. Raises AssayError if it is damaged."""
    place = root / RECORD
    try:
        content = json.loads(place.read_bytes())
        hashes = {str(path): str(digest) for path, digest in content["files"].items()}
        version, ci = str(content["version"]), content["ci"]
        if ci not in FORGES or not all(_is_inside(path) for path in hashes):
            raise ValueError("it names a forge or a path that assay never copied")
        texts = _unpack((root / TEXTS).read_bytes())
    except FileNotFoundError as error:
        if Path(str(error.filename)) == place:
            return None
        raise AssayError("the texts of the record are missing", where=TEXTS, fix=TAKE_IT_BACK) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, tarfile.TarError) as error:
        raise AssayError(f"the record cannot be read: {error}", where=FOLDER, fix=TAKE_IT_BACK) from error
    damaged = [path for path, text in texts.items() if hashes.get(path) != hash_content(text)]
    if damaged:
        raise AssayError(f"{damaged[0]} is not the text that the record names", where=TEXTS, fix=TAKE_IT_BACK)
    return StarterRecord(version, ci, hashes, texts)


def hash_content(content: bytes) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()


def is_text(content: bytes) -> bool:
    """Return whether lines can be merged into a content: git's own rule, and UTF-8."""
    if b"\0" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_mergeable(path: str, content: bytes) -> bool:
    return is_text(content) and not any(PurePosixPath(path).is_relative_to(x) for x in (*KEPT_ONCE_CHANGED, *GENERATED))


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and not {"..", ".git"}.intersection(parts)


def _pack(texts: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, text in texts.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return gzip.compress(buffer.getvalue(), mtime=0)


def _unpack(packed: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as archive:
        return {member.name: file.read() for member in archive if (file := archive.extractfile(member))}
