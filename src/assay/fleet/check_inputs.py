"""What each check reads of the specs, found in its source without running it: what changes there makes passes stale."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from assay.fleet.repository_tree import MAX_FILE_BYTES, RepositoryTree
from assay.fleet.yaml_document import ParseCache

BoundSide = Literal["at_least", "at_most", "equals"]
BOUND_SIDES: tuple[BoundSide, ...] = ("at_least", "at_most", "equals")
Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class LimitBound:
    """A measurement that a check holds to a limit: `measure("gpu_temperature", …, at_most=limits.gpu_temperature)`."""

    measurement: str
    side: BoundSide
    limit: str


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """What one check reads: fixtures, limits by name, dotted paths below `spec`, `profile` and `….declared`.

    A path `""` is the whole of it. `digest` is of the check's meaning, with every function and constant of its module
    that it uses; comments, blanks and docstrings are not in it.
    """

    fixtures: frozenset[str]
    limits: frozenset[str]
    spec: frozenset[str]
    profile: frozenset[str]
    declared: frozenset[tuple[str, str]]
    bounds: tuple[LimitBound, ...]
    digest: str

    def limits_by_measurement(self) -> dict[str, list[tuple[str, str]]]:
        """Return the sides and limits to which each measurement is held."""
        found: dict[str, list[tuple[str, str]]] = {}
        for bound in self.bounds:
            found.setdefault(bound.measurement, []).append((bound.side, bound.limit))
        return found


def read_check_inputs(tree: RepositoryTree, shelf: ParseCache | None = None) -> dict[str, CheckInputs]:
    """Return what each test function of the suites reads, by its pytest id. Files that are no Python have none.

    Two revisions that share a shelf share what is the same.
    """
    shelf = shelf or ParseCache()
    found: dict[str, CheckInputs] = {}
    for file in tree.files("suites"):
        name = file.rpartition("/")[2]
        if name.startswith("test_") and name.endswith(".py"):
            content = _content(tree, file)
            key = (file, hashlib.sha256(content).digest())
            if key not in shelf.modules:
                shelf.modules[key] = dict(_of_module(file, _parsed(content)))
            found.update(shelf.modules[key])
    return found


def _content(tree: RepositoryTree, file: str) -> bytes:
    try:
        return tree.read(file, MAX_FILE_BYTES)
    except OSError:
        return b""  # `check` tells of it, as of what is no Python


def _parsed(content: bytes) -> ast.Module:
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _of_module(file: str, module: ast.Module) -> Iterator[tuple[str, CheckInputs]]:
    defined = dict(_definitions(module))
    marks = [node for name, node in defined.items() if name == "pytestmark"]
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield f"{file}::{node.name}", _collect_inputs(node, [*_used(node, defined), *marks])


def _definitions(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield what a module defines at its top, without what only documents."""
    for node in module.body:
        if isinstance(node, Definition | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def _used(function: ast.stmt, defined: Mapping[str, ast.stmt]) -> list[ast.stmt]:
    """Return the function and what it uses of its module, and what that uses, in a stable order."""
    used, open_ends = [function], [function]
    while open_ends:
        here = open_ends.pop()
        names = {node.id for node in ast.walk(here) if isinstance(node, ast.Name)}
        new = [defined[name] for name in sorted(names) if name in defined and defined[name] not in used]
        used += new
        open_ends += new
    return used


def _collect_inputs(function: ast.FunctionDef, statements: list[ast.stmt]) -> CheckInputs:
    chains = {chain for statement in statements for chain in _attribute_chains(statement)}
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return CheckInputs(
        fixtures=frozenset(one.arg for one in arguments),
        limits=frozenset(chain[1] for chain in chains if chain[0] == "limits" and len(chain) > 1),
        spec=_paths_below(chains, "spec"),
        profile=_paths_below(chains, "profile"),
        declared=frozenset((chain[0], chain[2]) for chain in chains if chain[1:2] == ("declared",) and len(chain) > 2),
        bounds=tuple(dict.fromkeys(bound for statement in statements for bound in _bounds(statement))),
        digest=_digest(statements),
    )


def _paths_below(chains: set[tuple[str, ...]], root: str) -> frozenset[str]:
    return frozenset(".".join(chain[1:]) for chain in chains if chain[0] == root)


def _attribute_chains(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Yield every name that is read, with the attributes that follow it, as far as they follow: `spec.gpus.count`."""
    names: list[str] = []
    here = tree
    while isinstance(here, ast.Attribute):
        names.append(here.attr)
        here = here.value
    if isinstance(here, ast.Name):
        yield (here.id, *reversed(names))
    for child in ast.iter_child_nodes(here):
        yield from _attribute_chains(child)


def _bounds(statement: ast.stmt) -> Iterator[LimitBound]:
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Name(id="measure"), args=[ast.Constant(value=str(name)), *_], keywords=keywords):
                yield from (bound for keyword in keywords if (bound := _bound(name, keyword)))


def _bound(name: str, keyword: ast.keyword) -> LimitBound | None:
    match keyword.value:
        case ast.Attribute(value=ast.Name(id="limits"), attr=limit):
            side = next((side for side in BOUND_SIDES if side == keyword.arg), None)
            return LimitBound(name, side, limit) if side else None
    return None


def _digest(statements: list[ast.stmt]) -> str:
    return hashlib.sha256("\n".join(ast.dump(_strip_docstring(one)) for one in statements).encode()).hexdigest()[:16]


def _strip_docstring(statement: ast.stmt) -> ast.AST:
    """Return a statement without its docstring."""
    if isinstance(statement, Definition | ast.ClassDef) and ast.get_docstring(statement) is not None:
        kept = {name: value for name, value in ast.iter_fields(statement) if name != "body"}
        return type(statement)(**kept, body=statement.body[1:])
    return statement
