"""Reads the spec documents below `specs/` into their models, and finds the file and line of each value.

A spec is merged with the specs that it extends by JSON Merge Patch (RFC 7396): mappings merge key by key, `null`
removes a key, and any other value, a list too, replaces the extended one. A `null` for a key that the extended spec
lacks stays, so the model refuses it.

The lists of NAMED_LISTS hold parts with a `name`. A mapping over such a list changes its parts by name in the same way:
`{bios: {version: "2"}}` changes one value of one part, `null` removes the part, a new name adds a part at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from assay.declare.problems import FleetProblem, explain_violations
from assay.declare.repository.tree import RepositoryTree, WorkingFolder
from assay.declare.switch_lists import SwitchListError, insert_switch_lists
from assay.declare.yaml import ParseCache, UnreadableYaml, YamlDocument, YamlMarks, read_yaml_file
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.specs.spec_document import SPEC_KINDS, SpecDocument, load_spec_model

NOT_INHERITED_KEYS = ("name", "extends", "description")
NAMED_LISTS = {"FirmwareBundle": frozenset({"components"}), "NodeSpec": frozenset({"hcas", "nics"})}
"""The fields of each kind whose parts a spec that extends another may change by name."""
MAX_SPEC_BYTES = 16 * 1024 * 1024  # bytes of one spec
UNSHARED_KINDS = ("FabricDesign", "TicketRoute")
"""What these specs are depends on more than their documents: on files of switches, and on installed plug-ins."""
SpecEntryKey = tuple[str, str]
S = TypeVar("S", bound=SpecDocument)


@frozen
class DeclaredValue:
    """One entry of a document: its data, and the positions of the entry and its parts.

    `named_lists`: the entries below whose parts are found by name; `is_named_list`: this is such an entry.
    """

    data: Any
    marks: YamlMarks | int
    document: YamlDocument
    named_lists: frozenset[str] = frozenset()
    is_named_list: bool = False

    def child(self, step: Any) -> DeclaredValue | None:
        """Return the entry one step down, None if the document has none."""
        if not isinstance(self.marks, YamlMarks) or step not in self.marks.entries:
            return None
        if isinstance(self.data, dict) and step not in self.data:
            return None
        is_named_list = step in self.named_lists
        return DeclaredValue(self.data[step], self.marks.entries[step], self.document, is_named_list=is_named_list)

    @property
    def mark(self) -> int:
        """The mark of the entry itself."""
        return self.marks.position if isinstance(self.marks, YamlMarks) else self.marks


def merge_specs(documents: Sequence[YamlDocument]) -> Any:
    """Return the merged data of a document and the documents that it extends, nearest first."""
    data: Any = {}
    for layer in reversed(_layer_roots(documents)):
        data = _merge_patch(data, layer.data, layer.named_lists)
    return data


def _layer_roots(documents: Sequence[YamlDocument]) -> list[DeclaredValue]:
    """Return the root of each document. Keys that are not inherited remain in the first one only."""
    own, *bases = documents
    named_lists = NAMED_LISTS.get(str(own.data.get("kind")), frozenset())
    roots = [DeclaredValue(own.data, own.marks, own, named_lists)]
    for base in bases:
        data = {key: value for key, value in base.data.items() if key not in NOT_INHERITED_KEYS}
        roots.append(DeclaredValue(data, base.marks, base, named_lists))
    return roots


def _merge_patch(base: Any, patch: Any, named_lists: frozenset[str] = frozenset()) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None and key in merged:
            del merged[key]
        elif key in named_lists and isinstance(value, dict) and _has_named_parts(merged.get(key)):
            merged[key] = _merge_named_parts(merged[key], value)
        else:
            merged[key] = _merge_patch(merged.get(key), value)
    return merged


def _merge_named_parts(base: list[dict[str, Any]], patch: dict[str, Any]) -> list[Any]:
    parts = {part["name"]: part for part in base}
    merged = _merge_patch(parts, patch)
    added = {
        name: {"name": name, **part} for name, part in merged.items() if name not in parts and isinstance(part, dict)
    }
    return list({**merged, **added}.values())


def _has_named_parts(parts: Any) -> bool:
    """Say whether this is a list of parts that have a name each, and no two the same."""
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return False
    names = [part.get("name") for part in parts]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def find_entry_position(documents: Sequence[YamlDocument], path: Sequence[Any]) -> tuple[str, int, int]:
    """Return file, line and column of the entry at `path`, or of its nearest parent that exists."""
    layers = _layer_roots(documents)
    for step in path:
        below = _children(layers, step)
        if not below:
            break
        layers = below
    return layers[0].document.locate_mark(layers[0].mark)


def list_merged_entries(documents: Sequence[YamlDocument]) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """Yield path, data and `file:line` of every entry of the merged spec, parents before children."""
    yield from walk_entries((), _layer_roots(documents))


def walk_entries(path: tuple[Any, ...], layers: list[DeclaredValue]) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """Yield path, data and `file:line` of the entry at `path` and of everything below it. The first layer wins."""
    yield path, layers[0].data, layers[0].document.line_at(layers[0].mark)
    for step in _child_keys(layers):
        below = _children(layers, step)
        if below and not (below[0].data is None and len(layers) > 1):
            yield from walk_entries((*path, step), below)


def _child_keys(layers: list[DeclaredValue]) -> list[Any]:
    if (parts := _list_named_parts(layers)) is not None:
        return list(range(len(parts)))
    if isinstance(layers[0].data, dict):
        return list(dict.fromkeys(step for layer in reversed(_effective_layers(layers)) for step in layer.data))
    return list(range(len(layers[0].data))) if isinstance(layers[0].data, list) else []


def _children(layers: list[DeclaredValue], step: Any) -> list[DeclaredValue]:
    if (parts := _list_named_parts(layers)) is not None:
        return parts[step] if isinstance(step, int) and 0 <= step < len(parts) else []
    effective = _effective_layers(layers) if isinstance(layers[0].data, dict) else layers[:1]
    return [child for layer in effective if (child := layer.child(step)) is not None]


def _effective_layers(layers: list[DeclaredValue]) -> list[DeclaredValue]:
    """Return the layers before the first one that is no mapping: those merge."""
    end = next((number for number, layer in enumerate(layers) if not isinstance(layer.data, dict)), len(layers))
    return layers[:end]


def _list_named_parts(layers: list[DeclaredValue]) -> list[list[DeclaredValue]] | None:
    """Return the layers of each part of a list that mappings change by name; None where no mapping does."""
    patches = _effective_layers(layers) if layers[0].is_named_list else []
    if not patches or len(patches) == len(layers) or not _has_named_parts(layers[len(patches)].data):
        return None
    base = layers[len(patches)]
    parts = {part["name"]: [_require_child(base, number)] for number, part in enumerate(base.data)}
    for patch in reversed(patches):
        for name in patch.data:
            child = _require_child(patch, name)
            if name not in parts:
                parts[name] = [_with_name(child, name)]
            elif child.data is None:
                del parts[name]
            else:
                parts[name] = [child, *parts[name]]
        names = []
        for name, part in parts.items():  # the layer above knows a part by the name that this one may have given it
            given = (layer.data["name"] for layer in _effective_layers(part) if "name" in layer.data)
            names.append(str(next(given, name)))
        if len(set(names)) == len(names):
            parts = dict(zip(names, parts.values(), strict=True))
    return list(parts.values())


def _require_child(entry: DeclaredValue, step: Any) -> DeclaredValue:
    return entry.child(step) or DeclaredValue(entry.data[step], entry.mark, entry.document)


def _with_name(part: DeclaredValue, name: str) -> DeclaredValue:
    """Return a new part with its name, which stands where the part does."""
    if not isinstance(part.data, dict) or "name" in part.data or not isinstance(part.marks, YamlMarks):
        return part
    marks = YamlMarks(part.mark, {"name": part.mark, **part.marks.entries})
    return replace(part, data={"name": name, **part.data}, marks=marks)


@dataclass(frozen=True)
class SpecFile:
    """One spec, its file, and the files of the specs that it extends, nearest first."""

    spec: SpecDocument
    document: YamlDocument
    bases: tuple[YamlDocument, ...] = ()

    @property
    def key(self) -> str:
        """Kind and name, such as `NodeSpec/hgx-h100`."""
        return f"{self.spec.kind}/{self.spec.name}"

    def find_position(self, path: Sequence[Any]) -> tuple[str, int, int]:
        """Return file, line and column of the entry at `path`."""
        return find_entry_position((self.document, *self.bases), path)

    @cached_property
    def lines(self) -> dict[str, str]:
        """The `file:line` of every entry by its dotted path; the path `""` is the document. Fleets share it."""
        return {".".join(map(str, path)): line for path, _, line in self.list_entries()}

    def list_entries(self) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
        """Yield path, data and `file:line` of every entry."""
        return list_merged_entries((self.document, *self.bases))


@dataclass(frozen=True)
class RefusedSpec:
    """A spec that could not be read, with its problems. `kind` or `name` is "" if unknown."""

    problems: list[FleetProblem]
    kind: str = ""
    name: str = ""


@dataclass(frozen=True)
class _SpecSource:
    """A document of a known kind, before validation."""

    document: YamlDocument
    model: type[SpecDocument]

    @property
    def name(self) -> str:
        return _get_text(self.document, "name")

    @property
    def base(self) -> str:
        return _get_text(self.document, "extends")


def read_specs(tree: RepositoryTree, cache: ParseCache | None = None) -> tuple[list[SpecFile], list[RefusedSpec]]:
    """Read every YAML file below `specs/`, in order of their paths."""
    paths = [path for path in tree.files("specs") if path.endswith((".yaml", ".yml"))]
    sources = [_read_source(tree, path, cache) for path in paths]
    by_name: dict[tuple[type[SpecDocument], str], _SpecSource] = {}
    for source in sources:
        if isinstance(source, _SpecSource):
            by_name.setdefault((source.model, source.name), source)
    all_read = all(isinstance(source, _SpecSource) for source in sources)
    specs = [
        _build_spec(source, by_name, all_read, tree, cache) if isinstance(source, _SpecSource) else source
        for source in sources
    ]
    read = [spec for spec in specs if isinstance(spec, SpecFile)]
    return read, [spec for spec in specs if isinstance(spec, RefusedSpec)]


def index_spec_files(files: Iterable[SpecFile]) -> dict[str, SpecFile]:
    """Return spec files by `Kind/name`. Of two specs with the same name, the first counts."""
    by_key: dict[str, SpecFile] = {}
    for entry in files:
        by_key.setdefault(entry.key, entry)
    return by_key


def read_spec_file(file: Path, root: Path, model: type[S]) -> tuple[S, SpecFile]:
    """Read one spec from a file, in the repository at `root` or elsewhere. It may extend a spec of the repository.

    Raises AssayError if the file holds no valid spec of this model.
    """
    path = file.absolute()
    tree = WorkingFolder(root.absolute())
    source = _read_source(tree, str(path), None, str(file))
    by_name: dict[tuple[type[SpecDocument], str], _SpecSource] = {}
    for name in tree.files("specs") if isinstance(source, _SpecSource) and source.base else ():
        if name.endswith((".yaml", ".yml")) and tree.root / name != path:
            other = _read_source(tree, name, None)
            if isinstance(other, _SpecSource):
                by_name.setdefault((other.model, other.name), other)
    read = source if isinstance(source, RefusedSpec) else _build_spec(source, by_name, True, tree)
    if isinstance(read, RefusedSpec):
        first = read.problems[0]
        raise AssayError(first.message, where=first.where, fix=first.fix)
    if not isinstance(read.spec, model):
        kind = model.__name__
        raise AssayError(f"a {read.spec.kind} is no {kind}", where=str(file), fix=f"name the file of a {kind}")
    return read.spec, read


def _read_source(
    tree: RepositoryTree, path: str, cache: ParseCache | None, file: str = ""
) -> _SpecSource | RefusedSpec:
    """Read one document, or return why it is no spec of a known kind. Messages call it `file`, by default its path."""
    try:
        document = read_yaml_file(tree, path, file or path, MAX_SPEC_BYTES, cache)
    except UnreadableYaml as error:
        return RefusedSpec([error.as_problem()])
    if not isinstance(document.data, dict):
        message = "a spec is a mapping that has a kind"
        return RefusedSpec([FleetProblem(*document.start, "ASY0003", "error", message, "begin with `kind:`")])
    kind = document.data.get("kind")
    if not isinstance(kind, str) or kind not in SPEC_KINDS:
        message = f"kind {kind!r} is not known" if kind else "kind is missing"
        where = find_entry_position([document], ("kind",))
        return RefusedSpec([FleetProblem(*where, "ASY0002", "error", message, f"use one of {', '.join(SPEC_KINDS)}")])
    return _SpecSource(document, load_spec_model(kind))


def _build_spec(
    source: _SpecSource,
    by_name: Mapping[tuple[type[SpecDocument], str], _SpecSource],
    all_read: bool,
    tree: RepositoryTree,
    cache: ParseCache | None = None,
) -> SpecFile | RefusedSpec:
    """Validate a document merged with what it extends, or return its problems.

    Unless all documents could be read (`all_read`), a missing base may be in one of the others and is not reported.
    """
    chain, problem = _resolve_extends(source, by_name)
    if problem is not None:
        reported = [problem] if all_read or problem.code != "ASY0005" else []
        return RefusedSpec(reported, source.model.__name__, source.name)
    documents = [link.document for link in chain]
    shared = cache.specs if cache and source.model.__name__ not in UNSHARED_KINDS else {}
    key = tuple((document.file, id(document.data)) for document in documents)  # the cache holds the data, too
    if key in shared:
        known: SpecFile = shared[key]
        return known
    try:
        data = source.document.data if len(documents) == 1 else merge_specs(documents)
        if source.model.__name__ == "FabricDesign":
            data = insert_switch_lists(data, tree)
        read = shared[key] = SpecFile(source.model.model_validate(data), source.document, tuple(documents[1:]))
        return read
    except SwitchListError as error:
        return RefusedSpec(list(error.problems), source.model.__name__, source.name)
    except ValidationError as error:
        problems = []
        for path, message, fix, code in explain_violations(error, source.model):
            where = find_entry_position(documents, path)
            problems.append(FleetProblem(*where, code or "ASY0003", "error", message, fix))
        return RefusedSpec(problems, source.model.__name__, source.name)


def _resolve_extends(
    source: _SpecSource, by_name: Mapping[tuple[type[SpecDocument], str], _SpecSource]
) -> tuple[list[_SpecSource], FleetProblem | None]:
    """Return a document and everything that it extends, nearest first; and the problem of that chain, if any."""
    chain = [source]
    while (base := chain[-1].base) != "":
        extended = by_name.get((source.model, base))
        if extended is None:
            message = f"there is no {source.model.__name__} {base} to extend"
            where = find_entry_position([chain[-1].document], ("extends",))
            return chain, FleetProblem(*where, "ASY0005", "error", message, "correct the name, or write that spec")
        if extended in chain:
            message = f"specs extend each other in a circle: {' → '.join([*(link.name for link in chain), base])}"
            where = find_entry_position([source.document], ("extends",))
            return chain, FleetProblem(*where, "ASY0006", "error", message, "remove one `extends` of the circle")
        chain.append(extended)
    return chain, None


def _get_text(document: YamlDocument, key: str) -> str:
    value = document.data.get(key)
    return value if isinstance(value, str) else ""


class SpecLineIndex(Mapping[SpecEntryKey, str]):
    """The `file:line` of each entry, by spec (`Kind/name`) and dotted path. A spec is indexed on first use."""

    def __init__(self, files: Mapping[str, SpecFile]) -> None:
        self._files = files
        self._of: dict[str, dict[str, str]] = {}

    def __getitem__(self, key: SpecEntryKey) -> str:
        spec, path = key
        return self._lines(spec)[path]

    def __iter__(self) -> Iterator[SpecEntryKey]:
        return ((spec, path) for spec in self._files for path in self._lines(spec))

    def __len__(self) -> int:
        return sum(len(self._lines(spec)) for spec in self._files)

    def _lines(self, spec: str) -> dict[str, str]:
        if spec not in self._of:
            file = self._files.get(spec)
            self._of[spec] = file.lines if file else {}
        return self._of[spec]
