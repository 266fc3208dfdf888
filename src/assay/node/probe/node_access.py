"""Access to the node: its small files, its own tools, and trees of questions that are answered later.

A file or a tool that cannot be read gives a leaf that says why: absent, unsupported or failed.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from assay.model.reading import ReadingTree, absent, failed, parse_reading, unsupported, value

BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
SERIAL_FILE = "/sys/class/dmi/id/product_serial"
"""The machine's serial number, for root only."""
CHUNK_BYTES = 2**16
ABSENT_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO}
UNSUPPORTED_ERRNOS = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY}
LazyTree = Mapping[str, Any]
"""Name → reading, branch or question. A question is a callable that reads the machine and returns one of the three."""
DEFAULT_QUESTION_S = 2.0


class NodeRoot:
    """The file system of the node, which is at `path` here (`/` on the node itself). Methods take the node's paths."""

    def __init__(self, path: str = "/") -> None:
        self.path = path.rstrip("/")

    def local_path(self, path: str) -> str:
        """Return the path on this machine of the node's `path`."""
        return self.path + path

    def read_text(self, path: str) -> str:
        """Return the stripped text of a file; bytes that are not UTF-8 are replaced. Raises OSError.

        A file object would cost a node twice as much: the probe reads a thousand small files.
        """
        descriptor = os.open(self.local_path(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            chunks = [os.read(descriptor, CHUNK_BYTES)]
            while chunks[-1]:
                chunks.append(os.read(descriptor, CHUNK_BYTES))
        finally:
            os.close(descriptor)
        text = b"".join(chunks).decode(errors="replace")
        return (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text).strip()

    def read_start(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, with one read. Raises OSError."""
        descriptor = os.open(self.local_path(path), os.O_RDONLY)
        try:
            return os.read(descriptor, size)
        finally:
            os.close(descriptor)

    def list_names(self, path: str) -> list[str]:
        """Return the sorted names in a folder. Raises OSError."""
        return sorted(os.listdir(self.local_path(path)))  # noqa: PTH208  # pathlib costs 10 ms to import

    def exists(self, path: str) -> bool:
        """Return whether there is something at `path`."""
        return os.path.exists(self.local_path(path))  # noqa: PTH110  # as in list_names

    def read_leaf(self, path: str, convert: Callable[[str], Any] = str) -> ReadingTree:
        """Return the leaf for a file's text, passed through `convert`, which raises ValueError for what it rejects."""
        try:
            content = self.read_text(path)
        except OSError as error:
            return leaf_for_error(path, error)
        return convert_leaf(path, content, convert)

    def defer_read(self, path: str, convert: Callable[[str], Any] = str) -> Callable[[], ReadingTree]:
        """Return the question that calls `read_leaf` with these arguments."""
        return partial(self.read_leaf, path, convert)


def require_text(text: str) -> str:
    """Return `text`. Raises ValueError where it is empty."""
    if not text:
        raise ValueError("empty")
    return text


def leaf_for_error(path: str, error: OSError) -> ReadingTree:
    """Return the leaf for a file that could not be read: absent, unsupported (the driver refuses) or failed."""
    reason = f"{path}: {error.strerror or error}"
    if error.errno in ABSENT_ERRNOS:
        return absent(reason)
    if error.errno in UNSUPPORTED_ERRNOS:
        return unsupported(reason)
    return failed(reason)


def convert_leaf(source: str, content: str, convert: Callable[[str], Any]) -> ReadingTree:
    """Return the leaf for `content` after `convert`; a failed leaf quotes content that `convert` rejects."""
    try:
        return value(convert(content))
    except (ValueError, IndexError, ArithmeticError):
        return failed(f"{source}: cannot make sense of {content[:80]!r}")


class TimedQuestion(NamedTuple):
    """A question with a time limit of its own in place of `DEFAULT_QUESTION_S`."""

    seconds: float
    read: Callable[[], Any]

    def __call__(self) -> Any:
        """Answer the question."""
        return self.read()


def resolve_lazy(branch: Any) -> ReadingTree:
    """Answer every question of a lazy tree in this process, one after the other, and return the whole tree."""
    while callable(branch):
        branch = branch()
    if parse_reading(branch) is None and isinstance(branch, Mapping):
        return {name: resolve_lazy(below) for name, below in branch.items()}
    leaf: ReadingTree = branch
    return leaf


def run_tool(command: Sequence[str], allowed_s: float, understand: Callable[[str], ReadingTree]) -> ReadingTree:
    """Run `command`, found in PATH, and return what `understand` makes of its output and standard error together.

    The exit code is ignored. The leaf is absent where the tool is not installed, and failed where it does not start or
    does not end within `allowed_s`.
    """
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=allowed_s,
            check=False,
        )
    except FileNotFoundError:
        return absent(f"{command[0]} is not installed")
    except subprocess.TimeoutExpired:
        return failed(f"{command[0]} did not end within {allowed_s:g} s")
    except OSError as error:
        return failed(f"{command[0]} could not be started: {error.strerror}")
    return understand(done.stdout.decode(errors="replace"))
