"""The fleet as it was read last, kept between sessions: 10,000 nodes are read in a second, and fetched in a tenth.

The key is of the content of every file below `inventory/` and `specs/` and of the program that reads them, so what is
fetched is never stale; a fleet that reads others too, the switches of a design listed in a file, is not kept. A kept
file begins with the digest of the rest, and counts only where nobody but its reader may write it: it holds Python's
pickle, which whoever writes it can make do anything.

Where values of specs are written, kept by document: a check asks for those of one spec, and a fleet has many.

Specs of a kind of which a fleet has many and a check asks for one or none: each is unpacked when it is needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import fields
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

import assay
from assay.fleet.git import read_revision
from assay.fleet.repository_tree import WorkingFolder
from assay.model.fleet import Fleet
from assay.model.gc_pause import pause_gc
from assay.model.node import Node

LineKey = tuple[str, str]


class CachedSourceLines(Mapping[LineKey, str]):
    """Lines by document and path, as `Fleet.lines` has them. Each document's are unpacked when they are asked for."""

    def __init__(self, packed: Mapping[str, bytes]) -> None:
        self._packed = packed
        self._of: dict[str, dict[str, str]] = {}

    @staticmethod
    def pack(lines: Mapping[LineKey, str]) -> dict[str, bytes]:
        """Return what makes the same lines again."""
        of: dict[str, dict[str, str]] = {}
        for (document, path), line in lines.items():
            of.setdefault(document, {})[path] = line
        return {document: pickle.dumps(found, 5) for document, found in of.items()}

    def __getitem__(self, key: LineKey) -> str:
        document, path = key
        return self._lines(document)[path]

    def __iter__(self) -> Iterator[LineKey]:
        return ((document, path) for document in self._packed for path in self._lines(document))

    def __len__(self) -> int:
        return sum(len(self._lines(document)) for document in self._packed)

    def _lines(self, document: str) -> dict[str, str]:
        if document not in self._of:
            packed = self._packed.get(document)
            self._of[document] = pickle.loads(packed) if packed else {}  # noqa: S301 — part of what `kept` has proved
        return self._of[document]


class CachedSpecs(Mapping[str, Any]):
    """Specs by name, as `Fleet` has them."""

    def __init__(self, packed: Mapping[str, bytes]) -> None:
        self._packed = packed
        self._unpacked: dict[str, Any] = {}

    @staticmethod
    def pack(specs: Mapping[str, Any]) -> dict[str, bytes]:
        """Return what makes the same specs again."""
        return {name: pickle.dumps(spec, 5) for name, spec in specs.items()}

    def __getitem__(self, name: str) -> Any:
        if name not in self._unpacked:
            self._unpacked[name] = pickle.loads(self._packed[name])  # noqa: S301 — part of what `kept` has proved
        return self._unpacked[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


if TYPE_CHECKING:
    from assay.fleet.yaml_document import ParseCache

MIN_CACHED_NODES = 256
"""Nodes; a smaller fleet is read about as fast as it is fetched."""
MAX_CACHE_FILES = 4  # files; one of 10,000 nodes takes 7 MB
INPUT_FOLDERS = ("inventory", "specs")
READER_ROOMS = ("model", "fleet")
UNCACHED_FIELDS = ("root", "commit", "dirty")
SHARED_PARSE_CACHE: ContextVar[ParseCache | None] = ContextVar(
    "what this process read already, where it holds several sessions"
)
NODE_ROW = attrgetter(*(field.name for field in fields(Node)))


def load_cached_fleet(root: Path) -> Fleet:
    """Return what `load_fleet(root)` returns, fetched where it was read before. Raises Trouble as that does."""
    root = root.absolute()
    where = root / ".assay" / "cache" / "fleet" / f"{_cache_key(root)}.pickle"
    kept = _read_cache(where)
    if kept is not None:
        commit, dirty = read_revision(root)
        nodes = {row[0]: Node(*row) for row in kept.pop("nodes")}
        lines, designs = CachedSourceLines(kept.pop("lines")), CachedSpecs(kept.pop("designs"))
        return Fleet(root=root, nodes=nodes, designs=designs, lines=lines, commit=commit, dirty=dirty, **kept)
    from assay.fleet.fleet_loader import load_fleet

    fleet = load_fleet(root, shelf=SHARED_PARSE_CACHE.get(None))
    whole = len(fleet.nodes) >= MIN_CACHED_NODES and not _reads_other_files(fleet)
    if whole and where.stem == _cache_key(root):  # nobody has written in the meantime
        _write_cache(where, fleet)
    return fleet


def _reads_other_files(fleet: Fleet) -> bool:
    from assay.fleet.switch_lists import LISTABLE_TIERS

    return any(
        (f"FabricDesign/{name}", f"{tier}.at.file") in fleet.lines for name in fleet.designs for tier in LISTABLE_TIERS
    )


def _cache_key(root: Path) -> str:
    """Return what tells this content from any other."""
    digest = hashlib.sha256(_reader_fingerprint().encode())
    for path in (path for folder in INPUT_FOLDERS for path in WorkingFolder(root).files(folder)):
        digest.update(f"{path}\0".encode(errors="surrogateescape"))
        with contextlib.suppress(OSError):
            digest.update(hashlib.sha256((root / path).read_bytes()).digest())
    return digest.hexdigest()[:32]


@cache
def _reader_fingerprint() -> str:
    """Return what the program that reads is, as far as what it makes can depend on it."""
    here = Path(assay.__file__).parent
    files = sorted(path for room in READER_ROOMS for path in (here / room).rglob("*.py"))
    files.append(Path(__file__))  # which says what a cache file is like
    about = [(path.as_posix(), *(path.stat().st_mtime_ns, path.stat().st_size)) for path in files]
    return repr((sys.version, pydantic.VERSION, about))


def _read_cache(path: Path) -> dict[str, Any] | None:
    """Return what is kept; None where there is nothing, nothing whole, or what another may have written."""
    try:
        with path.open("rb") as stream:
            about = os.fstat(stream.fileno())
            content = stream.read()
    except OSError:
        return None
    mine = about.st_uid == os.geteuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    payload = memoryview(content)[32:]
    if not mine or content[:32] != hashlib.sha256(payload).digest():
        return None
    with pause_gc():
        kept: dict[str, Any] = pickle.loads(payload)  # noqa: S301 — whole as this user wrote it
    return kept


def _write_cache(path: Path, fleet: Fleet) -> None:
    """Keep a fleet; where that cannot be, the next session reads it again. Another writer's file is the same."""
    plain = {field.name: getattr(fleet, field.name) for field in fields(fleet) if field.name not in UNCACHED_FIELDS}
    plain["nodes"] = [NODE_ROW(node) for node in fleet.nodes.values()]  # rows are fetched in half the time
    plain |= {"lines": CachedSourceLines.pack(fleet.lines), "designs": CachedSpecs.pack(fleet.designs)}
    payload = pickle.dumps(plain, 5)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:
            stream.write(hashlib.sha256(payload).digest() + payload)
        Path(stream.name).replace(path)
        by_age = sorted(path.parent.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
        for old in by_age[MAX_CACHE_FILES:]:
            old.unlink(missing_ok=True)
