"""Reads the checks of the suites from their source, without running it: marks, limits, measurements and their units."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeGuard

from assay.declare.repository.tree import MAX_FILE_BYTES, RepositoryTree
from assay.model.facts import frozen
from assay.model.units import find_unit_in_name

CheckFunction = ast.FunctionDef | ast.AsyncFunctionDef
BOUND_KEYWORDS = ("at_least", "at_most", "equals")
UNIT_PRESERVING_CALLS = ("since_last_pass", "min", "max", "abs", "round")
"""Functions whose result has the unit of their argument."""
PytestMarks = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class CheckSource:
    """A check: its file, its function, and the class that holds it ("" for none)."""

    file: str
    function: CheckFunction
    owner: str = ""

    @property
    def name(self) -> str:
        """The id of the check, in which pytest's name of the class does not occur."""
        return f"{self.file}::{self.function.name}"

    @property
    def lines(self) -> range:
        """The lines of the function."""
        return range(self.function.lineno, (self.function.end_lineno or 0) + 1)


def list_check_sources(file: str, module: ast.Module) -> Iterator[CheckSource]:
    """Yield the checks of a module, in order, also methods of its test classes."""
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for member in node.body:
                if _is_check(member):
                    yield CheckSource(file, member, node.name)
        elif _is_check(node):
            yield CheckSource(file, node)


def _is_check(node: ast.stmt) -> TypeGuard[CheckFunction]:
    return isinstance(node, CheckFunction) and node.name.startswith("test_")


@frozen
class MeasureCall:
    """One call `measure("name", READING, at_most=limits.LIMIT, unit=…)`, with its position.

    `limits` are limits of node specs, `fabric_limits` of fabric designs. `name_unit` is the unit at the end of the
    reading's name, `stated_unit` the argument `unit`; either may be "".
    """

    name: str
    limits: tuple[str, ...]
    name_unit: str
    stated_unit: str
    file: str
    line: int
    column: int
    fabric_limits: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """The unit of the measurement, "" if neither the reading's name nor the check gives it."""
        return self.stated_unit or self.name_unit


