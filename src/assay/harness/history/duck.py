"""DuckDB as history uses it: in memory, within bounds, and asking nobody for extensions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "100MB"
THREADS = 2


def duck(scratch: Path | None = None) -> DuckDBPyConnection:
    """Return a database of its own in memory; what is too much for that goes to files below `scratch`."""
    import duckdb

    limits: dict[str, str | bool | int | float | list[str]] = {
        "threads": THREADS,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if scratch is not None:
        limits |= {"memory_limit": MEMORY, "temp_directory": str(scratch)}
    return duckdb.connect(config=limits)
