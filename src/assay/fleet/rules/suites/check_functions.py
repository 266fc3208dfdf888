"""The functions of a module of the suites that are checks, as syntax: also methods of test classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

CheckFunction = ast.FunctionDef | ast.AsyncFunctionDef
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class CheckSource:
    """A check: its file, its function, and the class that holds it ("" for none)."""

    file: str
    function: CheckFunction
    owner: str = ""

    @property
    def name(self) -> str:
        """The id of the check, in which pytest's name of the class does not occur."""
        return f"{self.file}::{self.function.name}"

    def walk(self) -> Iterator[ast.AST]:
        """Yield every node of the function's body that is not part of a function within."""
        waiting: list[ast.AST] = list(self.function.body)
        while waiting:
            node = waiting.pop(0)
            yield node
            if not isinstance(node, NESTED):
                waiting += ast.iter_child_nodes(node)


def list_check_sources(file: str, module: ast.Module) -> Iterator[CheckSource]:
    """Yield the checks of a module, in order."""
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for member in node.body:
                if _is_check(member):
                    yield CheckSource(file, member, node.name)
        elif _is_check(node):
            yield CheckSource(file, node)


def _is_check(node: ast.stmt) -> TypeGuard[CheckFunction]:
    return isinstance(node, CheckFunction) and node.name.startswith("test_")
