"""The table of all XIDs and SXIDs as Markdown, as in `docs/faults.md`. `python -m assay.cli.fault_table` prints it."""

from __future__ import annotations

import sys
from pathlib import Path

from assay.cli.faults import catalog_for
from assay.lifecycle.stream import whose
from assay.model.faults import FaultCatalog, FaultClass

HEAD = "| fault | what it is | whose | severity | action | source |"


def table(catalog: FaultCatalog) -> list[str]:
    """Return the lines of the table, in the catalogues' order."""
    rows = [_row(title, fault) for title, fault in catalog.classes.items() if fault.numbers()]
    return [HEAD, "|---|---|---|---|---|---|", *rows]


def _row(title: str, fault: FaultClass) -> str:
    numbers = [*map(str, fault.xid), *map(str, fault.sxid)]
    codes = f" ({', '.join(numbers)})" if numbers and numbers != [title.rpartition(".")[2]] else ""
    often = "" if fault.count == 1 else f", from {fault.count} in {fault.window_minutes:g} min"
    cells = (
        f"`{title}`{codes}",
        fault.summary,
        whose(fault.blame),
        f"{fault.severity}{often}",
        fault.remedy,
        fault.source,
    )
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join(table(catalog_for(Path()))) + "\n")
