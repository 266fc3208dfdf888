"""What takes up all the room that a disk has."""

from __future__ import annotations

from pathlib import Path


def fill(disk: Path) -> None:
    """Leave no byte free: in smaller and smaller pieces, down to one. Its file `ballast` is to be taken away again."""
    with (disk / "ballast").open("ab", buffering=0) as ballast:
        for size in (65536, 4096, 1):
            try:
                while ballast.write(b"x" * size):
                    pass
            except OSError:
                pass
