"""Small files of the node, read below a root and told apart by why they cannot be read."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from assay.model.reading import absent, failed, unsupported, value

Tree = dict[str, Any]
"""A branch of an evidence document; its leaves are one-key readings."""

NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO}
NOT_OFFERED = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY}


class Root:
    """The file system of the node, at `path` here (`/` on the node itself). Paths given are as on the node."""

    def __init__(self, path: str = "/") -> None:
        self.path = path.rstrip("/")

    def here(self, path: str) -> str:
        """Return where the node's `path` is on this machine."""
        return self.path + path

    def text(self, path: str) -> str:
        """Return the stripped content of a file. Raises OSError; bytes that are no UTF-8 are replaced."""
        with open(self.here(path), encoding="utf-8", errors="replace") as file:  # noqa: PTH123  # pathlib costs 10 ms to import
            return file.read().strip()

    def start(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, with one read. Raises OSError."""
        descriptor = os.open(self.here(path), os.O_RDONLY)
        try:
            return os.read(descriptor, size)
        finally:
            os.close(descriptor)

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a folder. Raises OSError."""
        return sorted(os.listdir(self.here(path)))  # noqa: PTH208  # see text

    def exists(self, path: str) -> bool:
        """Say whether there is something at `path`."""
        return os.path.exists(self.here(path))  # noqa: PTH110  # see text

    def read(self, path: str, convert: Callable[[str], Any] = str) -> Tree:
        """Return the leaf for a file's content as `convert` understands it; ValueError there means not understood."""
        try:
            content = self.text(path)
        except OSError as error:
            return unread(path, error)
        return understood(path, content, convert)

    def later(self, path: str, convert: Callable[[str], Any] = str) -> Callable[[], Tree]:
        """Return the question that `read` answers at once."""
        return partial(self.read, path, convert)


def not_empty(text: str) -> str:
    """Return a text that says something. Raises ValueError for one that does not."""
    if not text:
        raise ValueError("empty")
    return text


def unread(path: str, error: OSError) -> Tree:
    """Return the leaf for a file that could not be read: absent, unsupported (the driver refuses it), or failed."""
    reason = f"{path}: {error.strerror or error}"
    if error.errno in NOT_THERE:
        return absent(reason)
    if error.errno in NOT_OFFERED:
        return unsupported(reason)
    return failed(reason)


def understood(what: str, content: str, convert: Callable[[str], Any]) -> Tree:
    """Return `content` converted as a leaf; failed with the content quoted where it makes no sense."""
    try:
        return value(convert(content))
    except (ValueError, IndexError, ArithmeticError):
        return failed(f"{what}: cannot make sense of {content[:80]!r}")
