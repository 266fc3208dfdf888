"""Writes the tables of trends as Parquet files that `assay trends` and other tools read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from assay.model.errors import AssayError
from assay.results.history.damaged_files import name_damaged_files
from assay.trends.days.day_keys import list_history_files
from assay.trends.peers.measurement_tables import FAILURES, HOLDERS, MEASUREMENTS, OPTIONAL_HOLDERS, TIME

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COLUMNS = {"measurements": MEASUREMENTS, "holders": HOLDERS | OPTIONAL_HOLDERS, "failures": FAILURES}


def export_tables(database: DuckDBPyConnection, folder: Path) -> Iterator[tuple[Path, int]]:
    """Write `measurements.parquet`, `holders.parquet` and `failures.parquet`; yield each with its number of rows.

    Raises AssayError for a folder that cannot be written.
    """
    import duckdb

    for name, columns in _COLUMNS.items():
        shown = (f"make_timestamp(({column}_s * 1000000)::BIGINT) AS {column}" if kind == TIME else column
                 for column, kind in columns.items())  # fmt: skip
        rows = database.table(name).project(", ".join(shown))
        path = folder / f"{name}.parquet"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with name_damaged_files(list_history_files(database)):
                rows.write_parquet(str(path), compression="zstd")
        except (OSError, duckdb.Error) as error:
            fix = "give a folder that can be written"
            raise AssayError(f"cannot be written: {error}", where=str(path), fix=fix) from None
        yield path, int(database.read_parquet(str(path)).count("*").fetchall()[0][0])
