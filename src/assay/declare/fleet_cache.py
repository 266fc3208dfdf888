"""Caches the fleet that was read last: with 10,000 nodes, reading takes seconds of CPU and fetching a tenth of one.

The nodes of `inventory/` and the specs are in files of their own: after a change of a spec, only the specs are read
again. The key of a file covers the content of every file that was read for it, and the code that reads them, so that
what is fetched is never stale. Specs that need other files too (switches listed in a file) are not cached.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields
from itertools import repeat
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pydantic

from assay.declare.cache_file_format import (
    CacheSections,
    decode_sections,
    encode_sections,
    fingerprint_program,
    read_cache_file,
    write_cache_file,
)
from assay.declare.home import Home
from assay.declare.loader import GroupedSpecs, assemble_fleet
from assay.declare.repository.git import read_revision
from assay.declare.repository.tree import WorkingFolder
from assay.model.fleet import FIELD_OF_KIND, Fleet
from assay.model.gc_pause import pause_gc
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings, ServiceImport
from assay.model.specs.spec_document import load_spec_model

if TYPE_CHECKING:
    from assay.declare.yaml import ParseCache
    from assay.model.specs.spec_document import SpecDocument

*PLAIN_NODE_FIELDS, _, _ = (field.name for field in fields(Node))  # the last two are image and settings
NO_IMAGE = ""
NODES, SETTINGS, IMPORTS = "nodes", "settings", "imports"
"""Names of sections: columns of the nodes, and their distinct settings."""
NodeColumns = dict[str, list[Any]]
V = TypeVar("V")
SpecEntryKey = tuple[str, str]
SPECS, LINES = "specs", "lines "
"""Names of sections: names of specs by Fleet field; lines of a spec. The section of a spec is called `Kind/name`."""
MIN_CACHED_DECLARATIONS = 16
"""A fleet of fewer nodes and specs together is read about as fast as it is fetched."""
MAX_CACHE_FILES = 8  # files of nodes and of specs; one of 10,000 nodes takes 3 MB
READER_ROOMS = ("model", "declare")
_LATER = pydantic.ConfigDict(defer_build=True)
SETTINGS_LIST = pydantic.TypeAdapter(list[NodeSettings], config=_LATER)
IMPORTS_LIST = pydantic.TypeAdapter(list[ServiceImport | None], config=_LATER)
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
        grouped = GroupedSpecs({place: getattr(fleet, place) for place in FIELD_OF_KIND.values()}, fleet.lines)
        declarations = len(fleet.nodes) + sum(map(len, grouped.by_field.values()))
        is_cachable = SHARED_PARSE_CACHE.get(None) is None and declarations >= MIN_CACHED_DECLARATIONS
        if is_cachable and files == _find_files(root, overlays):  # nothing was written in the meantime
            if nodes is None and (content := encode_nodes(fleet.nodes.values())):
                write_cache_file(files.nodes, content, MAX_CACHE_FILES)
            if specs is None and not _reads_other_files(fleet) and (content := encode_specs(grouped)):
                write_cache_file(files.specs, content, MAX_CACHE_FILES)
    return fleet


def _read_the_rest(
    root: Path, overlays: Sequence[Path] | None, nodes: CacheSections | None, specs: CacheSections | None
) -> Fleet:
    """Return the fleet: nodes or specs that were fetched, everything else read. Raises AssayError as `load_fleet`."""
    from assay.declare import loader

    parsed = SHARED_PARSE_CACHE.get(None)
    if nodes is not None:
        return assemble_fleet(
            root,
            decode_nodes(nodes),
            loader.read_grouped_specs(root, parsed),
            read_revision(root),
            is_lab=overlays is not None,
        )
    if specs is not None:
        read = loader.read_nodes(root, overlays, parsed)
        return assemble_fleet(root, read, decode_specs(specs), read_revision(root), is_lab=overlays is not None)
    return loader.load_fleet(root, overlays, None, parsed)


def _find_files(root: Path, overlays: Sequence[Path] | None) -> _CacheFiles:
    home = Home(root, "fleet" if overlays is None else "lab")
    folder = home.folder / "cache" / "fleet"
    tree = WorkingFolder(root)
    nodes = _digest_files(root, [*tree.files("inventory"), *map(str, overlays or ())])
    specs = _digest_files(root, tree.files("specs"))
    return _CacheFiles(folder / f"nodes-{nodes}.cache", folder / f"specs-{specs}.cache")


def _digest_files(root: Path, paths: Iterable[str]) -> str:
    """Return a digest of files, and of the code that reads them."""
    digest = hashlib.sha256(f"{fingerprint_program(READER_ROOMS)}{pydantic.VERSION}".encode())
    for path in paths:
        digest.update(f"{path}\0".encode(errors="surrogateescape"))
        with contextlib.suppress(OSError):
            digest.update(hashlib.sha256((root / path).read_bytes()).digest())
    return digest.hexdigest()[:32]


def _reads_other_files(fleet: Fleet) -> bool:
    from assay.declare.switch_lists import LISTABLE_TIERS

    return any(
        (f"FabricDesign/{name}", f"{tier}.at.file") in fleet.lines for name in fleet.designs for tier in LISTABLE_TIERS
    )


def encode_nodes(nodes: Iterable[Node]) -> bytes | None:
    """Return the content of a cache file; None if it would give other nodes than these."""
    columns, settings, imports = _split_nodes(nodes)
    dumps = (own.model_dump_json(exclude_unset=True, exclude={"service_import"}).encode() for own in settings)
    shared = IMPORTS_LIST.dump_json(imports)
    encoded = {NODES: json.dumps(columns).encode(), SETTINGS: b"[%s]" % b",".join(dumps), IMPORTS: shared}
    content = encode_sections(encoded)
    sections = decode_sections(content)
    try:
        is_same = sections is not None and _split_nodes(decode_nodes(sections)) == (columns, settings, imports)
    except pydantic.ValidationError:
        return None
    return content if is_same else None


def decode_nodes(sections: CacheSections) -> Iterable[Node]:
    """Return the nodes of a file. Those with equal settings share them. Images are left out: they follow from specs."""
    settings = SETTINGS_LIST.validate_json(sections.bytes(SETTINGS))
    imports = IMPORTS_LIST.validate_json(sections.bytes(IMPORTS))
    columns = sections.json(NODES)
    for place, number in enumerate(columns[IMPORTS]):
        if imports[number]:  # of all nodes of a pool, which have several settings
            settings[place] = settings[place].model_copy(update={"service_import": imports[number]})
    columns["hca_guids"] = map(tuple, columns["hca_guids"])
    shared = map(settings.__getitem__, columns[SETTINGS])
    return map(Node, *(columns[name] for name in PLAIN_NODE_FIELDS), repeat(NO_IMAGE), shared)


def _split_nodes(nodes: Iterable[Node]) -> tuple[NodeColumns, list[NodeSettings], list[ServiceImport | None]]:
    """Return the nodes column by column, and their distinct settings and imports: to compare those takes a tenth."""
    nodes = list(nodes)
    settings = {id(node.settings): node.settings for node in nodes}
    places = {key: place for place, key in enumerate(settings)}
    columns = {name: list(map(attrgetter(name), nodes)) for name in PLAIN_NODE_FIELDS}
    columns[SETTINGS] = [places[id(node.settings)] for node in nodes]
    imports = {id(own.service_import): own.service_import for own in settings.values()}
    numbers = {key: number for number, key in enumerate(imports)}
    columns[IMPORTS] = [numbers[id(own.service_import)] for own in settings.values()]
    return columns, list(settings.values()), list(imports.values())


def encode_specs(specs: GroupedSpecs) -> bytes | None:
    """Return the content of a cache file; None if it would give other specs than these."""
    lines: dict[str, dict[str, str]] = {}
    for (document, path), line in specs.lines.items():
        lines.setdefault(document, {})[path] = line
    names: dict[str, list[tuple[str, str]]] = {}
    sections: dict[str, bytes] = {}
    for place, by_name in specs.by_field.items():
        names[place] = []
        for name, spec in by_name.items():
            section = f"{spec.kind}/{spec.name}"
            names[place].append((name, section))
            sections[section] = spec.model_dump_json(exclude_unset=True).encode()
    for document, of_document in lines.items():
        sections[f"{LINES}{document}"] = json.dumps(of_document).encode()
    sections[SPECS] = json.dumps({"specs": names, "lines": list(lines)}).encode()
    content = encode_sections(sections)
    return content if _decodes_to(content, specs, lines) else None


def decode_specs(sections: CacheSections) -> GroupedSpecs:
    """Return the specs of a file. Each spec, and the lines of each, are decoded when they are first read."""

    def decode(section: str) -> SpecDocument:
        kind = section.partition("/")[0]
        return load_spec_model(kind).model_validate_json(sections.bytes(section))

    index = sections.json(SPECS)
    specs = {place: LazyMapping(dict(names), decode) for place, names in index["specs"].items()}
    return GroupedSpecs(specs, CachedSourceLines(sections, index["lines"]))


def _decodes_to(content: bytes, specs: GroupedSpecs, lines: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether a file of this content gives these specs, so that a cache changes no answer."""
    sections = decode_sections(content)
    if sections is None:
        return False
    decoded = decode_specs(sections)
    try:
        is_same = all(dict(decoded.by_field[place]) == dict(named) for place, named in specs.by_field.items())
    except pydantic.ValidationError:
        return False
    return is_same and all(sections.json(f"{LINES}{document}") == lines[document] for document in lines)


class LazyMapping(Mapping[str, V], Generic[V]):
    """A mapping whose values are made from their sources by `decode` when they are first read."""

    def __init__(self, sources: Mapping[str, str], decode: Callable[[str], V]) -> None:
        self._sources, self._decode = sources, decode
        self._values: dict[str, V] = {}

    def __getitem__(self, key: str) -> V:
        if key not in self._values:
            self._values[key] = self._decode(self._sources[key])
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._sources

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
