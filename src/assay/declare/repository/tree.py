"""The files of a fleet repository: a working folder, or a commit read straight from git's objects."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from assay.declare.repository.git import REGULAR_MODES, SYMLINK_MODE, GitBlob, list_blobs, read_git_objects

NO_INVENTORY = "there is no inventory/: this is no fleet repository"
ADD_INVENTORY = "list the nodes below inventory/, or make a fleet repository: assay init DIR"
MAX_LINKS = 8
MAX_FILE_BYTES = 64 * 1024 * 1024  # of a file that declares something


class RepositoryTree(Protocol):
    """The files of one revision. Paths are relative to the repository and use slashes."""

    def files(self, folder: str) -> list[str]:
        """Return every regular file below a folder, in the order of a sorted walk."""

    def read(self, path: str, most: int) -> bytes:
        """Return a file's content, at most `most` bytes. Raises OSError."""


def sort_paths(paths: list[str]) -> list[str]:
    """Return paths in the order of a walk through sorted folders."""
    return sorted(paths, key=lambda path: [os.fsencode(step) for step in path.split("/")])


@dataclass(frozen=True)
class WorkingFolder:
    """A folder on disk, with its uncommitted changes."""

    root: Path

    def files(self, folder: str) -> list[str]:
        """Return the files below a folder. Links to folders are followed within the repository, but not in circles."""
        start = self.root / folder
        return sort_paths(list(_walk(self.root, start, folder, (_identify(start),)))) if start.is_dir() else []

    def read(self, path: str, most: int) -> bytes:
        """Return a file's content."""
        with (self.root / path).open("rb") as stream:
            return stream.read(most)


def _identify(folder: Path) -> tuple[int, int]:
    """Return device and inode of a folder. Raises OSError."""
    status = folder.stat()
    return status.st_dev, status.st_ino


def is_inside(root: Path, path: Path) -> bool:
    """Whether a path, or what its links lead to, is in the repository."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _walk(root: Path, folder: Path, prefix: str, above: tuple[tuple[int, int], ...]) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{prefix}/{entry.name}" if prefix else entry.name
            if _check_entry(entry.is_file):
                yield name
                continue
            path = Path(entry.path)
            if _check_entry(entry.is_dir) and (not entry.is_symlink() or is_inside(root, path)):
                below = _identify(path)
                if below not in above:
                    yield from _walk(root, path, name, (*above, below))


def _check_entry(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError:
        return False


@dataclass(frozen=True)
class CommitTree:
    """A commit of the repository at `root`, which may be a subfolder of a git repository."""

    root: Path
    commit: str

    @cached_property
    def blobs(self) -> dict[str, GitBlob]:
        """The commit's files, with links to files resolved."""
        raw = list_blobs(self.root, self.commit)
        return {path: blob for path in raw if (blob := self._resolve_link(raw, path)) is not None}

    def _resolve_link(self, raw: dict[str, GitBlob], path: str) -> GitBlob | None:
        for _ in range(MAX_LINKS):
            blob = raw.get(path)
            if blob is None or blob.mode in REGULAR_MODES:
                return blob
            if blob.mode != SYMLINK_MODE:
                return None
            target = read_git_objects(self.root, [blob.object])[blob.object].decode("utf-8", "surrogateescape")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        return None

    @cached_property
    def _contents(self) -> dict[str, bytes]:
        small = {blob.object for blob in self.blobs.values() if blob.size <= MAX_FILE_BYTES}
        return read_git_objects(self.root, sorted(small)) if small else {}

    def files(self, folder: str) -> list[str]:
        """Return the files below a folder."""
        return sort_paths([path for path in self.blobs if path.startswith(f"{folder}/")])

    def read(self, path: str, most: int) -> bytes:
        """Return a file's content."""
        blob = self.blobs.get(path)
        if blob is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if blob.size > most or blob.object not in self._contents:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        return self._contents[blob.object]
