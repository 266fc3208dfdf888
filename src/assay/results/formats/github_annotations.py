"""Where the functions of checks stand in the suites, for annotations at them.

GitHub's workflow commands: lines that its runners show as annotations at a file and line.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path


class CheckFunctionLines:
    """The suites below `root` as they are now; a module is read when its first check is asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, dict[str, int]] = {}

    def __call__(self, check: str) -> int:
        """Return the line of a check's function, 0 where it is not found."""
        module, _, function = check.partition("::")
        if module not in self._read:
            self._read[module] = _read_function_lines(self._root / module)
        return self._read[module].get(function, 0)


def _read_function_lines(module: Path) -> dict[str, int]:
    try:
        tree = ast.parse(module.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    return {one.name: one.lineno for one in tree.body if isinstance(one, ast.FunctionDef)}


def format_annotation(level: str, properties: Mapping[str, object], message: str) -> str:
    """Return the command of an annotation; `level` is error, warning or notice, empty properties are left out."""
    said = ",".join(f"{name}={escape_annotation(str(value), ':,')}" for name, value in properties.items() if value)
    return f"::{level} {said}::{escape_annotation(message)}"


def escape_annotation(text: str, also: str = "") -> str:
    """Return text as workflow commands want it: `%`, line ends and `also` as percent codes."""
    return "".join(f"%{ord(sign):02X}" if sign in "%\r\n" + also else sign for sign in text)
