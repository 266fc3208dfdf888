"""Where the functions of checks stand in the suites, for annotations at them."""

from __future__ import annotations

import ast
from pathlib import Path


class Functions:
    """The suites below `root` as they are now; a module is read when its first check is asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, dict[str, int]] = {}

    def __call__(self, check: str) -> int:
        """Return the line of a check's function, 0 where it is not found."""
        module, _, function = check.partition("::")
        if module not in self._read:
            self._read[module] = _lines(self._root / module)
        return self._read[module].get(function, 0)


def _lines(module: Path) -> dict[str, int]:
    try:
        tree = ast.parse(module.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    return {one.name: one.lineno for one in tree.body if isinstance(one, ast.FunctionDef)}
