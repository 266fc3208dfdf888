"""Reads the spec documents below `specs/` into their models, and finds the file and line of each value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from assay.declare.repository.repository_tree import RepositoryTree, WorkingFolder
from assay.declare.spec_inheritance import find_entry_position, list_merged_entries, merge_specs
from assay.declare.switch_lists import SwitchListError, insert_switch_lists
from assay.declare.validation_problems import FleetProblem, explain_violations
from assay.declare.yaml_builder import UnreadableYaml
from assay.declare.yaml_document import ParseCache, YamlDocument, read_yaml_file
from assay.model.errors import AssayError
from assay.model.specs.spec_document import SPEC_KINDS, SpecDocument, load_spec_model

if TYPE_CHECKING:
    from assay.model.specs.fabric.fabric_design import FabricDesign

MAX_SPEC_BYTES = 16 * 1024 * 1024  # bytes of one spec
UNSHARED_KINDS = ("FabricDesign", "TicketRoute")
"""What these specs are depends on more than their documents: on files of switches, and on installed plug-ins."""


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
    found: dict[str, SpecFile] = {}
    for entry in files:
        found.setdefault(entry.key, entry)
    return found


def read_design(file: Path, root: Path) -> FabricDesign:
    """Read a fabric design from a single file, in the repository at `root` or elsewhere.

    Raises AssayError if the file holds no valid design.
    """
    path = file.absolute()
    source = _read_source(WorkingFolder(path.parent), path.name, None)
    found = source if isinstance(source, RefusedSpec) else _build_spec(source, {}, True, WorkingFolder(root))
    from assay.model.specs.fabric.fabric_design import FabricDesign

    if isinstance(found, SpecFile) and isinstance(found.spec, FabricDesign):
        return found.spec
    if isinstance(found, SpecFile):
        raise AssayError(f"a {found.spec.kind} is no FabricDesign", where=str(file), fix="name the file of a design")
    first = found.problems[0]
    raise AssayError(first.message, where=f"{file.parent / first.where}", fix=first.fix)


def _read_source(tree: RepositoryTree, path: str, cache: ParseCache | None) -> _SpecSource | RefusedSpec:
    """Read one document, or return why it is no spec of a known kind."""
    try:
        document = read_yaml_file(tree, path, path, MAX_SPEC_BYTES, cache)
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
        problems = [
            FleetProblem(
                *find_entry_position(documents, found.path), found.code or "ASY0003", "error", found.message, found.fix
            )
            for found in explain_violations(error, source.model)
        ]
        return RefusedSpec(problems, source.model.__name__, source.name)


def _resolve_extends(
    source: _SpecSource, by_name: Mapping[tuple[type[SpecDocument], str], _SpecSource]
) -> tuple[list[_SpecSource], FleetProblem | None]:
    """Return a document and everything that it extends, nearest first; and the problem of that chain, if any."""
    chain = [source]
    while (base := chain[-1].base) != "":
        found = by_name.get((source.model, base))
        if found is None:
            message = f"there is no {source.model.__name__} {base} to extend"
            where, fix = find_entry_position([chain[-1].document], ("extends",)), "correct the name, or write that spec"
            return chain, FleetProblem(*where, "ASY0005", "error", message, fix)
        if found in chain:
            message = f"specs extend each other in a circle: {' → '.join([*(link.name for link in chain), base])}"
            where = find_entry_position([source.document], ("extends",))
            return chain, FleetProblem(*where, "ASY0006", "error", message, "remove one `extends` of the circle")
        chain.append(found)
    return chain, None


def _get_text(document: YamlDocument, key: str) -> str:
    value = document.data.get(key)
    return value if isinstance(value, str) else ""


SpecEntryKey = tuple[str, str]


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
