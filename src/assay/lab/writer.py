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
    put there stay.
    """
    before: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    if before == files:
        return
    changed = [path for path, content in files.items() if before.get(path) != content]
    for folder in {os.path.dirname(path) for path in changed if path not in before}:  # noqa: PTH120  # 100 per node: plain strings are 5 times as fast
        (root / folder).mkdir(parents=True, exist_ok=True)
    for path in changed:
        _replace(f"{root}/{path}", files[path])
    for path in before.keys() - files.keys():
        _remove(root, root / path)
    write_json(record, dict(files))


def _replace(path: str, content: str) -> None:
    scratch = f"{path}.new"
    with open(scratch, "wb") as file:  # noqa: PTH123  # see write_tree
        file.write(content.encode("utf-8", "surrogateescape"))
    os.replace(scratch, path)  # noqa: PTH105  # see write_tree


def _remove(root: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder == root or any(folder.iterdir()):
            return
        folder.rmdir()
