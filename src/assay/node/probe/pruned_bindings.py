"""Cuts NVML's bindings down to what our sources name: a tenth of the module, and of the time to compile it on a node.

A statement of the bindings is kept where our sources, or a kept statement, name what it binds, in code or as a string.
So our sources must write the names of the bindings in full.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from assay.model.gc_pause import pause_gc

ALWAYS_KEPT = "NVML_ERROR_"  # the bindings look these up by their prefix, to make a class of each
_WORD = re.compile(r"\w+")


def parse_source(source: str | bytes) -> list[ast.stmt]:
    """Return the statements of a module.

    CPython 3.11 counts the depth of all trees in one place: SystemError, if another thread parses in the meantime. Only
    the collection of garbage lets one in.
    """
    with pause_gc():
        return ast.parse(source).body


def prune_bindings(source: str, users: Iterable[bytes]) -> str:
    """Return the statements of the module `source` that the sources `users` need, in their order."""
    lines, statements = source.splitlines(keepends=True), parse_source(source)
    binders: dict[str, list[int]] = {}
    for place, statement in enumerate(statements):
        for name in _bound_names(statement) or ():
            binders.setdefault(name, []).append(place)
    named = {word for user in users for word in _WORD.findall(user.decode())}
    waiting = [place for name in binders if name in named or name.startswith(ALWAYS_KEPT) for place in binders[name]]
    waiting += [place for place, statement in enumerate(statements) if _bound_names(statement) is None]
    kept = _follow_names(waiting, statements, binders)
    return "".join(_text(lines, statements[place]) for place in sorted(kept))


def _follow_names(waiting: list[int], statements: list[ast.stmt], binders: Mapping[str, list[int]]) -> set[int]:
    """Return the places of these statements and of all that they need, directly or not."""
    kept = set[int]()
    while waiting:
        place = waiting.pop()
        if place not in kept:
            kept.add(place)
            waiting += [binder for name in _used_names(statements[place]) for binder in binders.get(name, ())]
    return kept


def _bound_names(statement: ast.stmt) -> list[str] | None:
    """Return what a statement of the module binds; None where it must stay whatever it binds, as an `import *`."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        names = [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
        return None if "*" in names else names
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return None


def _used_names(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _text(lines: list[str], statement: ast.stmt) -> str:
    decorators = [decorator.lineno for decorator in getattr(statement, "decorator_list", ())]
    return "".join(lines[min([statement.lineno, *decorators]) - 1 : statement.end_lineno])
