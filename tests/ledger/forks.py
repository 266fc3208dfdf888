"""Other processes for a test, which start in a few milliseconds: forks that open the ledger for themselves."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

_fork = multiprocessing.get_context("fork")


class Forked:
    """A process that does `deed(line, *words)`: it talks to us over a line, and can be killed."""

    def __init__(self, deed: Callable[..., None], *words: Any) -> None:
        self.line, other = _fork.Pipe()
        self._process = _fork.Process(target=_do, args=(deed, other, words), daemon=True)
        self._process.start()
        other.close()

    def hear(self) -> Any:
        """Return what it says next. Raises EOFError when it has ended."""
        return self.line.recv()

    def say(self, what: Any = "go") -> None:
        """Tell it something."""
        self.line.send(what)

    def kill(self) -> list[Any]:
        """Kill it (SIGKILL); return what it had said before."""
        self._process.kill()
        self._process.join()
        said = []
        try:
            while self.line.poll():
                said.append(self.line.recv())
        except (EOFError, OSError):
            pass
        return said

    def end(self) -> int | None:
        """Wait for its end; return its exit status."""
        self._process.join(60)
        return self._process.exitcode


def _do(deed: Callable[..., None], line: Connection, words: tuple[Any, ...]) -> None:
    deed(line, *words)
