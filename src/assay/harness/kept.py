"""The fleet as it was read last, kept between sessions: 10,000 nodes are read in a second, and fetched in a tenth.

The key is of the content of every file below `inventory/` and `specs/` and of the program that reads them, so what is
fetched is never stale; a fleet that reads others too, the switches of a design listed in a file, is not kept. A kept
file begins with the digest of the rest, and counts only where nobody but its reader may write it: it holds Python's
pickle, which whoever writes it can make do anything.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from contextvars import ContextVar
from dataclasses import fields
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

import assay
from assay.fabric.many import many_objects
from assay.fleet.git import revision
from assay.fleet.tree import Folder
from assay.harness.kept_lines import KeptLines
from assay.harness.kept_specs import KeptSpecs
from assay.model.fleet import Fleet, Node

if TYPE_CHECKING:
    from assay.fleet.document import Shelf

MANY = 256
"""Nodes; a smaller fleet is read about as fast as it is fetched."""
KEPT = 4  # files; one of 10,000 nodes takes 7 MB
READ = ("inventory", "specs")
READERS = ("model", "fleet")
OF_THE_PLACE = ("root", "commit", "dirty")
SHELF: ContextVar[Shelf | None] = ContextVar("what this process read already, where it holds several sessions")
ROW = attrgetter(*(field.name for field in fields(Node)))


def fleet_at(root: Path) -> Fleet:
    """Return what `load_fleet(root)` returns, fetched where it was read before. Raises Trouble as that does."""
    root = root.absolute()
    where = root / ".assay" / "cache" / "fleet" / f"{_key(root)}.pickle"
    kept = _fetched(where)
    if kept is not None:
        commit, dirty = revision(root)
        nodes = {row[0]: Node(*row) for row in kept.pop("nodes")}
        lines, designs = KeptLines(kept.pop("lines")), KeptSpecs(kept.pop("designs"))
        return Fleet(root=root, nodes=nodes, designs=designs, lines=lines, commit=commit, dirty=dirty, **kept)
    from assay.fleet.load import load_fleet

    fleet = load_fleet(root, shelf=SHELF.get(None))
    whole = len(fleet.nodes) >= MANY and not _reads_others(fleet)
    if whole and where.stem == _key(root):  # nobody has written in the meantime
        _keep(where, fleet)
    return fleet


def _reads_others(fleet: Fleet) -> bool:
    from assay.fleet.listings import TIERS

    return any((f"FabricDesign/{name}", f"{tier}.at.file") in fleet.lines for name in fleet.designs for tier in TIERS)


def _key(root: Path) -> str:
    """Return what tells this content from any other."""
    digest = hashlib.sha256(_reader().encode())
    for path in (path for folder in READ for path in Folder(root).files(folder)):
        digest.update(f"{path}\0".encode(errors="surrogateescape"))
        with contextlib.suppress(OSError):
            digest.update(hashlib.sha256((root / path).read_bytes()).digest())
    return digest.hexdigest()[:32]


@cache
def _reader() -> str:
    """Return what the program that reads is, as far as what it makes can depend on it."""
    here = Path(assay.__file__).parent
    files = sorted(path for room in READERS for path in (here / room).rglob("*.py"))
    files += sorted((here / "harness").glob("kept*.py"))  # which say what a kept file is like
    about = [(path.as_posix(), *(path.stat().st_mtime_ns, path.stat().st_size)) for path in files]
    return repr((sys.version, pydantic.VERSION, about))


def _fetched(path: Path) -> dict[str, Any] | None:
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
    with many_objects():
        kept: dict[str, Any] = pickle.loads(payload)  # noqa: S301 — whole as this user wrote it
    return kept


def _keep(path: Path, fleet: Fleet) -> None:
    """Keep a fleet; where that cannot be, the next session reads it again. Another writer's file is the same."""
    plain = {field.name: getattr(fleet, field.name) for field in fields(fleet) if field.name not in OF_THE_PLACE}
    plain["nodes"] = [ROW(node) for node in fleet.nodes.values()]  # rows are fetched in half the time
    plain |= {"lines": KeptLines.packed(fleet.lines), "designs": KeptSpecs.packed(fleet.designs)}
    payload = pickle.dumps(plain, 5)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:
            stream.write(hashlib.sha256(payload).digest() + payload)
        Path(stream.name).replace(path)
        by_age = sorted(path.parent.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
        for old in by_age[KEPT:]:
            old.unlink(missing_ok=True)
