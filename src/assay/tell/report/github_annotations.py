"""GitHub's workflow commands: lines that its runners show as annotations at a file and line.

Also the lines of the functions of checks, at which annotations are shown.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path


class CheckFunctionLines:
    """Lines of check functions in the suites of the repository `root`; a module is read with its first check."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, dict[str, int]] = {}

    def __call__(self, check: str) -> int:
        """Return the line of a check's function, 0 where it is not found."""
        module, _, function = check.partition("::")
        if module not in self._modules:
            self._modules[module] = _read_function_lines(self._root / module)
        return self._modules[module].get(function, 0)


def _read_function_lines(module: Path) -> dict[str, int]:
    try:
        tree = ast.parse(module.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    return {node.name: node.lineno for node in tree.body if isinstance(node, ast.FunctionDef)}


def format_annotation(level: str, properties: Mapping[str, object], message: str) -> str:
    """Return the command of an annotation. `level` is error, warning or notice; empty properties are left out."""
    fields = ",".join(f"{name}={escape_annotation(str(value), ':,')}" for name, value in properties.items() if value)
    return f"::{level} {fields}::{escape_annotation(message)}"


def escape_annotation(text: str, more: str = "") -> str:
    """Return text with `%`, line ends and the characters of `more` as percent codes."""
    return "".join(f"%{ord(character):02X}" if character in "%\r\n" + more else character for character in text)
