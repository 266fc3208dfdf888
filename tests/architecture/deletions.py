"""Finds each place of the source that deletes files or rows, by the syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.architecture.source_tree import SOURCE, SourceModule, walk_with_functions

OF_FILES = {"unlink", "rmtree", "rmdir", "remove", "removedirs", "truncate", "move"}
OF_ROWS = {"delete", "drop_all", "drop", "delete_workflows"}
MODULES = {"os", "shutil"}
"""`remove`, `truncate` and `move` are of files where a module of these does them, or a variable named for a file."""
NAMED_FOR_FILES = re.compile(r"(?:^|_|\b)(?:file|path|folder|stream|output)$")
SQL = re.compile(r"\b(DELETE\s+FROM|DROP\s+(?:TABLE|VIEW|INDEX|TRIGGER|DATABASE|SCHEMA)|TRUNCATE)\b")
GIT_WORDS = {"clean", "reset", "restore", "stash", "rm"}


def find_deletions(module: SourceModule) -> Iterator[str]:
    """Yield `FILE:FUNCTION: WHAT` for each place of a module, FILE below `src/assay`; twice for two of one function."""
    file = PurePosixPath(module.path.relative_to(SOURCE / "assay")).as_posix()
    for function, node in walk_with_functions(module.tree):
        if what := _describe_deletion(node):
            yield f"{file}:{'.'.join(function)}: {what}"


def _describe_deletion(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and (found := SQL.search(node.value)):
        return " ".join(found[1].split())
    if isinstance(node, ast.List | ast.Tuple):
        words = {part.value for part in node.elts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        return f"git {' '.join(sorted(words & GIT_WORDS))}" if "git" in words and words & GIT_WORDS else ""
    if isinstance(node, ast.Attribute) and node.attr == "rmtree":
        return "rmtree"
    if isinstance(node, ast.Name) and node.id == "rmtree" and isinstance(node.ctx, ast.Load):
        return "rmtree"
    return _describe_call(node) if isinstance(node, ast.Call) else ""


def _describe_call(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id if call.func.id in {"delete", "unlink", "rmdir"} else ""
    if not isinstance(call.func, ast.Attribute):
        return ""
    name, owner = call.func.attr, ast.unparse(call.func.value)
    if name in {"unlink", "rmdir", "drop_all", "delete_workflows"}:
        return name
    if name in OF_FILES - {"rmtree"}:
        return name if owner in MODULES or NAMED_FOR_FILES.search(owner) else ""
    return name if name in OF_ROWS and owner in {"sa", "sqlalchemy", "table"} else ""
