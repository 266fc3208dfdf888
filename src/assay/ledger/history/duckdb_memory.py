"""Databases of DuckDB in memory: bounded, and tried again with more memory where it does not suffice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

WRITE_MEMORY_LIMITS = ("100MB", "1GB")
"""Memory for writing, tried in turn. A million outcomes fit into the first; with a long reason each, the second."""
WRITE_THREADS = 1
"""A second thread would only cost memory."""


def connect_duckdb(**limits: str | int) -> DuckDBPyConnection:
    """Return a new database in memory, with limits as settings of DuckDB. It never downloads extensions."""
    import duckdb

    own: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    return duckdb.connect(config=own | limits)


def run_with_memory_limit(scratch: Path, work: Callable[[DuckDBPyConnection], None]) -> None:
    """Call `work` with a database that spills to `scratch`; where memory does not suffice, again with more."""
    import duckdb

    for memory in WRITE_MEMORY_LIMITS:
        with connect_duckdb(threads=WRITE_THREADS, memory_limit=memory, temp_directory=str(scratch)) as database:
            try:
                work(database)
            except duckdb.OutOfMemoryException:
                if memory == WRITE_MEMORY_LIMITS[-1]:
                    raise
            else:
                return
