"""What the suites say about themselves, read from their source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from assay.fleet.measures import Measured, measures
from assay.fleet.tree import MOST, Tree


@dataclass(frozen=True, slots=True)
class Mention:
    """A name that a suite uses, and where."""

    name: str
    file: str
    line: int
    column: int


Marks = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Test(Mention):
    """A test function by its pytest id, with its marks: each name and its literal arguments.

    A mark on the function hides the module's of that name, as for pytest's `get_closest_marker`.
    """

    marks: Marks

    @property
    def active(self) -> bool:
        """Whether it loads the hardware."""
        return "active" in self.marks


@dataclass(slots=True)
class Suites:
    """The test functions, the limits that they read, what they measure, and files that are no Python.

    `limits` are of node specs, `fabric_limits` of fabric designs.
    """

    tests: list[Test] = field(default_factory=list)
    limits: list[Mention] = field(default_factory=list)
    fabric_limits: list[Mention] = field(default_factory=list)
    measures: list[Measured] = field(default_factory=list)
    broken: list[tuple[Mention, str]] = field(default_factory=list)


def read_suites(tree: Tree) -> Suites:
    """Read the suites of a tree."""
    suites = Suites()
    for file in tree.files("suites"):
        name = file.rpartition("/")[2]
        if name.startswith("test_") and name.endswith(".py"):
            module = _parsed(tree, file, suites)
            if module is not None:
                suites.tests += _tests(module, file)
                nodes = list(ast.walk(module))
                suites.limits += _limits(nodes, file, "limits")
                suites.fabric_limits += _limits(nodes, file, "fabric_limits")
                suites.measures += measures(nodes, file)
    return suites


def _parsed(tree: Tree, file: str, suites: Suites) -> ast.Module | None:
    """Return the module's tree, or note why it has none."""
    try:
        return ast.parse(tree.read(file, MOST))
    except SyntaxError as wrong:
        suites.broken.append((Mention(file, file, wrong.lineno or 0, wrong.offset or 0), wrong.msg))
    except (OSError, ValueError, RecursionError, MemoryError) as wrong:
        suites.broken.append((Mention(file, file, 0, 0), str(wrong) or "too deeply nested"))
    return None


def _tests(tree: ast.Module, file: str) -> Iterator[Test]:
    module = _module_marks(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = {**module, **_marks(node.decorator_list)}
            yield Test(f"{file}::{node.name}", file, node.lineno, node.col_offset + 1, marks)


def _module_marks(tree: ast.Module) -> Marks:
    """Return the marks in `pytestmark = …`, one or a list."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(_named(target, "pytestmark") for target in node.targets):
            return _marks(node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value])
    return {}


def _marks(expressions: Iterable[ast.expr]) -> Marks:
    """Return `pytest.mark.NAME` and `pytest.mark.NAME("…")`."""
    marks: Marks = {}
    for expression in expressions:
        call = expression if isinstance(expression, ast.Call) else None
        match call.func if call else expression:
            case ast.Attribute(value=ast.Attribute(attr="mark"), attr=name):
                arguments = call.args if call else []
                marks[name] = tuple(str(one.value) for one in arguments if isinstance(one, ast.Constant))
    return marks


def _named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _limits(nodes: Iterable[ast.AST], file: str, whose: str) -> Iterator[Mention]:
    """Yield every `limits.NAME`."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and _named(node.value, whose):
            yield Mention(node.attr, file, node.lineno, node.col_offset + 1)
