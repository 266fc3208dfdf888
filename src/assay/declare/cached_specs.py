"""The specs of a repository as sections of a cache file; specs and their lines are decoded when they are first read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pydantic

from assay.declare.cache_file_format import CacheSections, decode_sections, encode_sections
from assay.declare.fleet_assembly import GroupedSpecs
from assay.model.specs.spec_document import load_spec_model

if TYPE_CHECKING:
    from assay.model.specs.spec_document import SpecDocument

V = TypeVar("V")
SpecEntryKey = tuple[str, str]
SPECS, LINES = "specs", "lines "
"""Names of sections: names of specs by Fleet field; lines of a spec. The section of a spec is called `Kind/name`."""


def encode_specs(specs: GroupedSpecs) -> bytes | None:
    """Return the content of a cache file; None if it would give other specs than these."""
    lines: dict[str, dict[str, str]] = {}
    for (document, path), line in specs.lines.items():
        lines.setdefault(document, {})[path] = line
    names = {place: [(key, _name_section(one)) for key, one in of.items()] for place, of in specs.by_field.items()}
    content = encode_sections(
        {
            SPECS: json.dumps({"specs": names, "lines": list(lines)}).encode(),
            **{_name_section(one): _encode_model(one) for of in specs.by_field.values() for one in of.values()},
            **{f"{LINES}{document}": json.dumps(found).encode() for document, found in lines.items()},
        }
    )
    return content if _decodes_to(content, specs, lines) else None


def decode_specs(sections: CacheSections) -> GroupedSpecs:
    """Return the specs of a file."""
    index = sections.json(SPECS)
    specs: dict[str, Mapping[str, Any]] = {
        place: LazyMapping(dict(found), lambda section: _decode_spec(sections, section))
        for place, found in index["specs"].items()
    }
    return GroupedSpecs(specs, CachedSourceLines(sections, index["lines"]))


def _name_section(spec: SpecDocument) -> str:
    return f"{spec.kind}/{spec.name}"


def _encode_model(model: pydantic.BaseModel) -> bytes:
    return model.model_dump_json(exclude_unset=True).encode()


def _decode_spec(sections: CacheSections, section: str) -> SpecDocument:
    return load_spec_model(section.partition("/")[0]).model_validate_json(sections.bytes(section))


def _decodes_to(content: bytes, specs: GroupedSpecs, lines: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether a file of this content gives these specs, so that a cache changes no answer."""
    sections = decode_sections(content)
    if sections is None:
        return False
    decoded = decode_specs(sections)
    try:
        is_same = all(dict(decoded.by_field[place]) == dict(of) for place, of in specs.by_field.items())
    except pydantic.ValidationError:
        return False
    return is_same and all(sections.json(f"{LINES}{document}") == found for document, found in lines.items())


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
