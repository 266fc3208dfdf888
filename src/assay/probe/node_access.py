"""Small files of the node, read below a root and told apart by why they cannot be read.

Readings still to be taken: a tree whose leaves are questions, so that each can have a deadline of its own.

Run one of the node's own tools and understand what it prints, whatever it says by its exit code.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from assay.model.reading import absent, failed, parse_reading, unsupported, value

Tree = dict[str, Any]
"""A branch of an evidence document; its leaves are one-key readings."""

ABSENT_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO}
UNSUPPORTED_ERRNOS = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY}


class NodeRoot:
    """The file system of the node, at `path` here (`/` on the node itself). Paths given are as on the node."""

    def __init__(self, path: str = "/") -> None:
        self.path = path.rstrip("/")

    def local_path(self, path: str) -> str:
        """Return where the node's `path` is on this machine."""
        return self.path + path

    def read_text(self, path: str) -> str:
        """Return the stripped content of a file. Raises OSError; bytes that are no UTF-8 are replaced."""
        with open(self.local_path(path), encoding="utf-8", errors="replace") as file:  # noqa: PTH123  # pathlib costs 10 ms to import
            return file.read().strip()

    def read_start(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, with one read. Raises OSError."""
        descriptor = os.open(self.local_path(path), os.O_RDONLY)
        try:
            return os.read(descriptor, size)
        finally:
            os.close(descriptor)

    def list_names(self, path: str) -> list[str]:
        """Return the sorted names in a folder. Raises OSError."""
        return sorted(os.listdir(self.local_path(path)))  # noqa: PTH208  # see text

    def exists(self, path: str) -> bool:
        """Say whether there is something at `path`."""
        return os.path.exists(self.local_path(path))  # noqa: PTH110  # see text

    def read_leaf(self, path: str, convert: Callable[[str], Any] = str) -> Tree:
        """Return the leaf for a file's content as `convert` understands it; ValueError there means not understood."""
        try:
            content = self.read_text(path)
        except OSError as error:
            return leaf_for_error(path, error)
        return convert_leaf(path, content, convert)

    def defer_read(self, path: str, convert: Callable[[str], Any] = str) -> Callable[[], Tree]:
        """Return the question that `read` answers at once."""
        return partial(self.read_leaf, path, convert)


def require_text(text: str) -> str:
    """Return a text that says something. Raises ValueError for one that does not."""
    if not text:
        raise ValueError("empty")
    return text


def leaf_for_error(path: str, error: OSError) -> Tree:
    """Return the leaf for a file that could not be read: absent, unsupported (the driver refuses it), or failed."""
    reason = f"{path}: {error.strerror or error}"
    if error.errno in ABSENT_ERRNOS:
        return absent(reason)
    if error.errno in UNSUPPORTED_ERRNOS:
        return unsupported(reason)
    return failed(reason)


def convert_leaf(what: str, content: str, convert: Callable[[str], Any]) -> Tree:
    """Return `content` converted as a leaf; failed with the content quoted where it makes no sense."""
    try:
        return value(convert(content))
    except (ValueError, IndexError, ArithmeticError):
        return failed(f"{what}: cannot make sense of {content[:80]!r}")


LazyTree = Mapping[str, Any]
"""Name → reading, branch, or a callable that takes one look at the machine and returns any of these three."""

DEFAULT_QUESTION_S = 2.0


class TimedQuestion(NamedTuple):
    """A question that may take longer, or less long, than `DEFAULT_QUESTION_S`."""

    seconds: float
    read: Callable[[], Any]

    def __call__(self) -> Any:
        """Ask it."""
        return self.read()


def resolve_lazy(what: Any) -> Tree:
    """Return what a lazy tree reads now, all questions asked one after the other in this process."""
    while callable(what):
        what = what()
    if parse_reading(what) is None and isinstance(what, Mapping):
        return {name: resolve_lazy(branch) for name, branch in what.items()}
    found: Tree = what
    return found


NO_SETTINGS: Mapping[str, str] = {}


def run_tool(
    command: Sequence[str],
    allowed_s: float,
    understand: Callable[[str], Tree],
    settings: Mapping[str, str] = NO_SETTINGS,
) -> Tree:
    """Run `command`, found in PATH, and return what `understand` makes of its output (standard error among it).

    `settings` are added to the environment. Absent where the tool is not installed, failed where it does not end.
    """
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **settings},
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
