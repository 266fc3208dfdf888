"""The table of all XIDs and SXIDs in `docs/faults.md`. `python -m assay.cli.render.fault_table` prints it."""

from __future__ import annotations

import sys
from pathlib import Path

from assay.cli.surrounding_fleet import load_surrounding_catalog
from assay.lifecycle.faults.log_file_faults import find_fault_owner
from assay.model.specs.fault_catalog import FaultCatalog, FaultClass

FAULT_TABLE_HEADER = "| fault | what it is | whose | severity | action | source |"


def format_fault_table(catalog: FaultCatalog) -> list[str]:
    """Return the lines of the table as Markdown, in the order of the catalogues."""
    rows = [_row(title, fault) for title, fault in catalog.classes.items() if fault.list_xid_names()]
    return [FAULT_TABLE_HEADER, "|---|---|---|---|---|---|", *rows]


def _row(title: str, fault: FaultClass) -> str:
    numbers = [*map(str, fault.xid), *map(str, fault.sxid)]
    codes = f" ({', '.join(numbers)})" if numbers and numbers != [title.rpartition(".")[2]] else ""
    threshold = "" if fault.count == 1 else f", from {fault.count} in {fault.window_minutes:g} min"
    cells = (
        f"`{title}`{codes}",
        fault.summary,
        find_fault_owner(fault.blame),
        f"{fault.severity}{threshold}",
        fault.remedy,
        fault.source,
    )
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join(format_fault_table(load_surrounding_catalog(Path()))) + "\n")
