"""Hands an environment to a program that is started through something that writes its environment to disk.

ansible-runner keeps the whole environment of a run in a file, and nobody can say which of its variables are secret.
So it lies in an unnamed file in memory, whose place under /proc is all that the runner is told, and `python -m
assay.actions.playbook_environment PROGRAM …` puts it back just before it becomes PROGRAM.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

POINTER_VARIABLE, MEMFD_NAME = "ASSAY_HANDED_OVER", "assay-environment"
PUBLIC_VARIABLES = frozenset(("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TMPDIR"))
"""What a Python program needs to start at all, and may be seen by anybody."""


@contextmanager
def pass_environment(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the variables that the started program needs to find the whole of `environment`, while the block lasts."""
    number = os.memfd_create(MEMFD_NAME)
    try:
        with os.fdopen(os.dup(number), "w") as file:
            json.dump(dict(environment), file)
        shown = {name: text for name, text in environment.items() if name in PUBLIC_VARIABLES}
        yield shown | {POINTER_VARIABLE: f"/proc/{os.getpid()}/fd/{number}"}
    finally:
        os.close(number)


def main() -> None:
    """Become the program, in the environment that was handed over. Where its giver is gone, end: nobody waits."""
    place = os.environ.pop(POINTER_VARIABLE, "")
    try:
        if not str(Path(place).readlink()).startswith(f"/memfd:{MEMFD_NAME}"):  # another file has that number by now
            raise FileNotFoundError(place)
        os.environ.update(json.loads(Path(place).read_bytes()))
    except (OSError, ValueError):
        sys.exit("assay: whoever started this is gone")
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 — a list, never a shell


if __name__ == "__main__":
    main()
