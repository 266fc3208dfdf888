"""Reads the spec documents below `specs/` into models.

Where the values of specs are written: a fleet has thousands, and a command asks for those of a spec or two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from assay.fleet.repository_tree import RepositoryTree, WorkingFolder
from assay.fleet.spec_inheritance import find_entry_position, list_merged_entries, merge_specs
from assay.fleet.spec_kinds import SPEC_KINDS, load_spec_model
from assay.fleet.switch_lists import SwitchListError, insert_switch_lists
from assay.fleet.validation_problems import FleetProblem, explain_violations
from assay.fleet.yaml_builder import UnreadableYaml
from assay.fleet.yaml_document import ParseCache, YamlDocument, read_yaml_file
from assay.model.errors import AssayError
from assay.model.specs.spec_document import SpecDocument

if TYPE_CHECKING:
    from assay.model.fabric.fabric_design import FabricDesign

MAX_SPEC_BYTES = 16 * 1024 * 1024  # bytes of one spec


@dataclass(frozen=True)
class SpecFile:
    """One spec, the file it stands in, and the files of the specs that it extends, nearest first."""

    spec: SpecDocument
    document: YamlDocument
    bases: tuple[YamlDocument, ...] = ()

    @property
    def key(self) -> str:
        """`NodeSpec/hgx-h100`."""
        return f"{self.spec.kind}/{self.spec.name}"

    def find_position(self, path: Sequence[Any]) -> tuple[str, int, int]:
        """Return file, line and column of the entry at `path`."""
        return find_entry_position((self.document, *self.bases), path)

    def list_lines(self) -> Iterator[tuple[str, str]]:
        """Yield dotted path and `file:line` of every entry; `""` is the document."""
        for path, _, line in self.list_entries():
            yield ".".join(map(str, path)), line

    def list_entries(self) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
        """Yield path, data and `file:line` of every entry."""
        return list_merged_entries((self.document, *self.bases))


@dataclass(frozen=True)
class RefusedSpec:
    """A spec that could not be read: what is known of it, and why not. `kind` or `name` may be unknown ("")."""

    problems: list[FleetProblem]
    kind: str = ""
    name: str = ""


@dataclass(frozen=True)
class _SpecSource:
    """A document of a known kind, before its model has seen it."""

    document: YamlDocument
    model: type[SpecDocument]

    @property
    def name(self) -> str:
        return _text(self.document, "name")

    @property
    def base(self) -> str:
        return _text(self.document, "extends")


def read_specs(tree: RepositoryTree, shelf: ParseCache | None = None) -> tuple[list[SpecFile], list[RefusedSpec]]:
    """Read every YAML file below `specs/`, in order of their paths."""
    read = [_read_source(tree, path, shelf) for path in tree.files("specs") if path.endswith((".yaml", ".yml"))]
    by_name: dict[tuple[type[SpecDocument], str], _SpecSource] = {}
    for one in read:
        if isinstance(one, _SpecSource):
            by_name.setdefault((one.model, one.name), one)
    whole = all(isinstance(one, _SpecSource) for one in read)
    found = [_build_spec(one, by_name, whole, tree) if isinstance(one, _SpecSource) else one for one in read]
    return [one for one in found if isinstance(one, SpecFile)], [one for one in found if isinstance(one, RefusedSpec)]


def read_design(file: Path, root: Path) -> FabricDesign:
    """Read a design that stands in a file of its own, in the repository at `root` or not. Raises Trouble."""
    path = file.absolute()
    read = _read_source(WorkingFolder(path.parent), path.name, None)
    found = read if isinstance(read, RefusedSpec) else _build_spec(read, {}, True, WorkingFolder(root))
    from assay.model.fabric.fabric_design import FabricDesign

    if isinstance(found, SpecFile) and isinstance(found.spec, FabricDesign):
        return found.spec
    if isinstance(found, SpecFile):
        raise AssayError(f"a {found.spec.kind} is no FabricDesign", where=str(file), fix="name the file of a design")
    first = found.problems[0]
    raise AssayError(first.message, where=f"{file.parent / first.where}", fix=first.fix)


def _read_source(tree: RepositoryTree, path: str, shelf: ParseCache | None) -> _SpecSource | RefusedSpec:
    """Read one document, or say why it is no spec of any kind."""
    try:
        document = read_yaml_file(tree, path, path, MAX_SPEC_BYTES, shelf)
    except UnreadableYaml as wrong:
        return RefusedSpec([wrong.as_problem()])
    if not isinstance(document.data, dict):
        said = "a spec is a mapping that has a kind"
        return RefusedSpec([FleetProblem(*document.start, "ASY0003", "error", said, "begin with `kind:`")])
    kind = document.data.get("kind")
    if not isinstance(kind, str) or kind not in SPEC_KINDS:
        said = f"kind {kind!r} is not known" if kind else "kind is missing"
        where = find_entry_position([document], ("kind",))
        return RefusedSpec([FleetProblem(*where, "ASY0002", "error", said, f"use one of {', '.join(SPEC_KINDS)}")])
    return _SpecSource(document, load_spec_model(kind))


def _build_spec(
    one: _SpecSource, by_name: Mapping[tuple[type[SpecDocument], str], _SpecSource], whole: bool, tree: RepositoryTree
) -> SpecFile | RefusedSpec:
    """Read a document into its model, laid over what it extends, or say what is wrong with it.

    Where not all documents could be read (`whole`), what seems to lack may stand in one of the others.
    """
    chain, problem = _resolve_extends(one, by_name)
    if problem is not None:
        told = [problem] if whole or problem.code != "ASY0005" else []
        return RefusedSpec(told, one.model.__name__, one.name)
    documents = [read.document for read in chain]
    try:
        data = one.document.data if len(documents) == 1 else merge_specs(documents)
        if one.model.__name__ == "FabricDesign":
            data = insert_switch_lists(data, tree)
        return SpecFile(one.model.model_validate(data), one.document, tuple(documents[1:]))
    except SwitchListError as wrong:
        return RefusedSpec(list(wrong.problems), one.model.__name__, one.name)
    except ValidationError as error:
        problems = [
            FleetProblem(
                *find_entry_position(documents, found.path), found.code or "ASY0003", "error", found.message, found.fix
            )
            for found in explain_violations(error, one.model)
        ]
        return RefusedSpec(problems, one.model.__name__, one.name)


def _resolve_extends(
    one: _SpecSource, by_name: Mapping[tuple[type[SpecDocument], str], _SpecSource]
) -> tuple[list[_SpecSource], FleetProblem | None]:
    """Return a document and all that it extends, nearest first; and what is wrong with that chain."""
    chain = [one]
    while (base := chain[-1].base) != "":
        found = by_name.get((one.model, base))
        if found is None:
            said, fix = f"there is no {one.model.__name__} {base} to extend", "correct the name, or write that spec"
            return chain, FleetProblem(
                *find_entry_position([chain[-1].document], ("extends",)), "ASY0005", "error", said, fix
            )
        if found in chain:
            said = f"specs extend each other in a circle: {' → '.join([*(read.name for read in chain), base])}"
            return chain, FleetProblem(
                *find_entry_position([one.document], ("extends",)), "ASY0006", "error", said, "cut it open"
            )
        chain.append(found)
    return chain, None


def _text(document: YamlDocument, key: str) -> str:
    value = document.data.get(key)
    return value if isinstance(value, str) else ""


SpecEntryKey = tuple[str, str]


class SpecLineIndex(Mapping[SpecEntryKey, str]):
    """`file:line` by spec (`Kind/name`) and dotted path, as `Fleet.lines` has them, made by the spec when asked for."""

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
            self._of[spec] = dict(file.list_lines()) if file else {}
        return self._of[spec]
