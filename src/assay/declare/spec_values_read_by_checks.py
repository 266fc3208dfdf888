"""Finds what each check reads of the specs, from its source. A pass becomes stale if such a value changes.

`plan` compares these values of two revisions. `JudgingHashes` makes one hash of them, which each outcome carries.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Literal

from assay.declare.repository.tree import MAX_FILE_BYTES, RepositoryTree, WorkingFolder
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.check_catalog import PARTS_OF_SUBJECTS, CheckDeclaration
from assay.model.specs.load_parts import GOLDEN_FIXTURES

BoundSide = Literal["at_least", "at_most", "equals"]
BOUND_SIDES: tuple[BoundSide, ...] = ("at_least", "at_most", "equals")
Definition = ast.FunctionDef | ast.AsyncFunctionDef
PART_COUNT_PATHS = PARTS_OF_SUBJECTS | {"gpu": "gpus.pci", "psu": "psus.count", "nvme": "nvme.count"}
"""What of a spec says over how many parts a check is repeated, and where they are."""
FABRIC_FIXTURES = {"link", "fabric"}  # a check with one of these is judged by the designed cables
MAX_KNOWN_FILES = 512
"""Files of suites whose inputs a process remembers; one takes a few kilobytes."""


@frozen
class LimitBound:
    """A measurement with a limit: `measure("gpu_temperature", …, at_most=limits.gpu_temperature)`."""

    measurement: str
    side: BoundSide
    limit: str


@frozen
class CheckInputs:
    """What one check reads: fixtures, limits of node specs and of fabrics, and dotted paths of declared values.

    The paths are those below `spec`, `profile` and `….declared`.
    The path `""` means all of it. `digest` covers the check's code and every function and constant of its module that
    it uses, without comments, blank lines and docstrings.
    """

    fixtures: frozenset[str]
    limits: frozenset[str]
    fabric_limits: frozenset[str]
    spec: frozenset[str]
    profile: frozenset[str]
    declared: frozenset[tuple[str, str]]
    bounds: tuple[LimitBound, ...]
    digest: str

    @property
    def has_cables(self) -> bool:
        """Whether the check is judged by the designed cables."""
        return bool(FABRIC_FIXTURES & self.fixtures)

    def limits_by_measurement(self) -> dict[str, list[tuple[str, str]]]:
        """Return each measurement's bounds, as pairs of side and limit."""
        bounds: dict[str, list[tuple[str, str]]] = {}
        for bound in self.bounds:
            bounds.setdefault(bound.measurement, []).append((bound.side, bound.limit))
        return bounds


def read_check_inputs(tree: RepositoryTree) -> dict[str, CheckInputs]:
    """Return what each test function of the suites reads, by its pytest id. Files that are not Python are skipped."""
    inputs: dict[str, CheckInputs] = {}
    for file in tree.files("suites"):
        name = file.rpartition("/")[2]
        if name.startswith("test_") and name.endswith(".py"):
            inputs.update(_read_file_inputs(file, _read_content(tree, file)))
    return inputs


def _read_content(tree: RepositoryTree, file: str) -> bytes:
    try:
        return tree.read(file, MAX_FILE_BYTES)
    except OSError:
        return b""  # `assay check` reports unreadable files, and files that are not Python


@lru_cache(maxsize=MAX_KNOWN_FILES)
def _read_file_inputs(file: str, content: bytes) -> Mapping[str, CheckInputs]:
    """Return what the functions of one file read. A process parses each content once: revisions and runs share most."""
    return MappingProxyType(dict(_read_module_inputs(file, _parse_python(content))))


def _parse_python(content: bytes) -> ast.Module:
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _read_module_inputs(file: str, module: ast.Module) -> Iterator[tuple[str, CheckInputs]]:
    defined = dict(_list_definitions(module))
    marks = [node for name, node in defined.items() if name == "pytestmark"]
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield f"{file}::{node.name}", _collect_inputs(node, [*_find_used(node, defined), *marks])


