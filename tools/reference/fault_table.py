"""The table of all XIDs and SXIDs at the end of docs/faults.md."""

from __future__ import annotations

from assay.decide.faults.log_file_faults import find_fault_owner
from assay.model.specs.fault_catalog import FaultCatalog, FaultClass

HEADER = "| fault | what it is | whose | severity | action | source |"


def replace_fault_table(page: str, catalog: FaultCatalog) -> str:
    """Return a page that ends with the table, with the table anew, in the order of the catalogues."""
    rows = [_row(title, fault) for title, fault in catalog.classes.items() if fault.list_xid_names()]
    return page[: page.index(HEADER)] + "\n".join([HEADER, "|---|---|---|---|---|---|", *rows]) + "\n"


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
