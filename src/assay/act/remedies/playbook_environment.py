"""Passes an environment to a program that is started through one that writes its environment to disk.

ansible-runner writes the whole environment of a run to a file, and nobody can say which variables are secret. So the
environment is in an unnamed file in memory (memfd), and the runner gets only its path below /proc. `python -m
assay.act.remedies.playbook_environment PROGRAM …` restores it and then becomes PROGRAM.

PROGRAM ends with the process that started it. An ansible-playbook whose terminal is gone would wait for its last task
for ever: the thread that reads results ends at the first line that it cannot print (ansible-core 2.19,
`plugins/strategy/__init__.py`). The task itself goes on, in a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

POINTER_VARIABLE, MEMFD_NAME = "ASSAY_HANDED_OVER", "assay-environment"
PUBLIC_VARIABLES = frozenset(("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TMPDIR"))
"""What a Python program needs to start, and anybody may see."""
PR_SET_PDEATHSIG = 1  # linux/prctl.h


@contextmanager
def pass_environment(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the public variables, and the one by which the program finds all of `environment` while the block lasts."""
    number = os.memfd_create(MEMFD_NAME)
    try:
        with os.fdopen(os.dup(number), "w") as file:
            json.dump(dict(environment), file)
        public = {name: text for name, text in environment.items() if name in PUBLIC_VARIABLES}
        yield public | {POINTER_VARIABLE: f"/proc/{os.getpid()}/fd/{number}"}
    finally:
        os.close(number)


def main() -> None:
    """Become the program, in the passed environment. Exit if the process that passes it is gone."""
    path = os.environ.pop(POINTER_VARIABLE, "")
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # before the look whether that process is gone
    try:
        if not str(Path(path).readlink()).startswith(f"/memfd:{MEMFD_NAME}"):  # the number is another file's by now
            raise FileNotFoundError(path)
        os.environ.update(json.loads(Path(path).read_bytes()))
    except (OSError, ValueError):
        sys.exit("assay: the process that started this playbook is gone")
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 — a list, never a shell


if __name__ == "__main__":
    main()