def _list_definitions(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield name and statement of every function, class and variable at the top level of a module."""
    for node in module.body:
        if isinstance(node, Definition | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def _find_used(function: ast.stmt, defined: Mapping[str, ast.stmt]) -> list[ast.stmt]:
    """Return the function and all definitions of its module that it uses, directly or not, in a stable order."""
    used = [function]
    waiting = [function]
    while waiting:
        current = waiting.pop()
        names = {node.id for node in ast.walk(current) if isinstance(node, ast.Name)}
        new = [defined[name] for name in sorted(names) if name in defined and defined[name] not in used]
        used += new
        waiting += new
    return used


def _collect_inputs(function: ast.FunctionDef, statements: list[ast.stmt]) -> CheckInputs:
    chains = {chain for statement in statements for chain in _attribute_chains(statement)}
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    code = "\n".join(ast.dump(_strip_docstring(statement)) for statement in statements)
    return CheckInputs(
        fixtures=frozenset(argument.arg for argument in arguments),
        limits=frozenset(chain[1] for chain in chains if chain[0] == "limits" and len(chain) > 1),
        fabric_limits=frozenset(chain[1] for chain in chains if chain[0] == "fabric_limits" and len(chain) > 1),
        spec=_paths_below(chains, "spec"),
        profile=_paths_below(chains, "profile"),
        declared=frozenset((chain[0], chain[2]) for chain in chains if chain[1:2] == ("declared",) and len(chain) > 2),
        bounds=tuple(dict.fromkeys(bound for statement in statements for bound in _find_bounds(statement))),
        digest=hashlib.sha256(code.encode()).hexdigest()[:16],
    )


def _paths_below(chains: set[tuple[str, ...]], root: str) -> frozenset[str]:
    return frozenset(".".join(chain[1:]) for chain in chains if chain[0] == root)


def _attribute_chains(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Yield every name in the tree with the attributes that follow it, such as `spec.gpus.count`."""
    names: list[str] = []
    current = tree
    while isinstance(current, ast.Attribute):
        names.append(current.attr)
        current = current.value
    if isinstance(current, ast.Name):
        yield (current.id, *reversed(names))
    for child in ast.iter_child_nodes(current):
        yield from _attribute_chains(child)


def _find_bounds(statement: ast.stmt) -> Iterator[LimitBound]:
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Name(id="measure"), args=[ast.Constant(value=str(name)), *_], keywords=keywords):
                yield from (bound for keyword in keywords if (bound := _read_bound(name, keyword)))


def _read_bound(name: str, keyword: ast.keyword) -> LimitBound | None:
    match keyword.value:
        case ast.Attribute(value=ast.Name(id="limits"), attr=limit):
            side = next((side for side in BOUND_SIDES if side == keyword.arg), None)
            return LimitBound(name, side, limit) if side else None
    return None


def _strip_docstring(statement: ast.stmt) -> ast.AST:
    if isinstance(statement, Definition | ast.ClassDef) and ast.get_docstring(statement) is not None:
        fields = {name: value for name, value in ast.iter_fields(statement) if name != "body"}
        return type(statement)(**fields, body=statement.body[1:])
    return statement


def list_spec_paths(check: CheckDeclaration, reads: CheckInputs) -> list[str]:
    """Return the dotted paths of a node spec on which a check's verdict depends, besides its limits."""
    parts = {f"{PARTS_OF_SUBJECTS[root]}.{field}" for root, field in reads.declared if root in PARTS_OF_SUBJECTS}
    count = {PART_COUNT_PATHS[check.subject]} if check.subject in PART_COUNT_PATHS else set()
    return sorted({*reads.spec, *parts, *count})


def normalize_declaration(check: CheckDeclaration) -> CheckDeclaration:
    """Return a check without its stage, `valid_hours` and `needs`, which do not change what a pass says."""
    return check.model_copy(update={"stage": "decide", "valid_hours": None, "report_only": False, "needs": []})


def value_at(value: Any, path: str) -> Any:
    """Return the value at a dotted path, as far as it exists: `kernel_cmdline.copy` ends at the list."""
    for step in path.split(".") if path else ():
        if isinstance(value, list | str | int | float | Mapping) or not hasattr(value, step):
            break
        value = getattr(value, step)
    return value


