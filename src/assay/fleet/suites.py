"""What the suites say about themselves, read from their source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mention:
    """A name that a suite uses, and where."""

    name: str
    file: str
    line: int
    column: int


@dataclass(slots=True)
class Suites:
    """The test functions (by pytest id), the limits they read, and files that are no Python."""

    tests: list[Mention] = field(default_factory=list)
    limits: list[Mention] = field(default_factory=list)
    broken: list[tuple[Mention, str]] = field(default_factory=list)


def read_suites(root: Path) -> Suites:
    """Read `root/suites`. The same files are read once, however many rules ask."""
    paths = sorted((root / "suites").rglob("test_*.py"))
    return _read(root, tuple((path, path.stat().st_mtime_ns) for path in paths))


@lru_cache(maxsize=4)
def _read(root: Path, files: tuple[tuple[Path, int], ...]) -> Suites:
    suites = Suites()
    for path, _ in files:
        file = path.relative_to(root).as_posix()
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError) as wrong:
            line, column = getattr(wrong, "lineno", 0) or 0, getattr(wrong, "offset", 0) or 0
            suites.broken.append((Mention(file, file, line, column), getattr(wrong, "msg", str(wrong))))
            continue
        suites.tests += _tests(tree, file)
        suites.limits += _limits(tree, file)
    return suites


def _tests(tree: ast.Module, file: str) -> Iterator[Mention]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield Mention(f"{file}::{node.name}", file, node.lineno, node.col_offset + 1)


def _limits(tree: ast.Module, file: str) -> Iterator[Mention]:
    """Yield every `limits.NAME`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "limits":
            yield Mention(node.attr, file, node.lineno, node.col_offset + 1)
