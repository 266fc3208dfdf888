"""Caches the fleet that was read last: with 10,000 nodes, reading takes seconds of CPU and fetching a tenth of one.

With 20 nodes it is 0.3 and 0.1 s, in every command. The key covers the content of every file in `inventory/` and
`specs/`, of the overlays, and the code that reads them, so that a fetched fleet is never stale. A fleet that reads
other files too (switches listed in a file) is not cached. Specs and source lines are decoded when they are first read:
a check needs those of one node.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pydantic

from assay.fleet.cache_file_format import (
    CacheSections,
    decode_sections,
    encode_sections,
    fingerprint_program,
    read_cache_file,
    write_cache_file,
)
from assay.fleet.git import read_revision
from assay.fleet.repository_tree import WorkingFolder
from assay.model.fleet import Fleet
from assay.model.gc_pause import pause_gc
from assay.model.node import Node
from assay.model.specs.spec_document import load_spec_model

if TYPE_CHECKING:
    from assay.fleet.yaml_document import ParseCache
    from assay.model.specs.spec_document import SpecDocument

V = TypeVar("V")
SpecEntryKey = tuple[str, str]

MIN_CACHED_DECLARATIONS = 16
"""A fleet of fewer nodes and specs together is read about as fast as it is fetched."""
MAX_CACHE_FILES = 4  # files; one of 10,000 nodes takes 4 MB
INPUT_FOLDERS = ("inventory", "specs")
READER_ROOMS = ("model", "fleet")
SHARED_PARSE_CACHE: ContextVar[ParseCache | None] = ContextVar(
    "documents that this process has read, where it runs several sessions"
)
PLAIN_NODE_FIELDS = tuple(field.name for field in fields(Node) if field.name != "settings")
SPEC_FIELDS = tuple(
    field.name for field in fields(Fleet) if field.name not in ("root", "nodes", "lines", "commit", "dirty")
)
NODES, SETTINGS, SPECS, LINES = "nodes", "settings", "specs", "lines "
"""Names of sections: columns of the nodes, their distinct settings, names of specs by Fleet field; lines of a spec.

