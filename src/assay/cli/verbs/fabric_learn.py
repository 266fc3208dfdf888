"""`assay fabric learn` and `assay fabric import`: a draft design from a discovery, or from a list of cables.

The text may come from a fabric tool, a spreadsheet or a shell.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import FleetDir, argument, option
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError
from assay.model.text.packed_text import ByteSource, UnpackingError, read_text

if TYPE_CHECKING:
    from assay.fabric.discovery import FabricDiscovery
    from assay.model.fleet import Fleet


NO_TEXTS = (
    (r"PK\x03\x04", "a workbook or another zip archive", "save the sheet as CSV, or unpack the archive"),
    ("\ufffd\ufffd\x11\u0871\x1a", "an old Excel workbook", "save the sheet as CSV"),
    (r"\s*<(?:!doctype html|html)", "a web page, such as a login page", "fetch it again with valid credentials"),
    (r"%PDF-", "a PDF document", "give the text or the CSV that it was made from"),
)
"""How files, read as UTF-8, begin that are no text of a fabric tool, what they are, and what to do."""


def read_dump(dump: Path) -> str:
    """Return the text of a file, or of stdin for "-", with line feeds as line ends.

    A file of gzip is read too. Raises AssayError for a file that cannot be read, or that is no text.
    """
    if str(dump) == "-":
        stdin = getattr(sys.stdin, "buffer", None)
        return _decode(stdin, "stdin") if stdin else sys.stdin.read()
    try:
        with dump.open("rb", buffering=0) as file:
            return _decode(file, str(dump))
    except OSError as error:
        raise AssayError(f"cannot be read: {error.strerror or error}", where=str(dump)) from error


def _decode(file: ByteSource, where: str) -> str:
    try:
        text = read_text(file)
    except UnpackingError as error:
        raise AssayError(f"this file cannot be unpacked: {error}", where=where, fix="fetch it again") from None
    for start, kind, fix in NO_TEXTS:
        if re.match(start, text, re.IGNORECASE):
            raise AssayError(f"this is {kind}, and no text of a fabric tool", where=where, fix=fix)
    return io.IncrementalNewlineDecoder(None, translate=True).decode(text, final=True) if "\r" in text else text


def learn(
    dump: Annotated[
        Path, option("--from FILE", "A discovery of a fabric in good condition; - is stdin.", show_default=False)
    ],
    name: Annotated[str, option("--name NAME", "The name of the design.")] = "learned",
    stderr: Annotated[Path | None, option("--stderr FILE", "The tool's stderr.")] = None,
    inventory: Annotated[
        Path | None, option("--inventory FILE", "Write the nodes with their adapters' GUIDs here, not into the design.")
    ] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Draft a FabricDesign from a discovery, on stdout: the pattern that most cables follow, and what breaks it.

    The draft is rules. Only where most cables follow no pattern, it lists every cable.

    Exit codes: 0 drafted; 2 the discovery is partial or unreadable.
    """
    from assay.declare.starter.shipped_specs import find_adapter_names
    from assay.fabric.learn.draft import draft_from_discovery, draft_inventory, draft_rules
    from assay.fabric.learn.hosts import find_hosts, list_inventory_adapters
    from assay.fabric.learn.judged_design import judge_discovery
    from assay.fabric.learn.tree import NoPattern
    from assay.fabric.readers.format_detection import read_topology
    from assay.model.gc_pause import pause_gc

    with pause_gc():
        discovery = read_topology(read_dump(dump), read_dump(stderr) if stderr else "")
        _print_notes(dump, discovery)
        if discovery.cables and not any(cable.rate for cable in discovery.cables):
            raise AssayError(
                "no design can be drafted: the discovery tells no speeds",
                fix="let each switch also print `show interfaces status`, or `grep . /sys/class/net/*/speed`",
            )
        known = _load_fleet_or_empty(fleet)
        adapters = find_hosts(discovery.devices.values(), find_adapter_names(known), list_inventory_adapters(known))
        try:
            judged = None if discovery.partial else judge_discovery(discovery, name, known, adapters)
            reason = ""
        except NoPattern as none:
            judged, reason = None, str(none)
    if inventory and judged:
        inventory.write_text(draft_inventory(judged))
    if judged:
        print(draft_rules(judged, discovery, (judged.nodes if inventory else known.nodes).keys()), end="")  # noqa: T201
    else:
        print(draft_from_discovery(discovery, name, adapters, reason).as_yaml(), end="")  # noqa: T201


def import_cabling_sheet(
    sheet: Annotated[
        Path,
        argument("FILE", "CSV with the columns device,port,device,port, a topology file (.topo), or NDT; - is stdin."),
    ],
    name: Annotated[str, option("--name NAME", "The name of the design.")] = "imported",
    dump: Annotated[Path | None, option("--from FILE", "A discovery that maps the names in the file to GUIDs.")] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Draft a FabricDesign from a list of cables (CSV) or a topology file, on stdout.

    Exit codes: 0 drafted; 1 some lines were not read (stderr lists them); 2 no line was read.
    """
    from assay.fabric.learn.cabling_file import CablingDraft, read_cabling_file
    from assay.fabric.readers.format_detection import read_topology

    discovery = read_topology(read_dump(dump)) if dump else None
    if dump and discovery:
        _print_notes(dump, discovery)
    read = read_cabling_file(read_dump(sheet))
    draft = CablingDraft(read, _load_fleet_or_empty(fleet), discovery).draft(name)
    for line, problem in sorted(read.problems):
        print(f"{sheet}:{line}: {problem}", file=sys.stderr)  # noqa: T201
    if not draft.cables:
        raise AssayError("no line of the file is a cable", where=str(sheet), fix="correct the lines listed above")
    print(draft.as_yaml(), end="")  # noqa: T201
    raise typer.Exit(1 if read.problems else 0)


def _print_notes(dump: Path, discovery: FabricDiscovery) -> None:
    """Tell on stderr which lines of a discovery were skipped."""
    for note in discovery.notes:
        print(f"{dump}: {note}", file=sys.stderr)  # noqa: T201


def _load_fleet_or_empty(root: Path) -> Fleet:
    """Return the fleet, or an empty one if there is no inventory."""
    from assay.model.fleet import Fleet

    return Workspace(root).fleet if (root / "inventory").is_dir() else Fleet(root, {})
