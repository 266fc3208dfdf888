"""Counts the work of assay by the line that does it, where a bench would measure seconds: the same on any machine.

`install()` lets the modules of assay, and its templates, be compiled with counters. A line counts the items that it
walks, and those that a set, a sum, a copy, a sorted list or a search in a list goes through. SQLite counts the
instructions of its virtual machine, for the line that waits for it.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import sqlite3
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import assay

SOURCE = Path(assay.__file__).parent
SQL_STEPS = 100
WHOLE = {"set", "frozenset", "list", "tuple", "sorted", "dict", "sum", "min", "max", "any", "all", "Counter", "deque"}
"""Functions that go through what they are given."""
WHOLE_METHODS = {"update", "extend", "union", "intersection", "difference", "issubset", "issuperset", "isdisjoint"}
WHOLE_METHODS |= {"fromkeys", "join", "writelines"}
ONE, REST, EVERY = slice(1), slice(1, None), slice(None)
LAZY = {"enumerate": ONE, "from_iterable": ONE, "map": REST, "filter": REST, "zip": EVERY, "chain": EVERY}
"""Functions that walk what they are given, with the places of such arguments."""
SEARCHES = {"index", "count", "remove"}
"""Methods of a list that go through it."""
VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
SIZED = (set, frozenset, list, tuple, dict, deque, *VIEWS)
SETS = (set, frozenset, VIEWS[0], VIEWS[2])
SEARCHED = (list, tuple, deque, VIEWS[1])
OPERATORS = {ast.BitOr: "|", ast.BitAnd: "&", ast.Sub: "-", ast.Add: "+"}

PLACES: list[str] = []
COUNTS: list[int] = []
_sql_places: dict[tuple[str, int], int] = {}


def take_counts() -> dict[str, int]:
    """Return what each line counted since the last call."""
    taken = {PLACES[number]: count for number, count in enumerate(COUNTS) if count}
    COUNTS[:] = [0] * len(COUNTS)
    return taken


def _add_place(place: str) -> int:
    PLACES.append(place)
    COUNTS.append(0)
    return len(PLACES) - 1


def _walk(place: int, items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        COUNTS[place] += 1
        yield item


def _go_through(place: int, items: Any) -> Any:
    if isinstance(items, SIZED):
        COUNTS[place] += len(items)
    return items


def _search(place: int, items: Any) -> Any:
    if isinstance(items, SEARCHED):
        COUNTS[place] += len(items)
    return items


def _operate(place: int, sign: str, left: Any, right: Any) -> Any:
    if isinstance(left, SETS) and isinstance(right, SETS):
        COUNTS[place] += min(len(left), len(right)) if sign == "&" else len(left) + len(right) * (sign == "|")
    elif isinstance(left, list | tuple | dict) and isinstance(right, list | tuple | dict):
        COUNTS[place] += len(left) + len(right)
    if sign == "|":
        return left | right
    if sign == "&":
        return left & right
    return left - right if sign == "-" else left + right


HELPERS = {"__walk__": _walk, "__go_through__": _go_through, "__search__": _search, "__operate__": _operate}


def _list_leaves(node_type: type[ast.AST]) -> Iterator[type[ast.AST]]:
    yield node_type
    for below in node_type.__subclasses__():
        yield from _list_leaves(below)


LEAVES = {ast.Name, ast.Constant, ast.alias}
LEAVES |= {
    leaf for kind in (ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop) for leaf in _list_leaves(kind)
}
"""Nodes that hold nothing to count: most of a tree."""


class _Counting(ast.NodeTransformer):
    """Puts the counters into a module. Annotations stay as they are: pydantic reads them."""

    def __init__(self, file: str) -> None:
        self._file, self._number = file, itertools.count()

    def _call(self, helper: str, at: ast.expr, *values: ast.expr) -> ast.expr:
        place = _add_place(f"{self._file}:{at.lineno} {helper.strip('_')} {next(self._number)}")
        call = ast.Call(ast.Name(helper, ast.Load()), [ast.Constant(place), *values], [])
        for made in (call, call.func, *call.args):
            if not hasattr(made, "lineno"):
                ast.copy_location(made, at)
        return call

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit what is below a node and may be counted; each visit returns one node."""
        for field in node._fields:
            value = getattr(node, field, None)
            if type(value) is list:
                value[:] = [self._visit_below(each) for each in value]
            elif isinstance(value, ast.AST) and type(value) not in LEAVES:
                setattr(node, field, self.visit(value))
        return node

    def _visit_below(self, node: Any) -> Any:
        return self.visit(node) if isinstance(node, ast.AST) and type(node) not in LEAVES else node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = self._call("__walk__", node.iter, node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = self._call("__walk__", node.iter, node.iter)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        node.comparators = [
            self._call("__search__", right, right) if isinstance(how, ast.In | ast.NotIn) else right
            for how, right in zip(node.ops, node.comparators, strict=True)
        ]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        sign = OPERATORS.get(type(node.op))
        return self._call("__operate__", node, ast.Constant(sign), node.left, node.right) if sign else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        node.value = self._call("__go_through__", node.value, node.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._call("__go_through__", node.value, node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        node.values = [
            value if key else self._call("__go_through__", value, value)
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = method or (node.func.id if isinstance(node.func, ast.Name) else "")
        if isinstance(node.func, ast.Attribute) and method in SEARCHES:
            node.func.value = self._call("__search__", node, node.func.value)
        elif name in LAZY:
            self._count_arguments(node, "__walk__", LAZY[name])
        elif method in WHOLE_METHODS or (name in WHOLE and not method):
            self._count_arguments(node, "__go_through__", EVERY)
        return node

    def _count_arguments(self, node: ast.Call, helper: str, places: slice) -> None:
        node.args[places] = [
            each if isinstance(each, ast.Starred) else self._call(helper, each, each) for each in node.args[places]
        ]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.value = self.visit(node.value) if node.value else None
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._visit_function(node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node


def compile_counted(source: str | bytes, file: str, name: str) -> CodeType:
    """Return the code of a module with counters; its lines are counted under `name`."""
    tree = _Counting(name).visit(ast.parse(source, file))
    code: CodeType = compile(tree, file, "exec", dont_inherit=True)
    return code


class _Loader(SourceFileLoader):
    """Compiles a module anew, with counters, and keeps nothing of it."""

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.get_filename(fullname))
        return compile_counted(path.read_bytes(), str(path), str(path.relative_to(SOURCE)))


class _Finder(MetaPathFinder):
    """Finds the modules of assay for `_Loader`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is, None for one of others."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith("assay.") else None
        if spec is not None and spec.origin and spec.origin.endswith(".py"):
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _CountedConnection(sqlite3.Connection):
    """A connection that counts what it does for a line of assay."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.set_progress_handler(lambda: _count_sql(sys._getframe(1)), SQL_STEPS)


def _count_sql(frame: Any) -> int:
    while frame is not None and not frame.f_code.co_filename.startswith(str(SOURCE)):
        frame = frame.f_back
    if frame is not None:
        key = frame.f_code.co_filename, frame.f_lineno
        if key not in _sql_places:
            _sql_places[key] = _add_place(f"{Path(key[0]).relative_to(SOURCE)}:{key[1]} SQL")
        COUNTS[_sql_places[key]] += SQL_STEPS
    return 0


def install() -> None:
    """Count from now on. Nothing of assay but its package may be imported before."""
    early = [name for name in sys.modules if name.startswith("assay.")]
    assert not early, f"already imported, and not counted: {early}"
    for name, helper in HELPERS.items():
        setattr(builtins, name, helper)
    sys.meta_path.insert(0, _Finder())
    connect = sqlite3.connect

    def connect_counted(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, **{"factory": _CountedConnection, **options})

    sqlite3.connect = sqlite3.dbapi2.connect = connect_counted  # type: ignore[assignment]
    from jinja2 import Environment

    def compile_template(_: Environment, source: str, filename: str) -> CodeType:
        return compile_counted(source, filename, f"a template, {Path(filename).name}")

    Environment._compile = compile_template  # type: ignore[method-assign]
