"""Modules of the suites that import what is not installed: all of their checks would be errors."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import RuleFinding, rule


@rule("ASY0397", "an import of what is not installed", why="pytest cannot import the module: its checks are errors.")
def missing_import(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find imports at the top of modules whose package is neither installed nor in the repository."""
    for file, module in draft.suites.modules:
        for name, node in _list_imports(module):
            is_own = (draft.root / f"{name}.py").exists() or (draft.root / name).is_dir()
            if not is_own and not _is_installed(name):
                place = (file, node.lineno, node.col_offset + 1)
                fix = "install it where assay runs, or import it inside of `try`"
                yield RuleFinding(place, f"there is no module {name} here", fix)


def _list_imports(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the packages that a module imports in any case."""
    for node in module.body:
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], node


@cache
def _is_installed(name: str) -> bool:
    """Return whether Python finds a package, without importing it."""
    try:
        return name in sys.modules or find_spec(name) is not None
    except (ImportError, ValueError):
        return False
