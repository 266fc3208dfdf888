"""`assay fabric learn` and `import`: a design to begin with, from what is there or from a sheet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.workspace import FleetDir, Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.model.fleet import Fleet


def learn(
    dump: Annotated[Path, typer.Option("--from", help="A discovery of a fabric that is known to be good; - is stdin.")],
    name: Annotated[str, typer.Option(help="What the design is to be called.")] = "learned",
    stderr: Annotated[Path | None, typer.Option(help="What the tool said on stderr.")] = None,
) -> None:
    """Draft a FabricDesign from a discovery: every cable by GUID and port. A partial discovery is refused."""
    from assay.fabric.drafts.design_draft import draft_from_discovery as learning
    from assay.fabric.readers.format_detection import read_topology

    print(learning(read_topology(read_dump(dump), read_dump(stderr) if stderr else ""), name).as_yaml(), end="")  # noqa: T201


def import_cabling_sheet(
    sheet: Annotated[Path, typer.Argument(help="A point-to-point sheet as CSV; - is stdin.")],
    name: Annotated[str, typer.Option(help="What the design is to be called.")] = "imported",
    dump: Annotated[
        Path | None, typer.Option("--from", help="A discovery that gives GUIDs to the names in the sheet.")
    ] = None,
    adapters: Annotated[
        Path | None, typer.Option(help="CSV `port,adapter`: what a node's ports in the sheet are called (1/2,mlx5_3).")
    ] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Draft a FabricDesign from a point-to-point sheet. Exit codes: 0, 1 some lines were not read, 2 none was."""
    from assay.fabric.drafts.point_to_point_sheet import read_adapter_mapping, read_sheet
    from assay.fabric.drafts.sheet_import import SheetImport
    from assay.fabric.readers.format_detection import read_topology

    found = read_topology(read_dump(dump)) if dump else None
    mapping = read_adapter_mapping(read_dump(adapters)) if adapters else {}
    work = SheetImport(read_sheet(read_dump(sheet)), _load_fleet_or_empty(fleet), found, mapping)
    draft = work.draft(name)
    for line, said in sorted(work.sheet.problems):
        print(f"{sheet}:{line}: {said}", file=sys.stderr)  # noqa: T201
    if not draft.cables:
        raise AssayError("no line of it is a cable", where=str(sheet), fix="correct the lines above")
    print(draft.as_yaml(), end="")  # noqa: T201
    raise typer.Exit(1 if work.sheet.problems else 0)


def _load_fleet_or_empty(root: Path) -> Fleet:
    """Return the fleet; an empty one where there is no inventory."""
    from assay.model.fleet import Fleet

    return Workspace(root).fleet if (root / "inventory").is_dir() else Fleet(root, {})


def read_dump(dump: Path) -> str:
    """Return what a file says, or stdin for -."""
    try:
        return sys.stdin.read() if str(dump) == "-" else dump.read_text(errors="replace")
    except OSError as error:
        raise AssayError(f"cannot read the discovery: {error.strerror}", where=str(dump)) from error
