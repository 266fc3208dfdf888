"""Merges texts and finds moved files with git, whose users know how it does both."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from assay.declare.repository.git import read_git_error, run_git
from assay.model.errors import AssayError

ALIKE = "80%"
"""How much of a moved file must be as it was. git's own half would take a spec of the site's for one of assay's."""


class Labels(NamedTuple):
    """What stands beside the markers of a conflict."""

    ours: str
    base: str
    theirs: str


class MergedText(NamedTuple):
    """The text, and how many conflicts are marked in it."""

    text: bytes
    conflicts: int


def merge_texts(root: Path, ours: bytes, base: bytes, theirs: bytes, labels: Labels) -> MergedText:
    """Merge what two sides made of one text, in the conflict style that git is configured for in `root`.

    Raises AssayError if git cannot merge them.
    """
    with tempfile.TemporaryDirectory(prefix="assay-upgrade-") as folder:
        files = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for file, text in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(text)
        names = [word for label in labels for word in ("-L", label)]
        run = run_git(root, "merge-file", "-p", "-q", *names, *map(str, files))
    if not 0 <= run.returncode <= 127:
        raise AssayError(f"git merge-file failed: {read_git_error(run)}")
    return MergedText(run.stdout, run.returncode)


def find_moved(gone: Mapping[str, bytes], added: Mapping[str, bytes]) -> dict[str, str]:
    """Return the new path of each file that is gone from its old one and stands, much as it was, among those added."""
    if not gone or not added:
        return {}
    with tempfile.TemporaryDirectory(prefix="assay-upgrade-") as folder:
        for side, files in (("a", gone), ("b", added)):
            for path, content in files.items():
                file = Path(folder) / side / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        wanted = ("--no-index", "--name-status", "-z", f"--find-renames={ALIKE}", "--diff-filter=R", "-l0")
        run = run_git(Path(folder), "diff", "--no-ext-diff", *wanted, "a", "b")
    if run.returncode not in (0, 1):
        raise AssayError(f"git diff failed: {read_git_error(run)}")
    words = run.stdout.decode("utf-8", "surrogateescape").split("\0")
    return {old.partition("/")[2]: new.partition("/")[2] for old, new in zip(words[1::3], words[2::3], strict=False)}
