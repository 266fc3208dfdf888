"""Hands secrets to a program that is started through something that writes its environment to disk.

ansible-runner keeps the whole environment of a run in a file. So secrets stay out of that environment: they lie in
an unnamed file in memory, whose place under /proc is all that the environment tells, and `python -m
assay.actions.hand_over PROGRAM …` puts them back just before it becomes PROGRAM.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PLACE = "ASSAY_HANDED_OVER"


@contextmanager
def handed_over(secrets: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the environment variable that tells the started program where `secrets` are, while the block lasts."""
    number = os.memfd_create("assay-secrets")
    try:
        os.write(number, json.dumps(dict(secrets)).encode())
        yield {PLACE: f"/proc/{os.getpid()}/fd/{number}"}
    finally:
        os.close(number)


def main() -> None:
    """Become the program, with the secrets in the environment; without them where their giver is gone."""
    place = os.environ.pop(PLACE, "")
    try:
        os.environ.update(json.loads(Path(place).read_bytes()))
    except (OSError, ValueError):
        sys.stderr.write("assay: whoever started this is gone, and its secrets with it\n")
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 — a list, never a shell


if __name__ == "__main__":
    main()
