"""Carries the Python files of a fleet from the inner modules from which they once imported to `assay.fleetkit`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from assay.old_imports import NEW, list_old_modules

PUBLIC = {"assay", NEW, "assay.__version__"}
FROM = re.compile(rb"from[ \t]+([\w.]+)")


class CarriedImports(NamedTuple):
    """A file's text with its imports of old names carried over, and what is `left`: a line number and what to do."""

    text: bytes
    left: tuple[tuple[int, str], ...] = ()


class _InnerImport(NamedTuple):
    """A statement that imports these names of an inner module: all that fleets took of it, if it names none."""

    node: ast.Import | ast.ImportFrom
    module: str
    names: tuple[str, ...]


def carry_imports(text: bytes) -> CarriedImports:
    """Let a Python file import from `assay.fleetkit` what it took from inner modules of assay.

    Only the module's name in a `from` statement changes. Another spelling, or a name that is not in `assay.fleetkit`,
    is left for a person. A file that is no Python as it stands, such as one with a conflict, is left as it is.
    """
    if b"assay" not in text:
        return CarriedImports(text)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return CarriedImports(text)
    lines = text.splitlines(keepends=True)
    left = []
    inner = sorted(_list_inner_imports(tree), key=lambda statement: (statement.node.lineno, statement.node.col_offset))
    for statement in reversed(inner):  # from the end, since a new name moves what stands behind it
        if not _rewrite(lines, statement):
            left.append((statement.node.lineno, _advise(statement)))
    return CarriedImports(b"".join(lines), tuple(sorted(left)))


def _list_inner_imports(tree: ast.Module) -> Iterator[_InnerImport]:
    old = list_old_modules()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("assay.") and alias.name not in PUBLIC:
                    yield _InnerImport(node, alias.name, old.get(alias.name, ()))
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = tuple(alias.name for alias in node.names)
            if node.module == "assay":
                inner = [name for name in names if f"assay.{name}" not in PUBLIC]
                yield from (_InnerImport(node, f"assay.{name}", ()) for name in inner)
            elif node.module.startswith("assay.") and node.module not in PUBLIC:
                yield _InnerImport(node, node.module, names if names != ("*",) else old.get(node.module, ()))


def _rewrite(lines: list[bytes], statement: _InnerImport) -> bool:
    """Write the new module into a `from` statement of which every name is in it. Return whether that was so."""
    known = list_old_modules().get(statement.module, ())
    is_known = set(statement.names) <= set(known) and statement.node.names[0].name != "*"
    line, start = lines[statement.node.lineno - 1], statement.node.col_offset
    match = FROM.match(line, start)
    if not is_known or not match or match[1] != statement.module.encode():
        return False
    lines[statement.node.lineno - 1] = line[: match.start(1)] + NEW.encode() + line[match.end(1) :]
    return True


def _advise(statement: _InnerImport) -> str:
    known = [name for name in statement.names if name in list_old_modules().get(statement.module, ())]
    other = [name for name in statement.names if name not in known]
    new = [f"write `from {NEW} import {', '.join(known)}`"] if known else []
    moving = [f"{', '.join(other) or 'it'} may move with any version"] if other or not known else []
    return f"imports {statement.module}: {'; '.join([*new, *moving])}"
