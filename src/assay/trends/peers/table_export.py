"""Writes the tables of trends as Parquet files that `assay trends` and other tools read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from assay.model.errors import AssayError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TIMES = {"measurements": ("time",), "holders": ("since", "until"), "failures": ("time",)}


def export_tables(database: DuckDBPyConnection, folder: Path) -> Iterator[tuple[Path, int]]:
    """Write `measurements.parquet`, `holders.parquet` and `failures.parquet`; yield each with its number of rows.

    Raises AssayError for a folder that cannot be written.
    """
    import duckdb

    for name, times in _TIMES.items():
        columns = [f"make_timestamp(({time}_s * 1000000)::BIGINT) AS {time}" for time in times]
        table = database.table(name)
        rows = table.project(", ".join([*columns, *(one for one in table.columns if not one.endswith("_s"))]))
        path = folder / f"{name}.parquet"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            rows.write_parquet(str(path), compression="zstd")
        except (OSError, duckdb.Error) as error:
            fix = "give a folder that can be written"
            raise AssayError(f"cannot be written: {error}", where=str(path), fix=fix) from None
        yield path, int(database.read_parquet(str(path)).count("*").fetchall()[0][0])
