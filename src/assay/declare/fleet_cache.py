"""Caches the fleet that was read last: with 10,000 nodes, reading takes seconds of CPU and fetching a tenth of one.

The nodes of `inventory/` and the specs are in files of their own: after a change of a spec, only the specs are read
again. The key of a file covers the content of every file that was read for it, and the code that reads them, so that
what is fetched is never stale. Specs that need other files too (switches listed in a file) are not cached.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pydantic

from assay.declare.cache_file_format import CacheSections, fingerprint_program, read_cache_file, write_cache_file
from assay.declare.cached_nodes import decode_nodes, encode_nodes
from assay.declare.cached_specs import decode_specs, encode_specs
from assay.declare.fleet_assembly import GroupedSpecs, assemble_fleet
from assay.declare.home import Home
from assay.declare.repository.git import read_revision
from assay.declare.repository.repository_tree import WorkingFolder
from assay.model.fleet import FIELD_OF_KIND, Fleet
from assay.model.gc_pause import pause_gc

if TYPE_CHECKING:
    from assay.declare.yaml_document import ParseCache

MIN_CACHED_DECLARATIONS = 16
"""A fleet of fewer nodes and specs together is read about as fast as it is fetched."""
MAX_CACHE_FILES = 8  # files of nodes and of specs; one of 10,000 nodes takes 3 MB
READER_ROOMS = ("model", "fleet")
SHARED_PARSE_CACHE: ContextVar[ParseCache | None] = ContextVar(
    "documents that this process has read, where it runs several sessions"
)


@dataclass(frozen=True)
class _CacheFiles:
    """Where the nodes and the specs of a repository are cached, as it is now."""

    nodes: Path
    specs: Path


def load_cached_fleet(root: Path, overlays: Sequence[Path] | None = None) -> Fleet:
    """Return what `load_fleet(root, overlays)` returns, fetched where it was read before. `overlays` are files.

    Raises AssayError as `load_fleet` does.
    """
    root = root.absolute()
    with pause_gc():
        files = _find_files(root, overlays)
        nodes, specs = read_cache_file(files.nodes), read_cache_file(files.specs)
        if nodes is not None and specs is not None:
            return assemble_fleet(
                root, decode_nodes(nodes), decode_specs(specs), read_revision(root), is_lab=overlays is not None
            )
        fleet = _read_the_rest(root, overlays, nodes, specs)
        is_cachable = SHARED_PARSE_CACHE.get(None) is None and _is_worth_caching(fleet)
        if is_cachable and files == _find_files(root, overlays):  # nothing was written in the meantime
            if nodes is None and (content := encode_nodes(fleet.nodes.values())):
                write_cache_file(files.nodes, content, MAX_CACHE_FILES)
            if specs is None and not _reads_other_files(fleet) and (content := encode_specs(_group_specs(fleet))):
                write_cache_file(files.specs, content, MAX_CACHE_FILES)
    return fleet


def _read_the_rest(
    root: Path, overlays: Sequence[Path] | None, nodes: CacheSections | None, specs: CacheSections | None
) -> Fleet:
    """Return the fleet: nodes or specs that were fetched, everything else read. Raises AssayError as `load_fleet`."""
    from assay.declare import fleet_loader

    parsed = SHARED_PARSE_CACHE.get(None)
    if nodes is not None:
        return assemble_fleet(
            root,
            decode_nodes(nodes),
            fleet_loader.read_grouped_specs(root, parsed),
            read_revision(root),
            is_lab=overlays is not None,
        )
    if specs is not None:
        read = fleet_loader.read_nodes(root, overlays, parsed)
        return assemble_fleet(root, read, decode_specs(specs), read_revision(root), is_lab=overlays is not None)
    return fleet_loader.load_fleet(root, overlays, None, parsed)


def _find_files(root: Path, overlays: Sequence[Path] | None) -> _CacheFiles:
    home = Home(root, "fleet" if overlays is None else "lab")
    folder, tree = home.folder / "cache" / "fleet", WorkingFolder(root)
    nodes = _digest_files(root, [*tree.files("inventory"), *map(str, overlays or ())])
    return _CacheFiles(
        folder / f"nodes-{nodes}.cache", folder / f"specs-{_digest_files(root, tree.files('specs'))}.cache"
    )


def _digest_files(root: Path, paths: Iterable[str]) -> str:
    """Return a digest of files, and of the code that reads them."""
    digest = hashlib.sha256(f"{fingerprint_program(READER_ROOMS)}{pydantic.VERSION}".encode())
    for path in paths:
        digest.update(f"{path}\0".encode(errors="surrogateescape"))
        with contextlib.suppress(OSError):
            digest.update(hashlib.sha256((root / path).read_bytes()).digest())
    return digest.hexdigest()[:32]


def _group_specs(fleet: Fleet) -> GroupedSpecs:
    return GroupedSpecs({place: getattr(fleet, place) for place in FIELD_OF_KIND.values()}, fleet.lines)


def _is_worth_caching(fleet: Fleet) -> bool:
    specs = sum(len(of) for of in _group_specs(fleet).by_field.values())
    return len(fleet.nodes) + specs >= MIN_CACHED_DECLARATIONS


def _reads_other_files(fleet: Fleet) -> bool:
    from assay.declare.switch_lists import LISTABLE_TIERS

    return any(
        (f"FabricDesign/{name}", f"{tier}.at.file") in fleet.lines for name in fleet.designs for tier in LISTABLE_TIERS
    )
