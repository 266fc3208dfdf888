"""The source as a graph: modules, what they define, and whom they import, lazy and typing-only imports included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from tests.support.places import ROOT

SOURCE = ROOT / "src"
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class SourceModule:
    """One file of `src/assay`. `name` is its dotted name; a package has the name of its folder."""

    path: Path
    name: str

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def room(self) -> str:
        """The first folder below `assay`, or "" for the modules beside the rooms."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 2 or (self.is_package and len(parts) == 2) else ""

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def line_count(self) -> int:
        return len(self.text.splitlines())

    def public_classes(self) -> Iterator[str]:
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name

    def functions(self) -> Iterator[FunctionNode]:
        for node in self.nodes:
            if isinstance(node, FunctionNode):
                yield node

    def imported_names(self) -> Iterator[str]:
        """The top name of every module that this one imports anywhere."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]

    def imported_modules(self, modules: frozenset[str]) -> Iterator[str]:
        """Every module of assay that this one imports anywhere: on top, in a function, or for types only."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in modules)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    if submodule in modules:
                        yield submodule
                    elif node.module in modules:
                        yield node.module


@cache
def read_source_modules() -> list[SourceModule]:
    """Return the modules, whose trees are parsed once for all tests of the folder."""
    found = []
    for path in sorted((SOURCE / "assay").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found.append(SourceModule(path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)))
    return found


def walk_with_functions(tree: ast.AST, docstrings: bool = True) -> Iterator[tuple[tuple[str, ...], ast.AST]]:
    """Yield each node below a tree in the order of the text, with the names of the functions and classes around it."""
    waiting: list[tuple[tuple[str, ...], ast.AST]] = [((), tree)]
    while waiting:
        function, node = waiting.pop()
        if not docstrings and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if node is not tree:
            yield function, node
        inner = (*function, node.name) if isinstance(node, NAMED) else function
        waiting += [(inner, child) for child in ast.iter_child_nodes(node)][::-1]


def count_body_lines(function: FunctionNode) -> int:
    """Lines from the first statement after the docstring to the end."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0
