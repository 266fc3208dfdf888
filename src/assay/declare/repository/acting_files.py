"""The files that assay acts by, beside specs and inventory: playbooks, suites, signers, workflows and settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import yaml

from assay.declare.repository.git import TOOL_PATHS
from assay.declare.repository.tree import MAX_FILE_BYTES, RepositoryTree, WorkingFolder

FOLDERS = ("playbooks", "suites", "specs")
UNUSED_FOLDERS = {"__pycache__", ".pytest_cache", ".ansible"}
UNUSED_FILES = re.compile(r"\.(pyc|md|retry)$|^specs/schemas/|^specs/.*\.ya?ml$")
"""Compiled files, prose, the schemas for editors; and the specs, which are compared value by value."""
COMMENTED_FILES = re.compile(r"\.(cfg|ini|lock)$|(^|/)(allowed_signers|CODEOWNERS|requirements\.txt)$")
"""Files whose comments are known: lines that begin with a sign. In other files, such lines may say something."""
COMMENT = re.compile(r"\s*[#;]")


def read_acting_files(tree: RepositoryTree) -> dict[str, bytes]:
    """Return the content of each file by its path. A file that cannot be read counts as empty."""
    files = {}
    for path in _list_paths(tree):
        if not UNUSED_FILES.search(path) and UNUSED_FOLDERS.isdisjoint(path.split("/")):
            files[path] = _read(tree, path)
    return files


def normalize_file(path: str, content: bytes) -> str:
    """Return what a file says: without comments and docstrings where assay knows them, else the whole text."""
    text = content.decode("utf-8", "surrogateescape")
    try:
        if path.endswith(".py"):
            return dump_statements(ast.parse(content).body)
        if path.endswith((".yml", ".yaml")):
            tokens = yaml.scan(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            return "\n".join(f"{type(token).__name__} {getattr(token, 'value', None)!r}" for token in tokens)
    except (SyntaxError, ValueError, RecursionError, MemoryError, yaml.YAMLError):
        return text
    if COMMENTED_FILES.search(path):
        return "\n".join(line for _, line in list_text_lines(text))
    return text


def list_text_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is neither blank nor a comment."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not COMMENT.match(line):
            yield number, line.strip()


def dump_statements(statements: list[ast.stmt]) -> str:
    """Return Python statements as one text. Docstrings, comments and layout do not count."""
    return "\n".join(
        ast.dump(_DocstringRemover().visit(statement)) for statement in statements if not _is_text(statement)
    )


class _DocstringRemover(ast.NodeTransformer):
    """Removes every expression that is only a text."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.copy_location(ast.Pass(), node) if _is_text(node) else node


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _list_paths(tree: RepositoryTree) -> Iterator[str]:
    for folder in FOLDERS:
        yield from tree.files(folder)
    for path in TOOL_PATHS:
        if below := tree.files(path):
            yield from below
        elif (tree.root / path).is_file() if isinstance(tree, WorkingFolder) else path in getattr(tree, "blobs", ()):
            yield path


def _read(tree: RepositoryTree, path: str) -> bytes:
    try:
        return tree.read(path, MAX_FILE_BYTES)
    except OSError:
        return b""
