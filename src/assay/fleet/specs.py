"""Reads the spec documents below `specs/` into models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from assay.fleet.document import Document, Shelf, read_file
from assay.fleet.kinds import KINDS, model_of
from assay.fleet.layers import entries, layered, place
from assay.fleet.listings import Unlisted, with_files
from assay.fleet.marks import Unreadable
from assay.fleet.problem import Problem
from assay.fleet.tree import Folder, Tree
from assay.fleet.violations import violations
from assay.model.errors import Trouble
from assay.model.spec import Spec

if TYPE_CHECKING:
    from assay.model.design import FabricDesign

MOST = 16 * 1024 * 1024  # bytes of one spec


@dataclass(frozen=True)
class SpecFile:
    """One spec, the file it stands in, and the files of the specs that it extends, nearest first."""

    spec: Spec
    document: Document
    bases: tuple[Document, ...] = ()

    @property
    def key(self) -> str:
        """`NodeSpec/hgx-h100`."""
        return f"{self.spec.kind}/{self.spec.name}"

    def place(self, path: Sequence[Any]) -> tuple[str, int, int]:
        """Return file, line and column of the entry at `path`."""
        return place((self.document, *self.bases), path)

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield dotted path and `file:line` of every entry; `""` is the document."""
        for path, _, line in self.entries():
            yield ".".join(map(str, path)), line

    def entries(self) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
        """Yield path, data and `file:line` of every entry."""
        return entries((self.document, *self.bases))


@dataclass(frozen=True)
class Refused:
    """A spec that could not be read: what is known of it, and why not. `kind` or `name` may be unknown ("")."""

    problems: list[Problem]
    kind: str = ""
    name: str = ""


@dataclass(frozen=True)
class _Read:
    """A document of a known kind, before its model has seen it."""

    document: Document
    model: type[Spec]

    @property
    def name(self) -> str:
        return _text(self.document, "name")

    @property
    def base(self) -> str:
        return _text(self.document, "extends")


def read_specs(tree: Tree, shelf: Shelf | None = None) -> tuple[list[SpecFile], list[Refused]]:
    """Read every YAML file below `specs/`, in order of their paths."""
    read = [_read(tree, path, shelf) for path in tree.files("specs") if path.endswith((".yaml", ".yml"))]
    by_name: dict[tuple[type[Spec], str], _Read] = {}
    for one in read:
        if isinstance(one, _Read):
            by_name.setdefault((one.model, one.name), one)
    whole = all(isinstance(one, _Read) for one in read)
    found = [_spec(one, by_name, whole, tree) if isinstance(one, _Read) else one for one in read]
    return [one for one in found if isinstance(one, SpecFile)], [one for one in found if isinstance(one, Refused)]


def read_design(file: Path, root: Path) -> FabricDesign:
    """Read a design that stands in a file of its own, in the repository at `root` or not. Raises Trouble."""
    path = file.absolute()
    read = _read(Folder(path.parent), path.name, None)
    found = read if isinstance(read, Refused) else _spec(read, {}, True, Folder(root))
    from assay.model.design import FabricDesign

    if isinstance(found, SpecFile) and isinstance(found.spec, FabricDesign):
        return found.spec
    if isinstance(found, SpecFile):
        raise Trouble(f"a {found.spec.kind} is no FabricDesign", where=str(file), fix="name the file of a design")
    first = found.problems[0]
    raise Trouble(first.message, where=f"{file.parent / first.where}", fix=first.fix)


def _read(tree: Tree, path: str, shelf: Shelf | None) -> _Read | Refused:
    """Read one document, or say why it is no spec of any kind."""
    try:
        document = read_file(tree, path, path, MOST, shelf)
    except Unreadable as wrong:
        return Refused([wrong.as_problem()])
    if not isinstance(document.data, dict):
        said = "a spec is a mapping that has a kind"
        return Refused([Problem(*document.start, "ASY0003", "error", said, "begin with `kind:`")])
    kind = document.data.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        said = f"kind {kind!r} is not known" if kind else "kind is missing"
        where = place([document], ("kind",))
        return Refused([Problem(*where, "ASY0002", "error", said, f"use one of {', '.join(KINDS)}")])
    return _Read(document, model_of(kind))


def _spec(one: _Read, by_name: Mapping[tuple[type[Spec], str], _Read], whole: bool, tree: Tree) -> SpecFile | Refused:
    """Read a document into its model, laid over what it extends, or say what is wrong with it.

    Where not all documents could be read (`whole`), what seems to lack may stand in one of the others.
    """
    chain, problem = _chain(one, by_name)
    if problem is not None:
        told = [problem] if whole or problem.code != "ASY0005" else []
        return Refused(told, one.model.__name__, one.name)
    documents = [read.document for read in chain]
    try:
        data = one.document.data if len(documents) == 1 else layered(documents)
        if one.model.__name__ == "FabricDesign":
            data = with_files(data, tree)
        return SpecFile(one.model.model_validate(data), one.document, tuple(documents[1:]))
    except Unlisted as wrong:
        return Refused(list(wrong.problems), one.model.__name__, one.name)
    except ValidationError as error:
        problems = [
            Problem(*place(documents, found.path), found.code or "ASY0003", "error", found.message, found.fix)
            for found in violations(error, one.model)
        ]
        return Refused(problems, one.model.__name__, one.name)


def _chain(one: _Read, by_name: Mapping[tuple[type[Spec], str], _Read]) -> tuple[list[_Read], Problem | None]:
    """Return a document and all that it extends, nearest first; and what is wrong with that chain."""
    chain = [one]
    while (base := chain[-1].base) != "":
        found = by_name.get((one.model, base))
        if found is None:
            said, fix = f"there is no {one.model.__name__} {base} to extend", "correct the name, or write that spec"
            return chain, Problem(*place([chain[-1].document], ("extends",)), "ASY0005", "error", said, fix)
        if found in chain:
            said = f"specs extend each other in a circle: {' → '.join([*(read.name for read in chain), base])}"
            return chain, Problem(*place([one.document], ("extends",)), "ASY0006", "error", said, "cut it open")
        chain.append(found)
    return chain, None


def _text(document: Document, key: str) -> str:
    value = document.data.get(key)
    return value if isinstance(value, str) else ""