class JudgingHashes:
    """The hash of what each check of a fleet is judged by: its code, declaration, limits, spec values and cables.

    An outcome with another hash was judged by other specs. `plan` announces the same checks as to be run again. Each
    hash is computed once for all nodes that share it. `digest_cables` returns a digest of the designed cables by node,
    see `assay.fabric.design.node_cables`.
    """

    def __init__(
        self, fleet: Fleet, digest_cables: Callable[[Fleet], Mapping[str, str]], tree: RepositoryTree | None = None
    ) -> None:
        self._fleet, self._digest_cables = fleet, digest_cables
        self.reads = read_check_inputs(tree or WorkingFolder(fleet.root))
        self._checks = {check.id: check for catalog in fleet.check_catalogs.values() for check in catalog.checks}
        self._known: dict[str, Mapping[str, str]] = {}
        self._known_by_check: dict[tuple[Any, ...], str] = {}

    def of_node(self, name: str) -> Mapping[str, str]:
        """Return the hashes by check, for a node; none for one that the inventory no longer has."""
        if name not in self._fleet.nodes:
            return {}
        if name not in self._known:
            self._known[name] = {check: self.of_check(check, name) for check in self._checks if check in self.reads}
        return self._known[name]

    def of_check(self, check: str, name: str) -> str:
        """Return the hash of one check for a node of the inventory, "" for a check without a function.

        Nodes share it unless the check reads what differs between them, so it is cheap for many nodes.
        """
        if check not in self._checks or check not in self.reads:
            return ""
        node, reads = self._fleet.nodes[name], self.reads[check]
        own = dict(self._list_own_values(reads, node))
        key = (check, node.spec, node.profile, *own.items())
        if key not in self._known_by_check:
            values = dict(self._list_values(self._checks[check], reads, node))
            text = json.dumps(values, sort_keys=True, default=_make_plain)
            self._known_by_check[key] = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._known_by_check[key]

    def find_only_path(self, check: str) -> str:
        """Return the path of the one value below `spec` that a check reads, "" if it reads none, several, or limits."""
        reads = self.reads.get(check)
        return next(iter(reads.spec)) if reads and len(reads.spec) == 1 and not reads.limits else ""

    def is_shared(self, check: str) -> bool:
        """Whether all nodes with the same spec and profile have the same hash of a check."""
        return not (reads := self.reads.get(check)) or not (
            reads.has_cables or {root for root, _ in reads.declared} & {"node", "hca"}
        )

    @cached_property
    def _cables(self) -> Mapping[str, str]:
        is_read = any(self.reads[check].has_cables for check in self._checks if check in self.reads)
        return self._digest_cables(self._fleet) if is_read else {}

    def _list_values(self, check: CheckDeclaration, reads: CheckInputs, node: Node) -> Iterator[tuple[str, Any]]:
        """Yield name and value of everything that a check is judged by on a node."""
        spec, profile = self._fleet.spec_of(node.name), self._fleet.profile_of(node.name)
        yield from (("code", reads.digest), ("declaration", normalize_declaration(check)))
        for name in sorted(reads.limits):
            yield f"limits.{name}", (limit.value, limit.unit) if (limit := spec.limits.get(name)) else None
        for path in list_spec_paths(check, reads):
            yield f"spec.{path}", value_at(spec, path)
        for path in sorted(reads.profile):
            yield f"profile.{path}", value_at(profile, path)
        if "bundle" in reads.fixtures:
            yield "bundle", self._fleet.bundle_of(node.name).components
        for kind in sorted({GOLDEN_FIXTURES[fixture] for fixture in GOLDEN_FIXTURES.keys() & reads.fixtures}):
            yield "golden", self._fleet.list_golden_values(spec.name, kind)
        yield from self._list_own_values(reads, node)

    def _list_own_values(self, reads: CheckInputs, node: Node) -> Iterator[tuple[str, Any]]:
        """Yield name and value of what nodes with the same spec and profile do not share."""
        yield from ((field, getattr(node, field)) for root, field in sorted(reads.declared) if root == "node")
        if ("hca", "guid") in reads.declared:
            yield "hca_guids", node.hca_guids
        if reads.has_cables:
            yield "cables", self._cables.get(node.name, "")


def _make_plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude={"needs"}) if hasattr(value, "model_dump") else str(value)
