"""DuckDB as history uses it: in memory, within bounds, and asking nobody for extensions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = ("100MB", "1GB")
"""What writing may take. A million outcomes fit the first; where each has a long reason, the second."""
THREADS = 1
"""To write with; a second one only costs memory."""


def duck(**limits: str | int) -> DuckDBPyConnection:
    """Return a database of its own in memory, within limits that are settings of DuckDB."""
    import duckdb

    own: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    return duckdb.connect(config=own | limits)


def in_little_memory(scratch: Path, work: Callable[[DuckDBPyConnection], None]) -> None:
    """Do work that writes with a database that spills below `scratch`; where memory did not do, again with more."""
    import duckdb

    for memory in MEMORY:
        with duck(threads=THREADS, memory_limit=memory, temp_directory=str(scratch)) as database:
            try:
                work(database)
            except duckdb.OutOfMemoryException:
                if memory == MEMORY[-1]:
                    raise
            else:
                return
