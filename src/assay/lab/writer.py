"""Write a tree of small files, touching only those that changed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from assay.lab.world import write_json


def write_tree(root: Path, files: Mapping[str, str], record: Path) -> None:
    """Make the files below `root` that this wrote before (it keeps `record` of them) be exactly `files`.

    A changed file is replaced by rename, so that a reader sees the old content or the new. Files that others
    put there stay. Content that is no text comes as `bytes.decode("utf-8", "surrogateescape")`.
    """
    before: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    if before == files:
        return
    changed = [path for path, content in files.items() if before.get(path) != content]
    for folder in {os.path.dirname(path) for path in changed if path not in before}:  # noqa: PTH120  # 100 per node: plain strings are 5 times as fast
        (root / folder).mkdir(parents=True, exist_ok=True)
    for path in changed:
        _write(f"{root}/{path}", files[path], new=path not in before)
    for path in before.keys() - files.keys():
        _remove(root, root / path)
    write_json(record, dict(files))


def _write(path: str, content: str, *, new: bool) -> None:
    scratch = path if new else f"{path}.new"
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, content.encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)
    if not new:
        os.replace(scratch, path)  # noqa: PTH105  # see write_tree


def _remove(root: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder == root or any(folder.iterdir()):
            return
        folder.rmdir()