def find_measure_calls(nodes: Iterable[ast.AST], file: str) -> Iterator[MeasureCall]:
    """Yield every call of `measure` among the syntax nodes of a module."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "measure":
            yield _read_measure_call(node, file)


def _read_measure_call(call: ast.Call, file: str) -> MeasureCall:
    name, reading = [*call.args[:2], None, None][:2]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    bounds = [keywords.get(side) for side in BOUND_KEYWORDS]
    limits = tuple(filter(None, (_read_limit_name(bound, "limits") for bound in bounds)))
    fabric_limits = tuple(filter(None, (_read_limit_name(bound, "fabric_limits") for bound in bounds)))
    return MeasureCall(
        name=_read_text(name),
        limits=limits,
        name_unit=_infer_unit(reading),
        stated_unit=_read_text(keywords.get("unit")),
        file=file,
        line=call.lineno,
        column=call.col_offset + 1,
        fabric_limits=fabric_limits,
    )


def _read_limit_name(node: ast.expr | None, fixture: str) -> str:
    """Return NAME of `limits.NAME`, "" for anything else."""
    match node:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == fixture:
            return name
    return ""


def _read_text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _infer_unit(node: ast.expr | None) -> str:
    """Return the unit in the name of the reading of an expression, "" for arithmetic, which changes units."""
    match node:
        case ast.Attribute(attr=name):
            return find_unit_in_name(name)
        case ast.Call(func=ast.Name(id=called), args=[argument, *_]) if called in UNIT_PRESERVING_CALLS:
            return _infer_unit(argument)
        case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
            return _infer_unit(element)
    return ""


@frozen
class SourceMention:
    """A name that a suite uses, and its position."""

    name: str
    file: str
    line: int
    column: int


@frozen
class SuiteTest(SourceMention):
    """A test function; `name` is its pytest id. `marks` are names with their literal arguments, `arguments` its own.

    A mark on the function overrides the module's mark of the same name, like pytest's `get_closest_marker`.
    """

    marks: PytestMarks
    arguments: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        """Whether the check loads the hardware."""
        return "active" in self.marks


@dataclass
class SuiteSource:
    """The test functions of the suites, the limits that they read, and what they measure.

    `limits` are limits of node specs, `fabric_limits` of fabric designs. `broken`: files that are not Python, and why.
    `modules`: the syntax of all others, by file.
    """

    tests: list[SuiteTest] = field(default_factory=list)
    limits: list[SourceMention] = field(default_factory=list)
    fabric_limits: list[SourceMention] = field(default_factory=list)
    measures: list[MeasureCall] = field(default_factory=list)
    broken: list[tuple[SourceMention, str]] = field(default_factory=list)
    modules: list[tuple[str, ast.Module]] = field(default_factory=list)

    @cached_property
    def checks(self) -> list[CheckSource]:
        """The functions of all checks, for the rules that read their syntax."""
        return [check for file, module in self.modules for check in list_check_sources(file, module)]


def parse_suites(tree: RepositoryTree) -> SuiteSource:
    """Read all suites of a tree."""
    suites = SuiteSource()
    for file in tree.files("suites"):
        name = file.rpartition("/")[2]
        if name == "conftest.py" or (name.startswith("test_") and name.endswith(".py")):
            module = _parse_module(tree, file, suites)
            if module is not None:
                suites.modules.append((file, module))
                suites.tests += _find_tests(module, file)
                nodes = list(ast.walk(module))
                suites.limits += _find_limit_reads(nodes, file, "limits")
                suites.fabric_limits += _find_limit_reads(nodes, file, "fabric_limits")
                suites.measures += find_measure_calls(nodes, file)
    return suites


def _parse_module(tree: RepositoryTree, file: str, suites: SuiteSource) -> ast.Module | None:
    """Return a module's syntax tree; add a file that cannot be parsed to `suites.broken`."""
    try:
        return ast.parse(tree.read(file, MAX_FILE_BYTES))
    except SyntaxError as error:
        suites.broken.append((SourceMention(file, file, error.lineno or 0, error.offset or 0), error.msg))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        suites.broken.append((SourceMention(file, file, 0, 0), str(error) or "too deeply nested"))
    return None


def _find_tests(tree: ast.Module, file: str) -> Iterator[SuiteTest]:
    module = _read_module_marks(tree)
    yield from _find_tests_in(tree.body, file, module)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            marks = {**module, **_read_module_marks(node), **_read_marks(node.decorator_list)}
            yield from _find_tests_in(node.body, file, marks)


def _find_tests_in(body: Iterable[ast.stmt], file: str, outer: PytestMarks) -> Iterator[SuiteTest]:
    """Yield the test functions of a module, or of a class, whose name is no part of their ids."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            marks = {**outer, **_read_marks(node.decorator_list)}
            arguments = tuple(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))
            yield SuiteTest(f"{file}::{node.name}", file, node.lineno, node.col_offset + 1, marks, arguments)


def _read_module_marks(tree: ast.Module | ast.ClassDef) -> PytestMarks:
    """Return the marks in `pytestmark = …`, which may be one mark or a list."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(_is_name(target, "pytestmark") for target in node.targets):
            return _read_marks(node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value])
    return {}


def _read_marks(expressions: Iterable[ast.expr]) -> PytestMarks:
    """Return the marks `pytest.mark.NAME` and `pytest.mark.NAME("…")`."""
    marks: PytestMarks = {}
    for expression in expressions:
        call = expression if isinstance(expression, ast.Call) else None
        match call.func if call else expression:
            case ast.Attribute(value=ast.Attribute(attr="mark"), attr=name):
                arguments = call.args if call else []
                marks[name] = tuple(str(value.value) for value in arguments if isinstance(value, ast.Constant))
    return marks


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _find_limit_reads(nodes: Iterable[ast.AST], file: str, fixture: str) -> Iterator[SourceMention]:
    """Yield every `limits.NAME`, for the fixture `limits` or `fabric_limits`."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and _is_name(node.value, fixture):
            yield SourceMention(node.attr, file, node.lineno, node.col_offset + 1)