The section of a spec is called `Kind/name`.
"""


def load_cached_fleet(root: Path, overlays: Sequence[Path] = ()) -> Fleet:
    """Return what `load_fleet(root, overlays)` returns, fetched where it was read before. `overlays` are files.

    Raises AssayError as `load_fleet` does.
    """
    root = root.absolute()
    path = root / ".assay" / "cache" / "fleet" / f"{_cache_key(root, overlays)}.cache"
    with pause_gc():
        sections = read_cache_file(path)
        if sections is not None:
            return _decode_fleet(root, sections)
    from assay.fleet.fleet_loader import load_fleet

    parsed = SHARED_PARSE_CACHE.get(None)
    fleet = load_fleet(root, overlays, None, parsed)
    is_cachable = parsed is None and _is_worth_caching(fleet) and not _reads_other_files(fleet)
    if is_cachable and path.stem == _cache_key(root, overlays):  # nothing was written in the meantime
        content = _encode_fleet(fleet)
        if _decodes_to(content, fleet):
            write_cache_file(path, content, MAX_CACHE_FILES)
    return fleet


def _cache_key(root: Path, overlays: Sequence[Path]) -> str:
    """Return a digest of everything that the fleet depends on."""
    digest = hashlib.sha256(f"{fingerprint_program(READER_ROOMS)}{pydantic.VERSION}".encode())
    own = (path for folder in INPUT_FOLDERS for path in WorkingFolder(root).files(folder))
    for path in (*own, *map(str, overlays)):
        digest.update(f"{path}\0".encode(errors="surrogateescape"))
        with contextlib.suppress(OSError):
            digest.update(hashlib.sha256((root / path).read_bytes()).digest())
    return digest.hexdigest()[:32]


def _is_worth_caching(fleet: Fleet) -> bool:
    return len(fleet.nodes) + sum(len(getattr(fleet, name)) for name in SPEC_FIELDS) >= MIN_CACHED_DECLARATIONS


def _reads_other_files(fleet: Fleet) -> bool:
    from assay.fleet.switch_lists import LISTABLE_TIERS

    return any(
        (f"FabricDesign/{name}", f"{tier}.at.file") in fleet.lines for name in fleet.designs for tier in LISTABLE_TIERS
    )


def _encode_fleet(fleet: Fleet) -> bytes:
    nodes = list(fleet.nodes.values())
    settings = {id(node.settings): node.settings for node in nodes}  # nodes with equal settings share one object
    places = {key: place for place, key in enumerate(settings)}
    columns = {name: list(map(attrgetter(name), nodes)) for name in PLAIN_NODE_FIELDS}
    columns["settings"] = [places[id(node.settings)] for node in nodes]
    specs: dict[str, Mapping[str, SpecDocument]] = {name: getattr(fleet, name) for name in SPEC_FIELDS}
    lines: dict[str, dict[str, str]] = {}
    for (document, path), line in fleet.lines.items():
        lines.setdefault(document, {})[path] = line
    names = {name: [(key, f"{spec.kind}/{spec.name}") for key, spec in of.items()] for name, of in specs.items()}
    return encode_sections(
        {
            NODES: json.dumps(columns).encode(),
            SETTINGS: b"[%s]" % b",".join(map(_encode_model, settings.values())),
            SPECS: json.dumps({"specs": names, "lines": list(lines)}).encode(),
            **{f"{spec.kind}/{spec.name}": _encode_model(spec) for of in specs.values() for spec in of.values()},
            **{f"{LINES}{document}": json.dumps(found).encode() for document, found in lines.items()},
        }
    )


def _encode_model(model: pydantic.BaseModel) -> bytes:
    return model.model_dump_json(exclude_unset=True).encode()


def _decode_fleet(root: Path, sections: CacheSections) -> Fleet:
    """Return a fleet whose specs and lines are decoded when they are read."""
    from assay.model.specs.node_settings import NodeSettings

    settings = pydantic.TypeAdapter(list[NodeSettings]).validate_json(sections.bytes(SETTINGS))
    columns = sections.json(NODES)
    columns["hca_guids"] = map(tuple, columns["hca_guids"])
    columns["settings"] = map(settings.__getitem__, columns["settings"])
    nodes = map(Node, *(columns[field.name] for field in fields(Node)))
    index = sections.json(SPECS)
    specs: dict[str, Any] = {
        name: LazyMapping(dict(found), lambda section: _decode_spec(sections, section))
        for name, found in index["specs"].items()
    }
    commit, dirty = read_revision(root)
    lines = CachedSourceLines(sections, index["lines"])
    return Fleet(root, {node.name: node for node in nodes}, **specs, lines=lines, commit=commit, dirty=dirty)


def _decode_spec(sections: CacheSections, section: str) -> SpecDocument:
    return load_spec_model(section.partition("/")[0]).model_validate_json(sections.bytes(section))


def _decodes_to(content: bytes, fleet: Fleet) -> bool:
    """Return whether a file of this content gives the fleet that was read, so that a cache changes no answer."""
    sections = decode_sections(content)
    try:
        return sections is not None and _decode_fleet(fleet.root, sections) == fleet
    except pydantic.ValidationError:
        return False


class LazyMapping(Mapping[str, V], Generic[V]):
    """A mapping whose values are made from their sources by `decode` when they are first read."""

    def __init__(self, sources: Mapping[str, str], decode: Callable[[str], V]) -> None:
        self._sources, self._decode = sources, decode
        self._values: dict[str, V] = {}

    def __getitem__(self, key: str) -> V:
        if key not in self._values:
            self._values[key] = self._decode(self._sources[key])
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


class CachedSourceLines(Mapping[SpecEntryKey, str]):
    """`file:line` by document and path, as `Fleet.lines`; a document's lines are decoded when one is read."""

    def __init__(self, sections: CacheSections, documents: list[str]) -> None:
        names = {document: f"{LINES}{document}" for document in documents}
        self._documents: Mapping[str, dict[str, str]] = LazyMapping(names, sections.json)

    def __getitem__(self, key: SpecEntryKey) -> str:
        document, path = key
        return self._documents[document][path]

    def __iter__(self) -> Iterator[SpecEntryKey]:
        return ((document, path) for document, lines in self._documents.items() for path in lines)

    def __len__(self) -> int:
        return sum(map(len, self._documents.values()))
