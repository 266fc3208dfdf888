"""The functions of a module of the suites that are checks, as syntax: also methods of test classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

CheckFunction = ast.FunctionDef | ast.AsyncFunctionDef
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


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

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the function's body that is not part of a function within."""
        found: list[ast.AST] = list(self.function.body)
        for node in found:
            if not isinstance(node, NESTED):
                found += ast.iter_child_nodes(node)
        return tuple(found)


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
