"""Writes a new file that is whole and on the disk when it gets its name, and replaces none."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.ledger.errors import make_database_error
from assay.model.errors import AssayError


@contextmanager
def new_file(file: Path) -> Iterator[Path]:
    """Yield a file to write, which becomes `file` at the end, on the disk and at once. It never replaces one."""
    if file.exists():
        raise AssayError("there is such a file already", where=str(file), fix="name another one: none is overwritten")
    if not file.parent.is_dir():
        raise AssayError("there is no such folder", where=str(file.parent), fix="make it, or name another file")
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        _publish(part, file)
    except (OSError, sqlite3.Error) as error:
        raise make_database_error(str(error), str(file)) from error
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            Path(f"{part}{ending}").unlink(missing_ok=True)


def _publish(part: Path, file: Path) -> None:
    for path, to_name in ((part, True), (file.parent, False)):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            if to_name:
                os.link(part, file)
        finally:
            os.close(descriptor)
